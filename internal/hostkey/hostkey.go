// Package hostkey is the keys by which machines know each other: an Ed25519 key for each host that this user's
// bridges speak as, and the public keys of the hosts that they trust.
//
//	<dir>/keys/<host>       our private key, as base64 of its seed
//	<dir>/trusted/<host>    another host's public key, in base64
//
// The directory lies in the user's configuration, never in a root, where agents write. A trusted key is what
// makes a host known: mail can be sent to it, and what it signed is accepted. Nothing is kept in memory, so a
// key that is added or replaced counts from the next call on.
package hostkey

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

// Dir is the directory of the keys; "": there are none.
type Dir string

// Errors that callers tell apart.
var (
	ErrNoKey    = errors.New("there is none")
	ErrOtherKey = errors.New("another key is there already")
	ErrOwn      = errors.New("it is a name of this machine itself")
)

// ParseHost checks the name of a host: an agent's grammar, without the names of what else lies in a team's
// .bridge.
func ParseHost(s string) (wire.Name, error) {
	name, err := wire.ParseName(s)
	if err == nil && slices.Contains([]string{"bad", "received", "rows"}, s) {
		return "", fmt.Errorf("%q is reserved", s)
	}
	return name, err
}

// Text is a public key as people pass it on. ParseKey reads it.
func Text(key ed25519.PublicKey) string { return base64.StdEncoding.EncodeToString(key) }

// ParseKey reads a public key that Text wrote.
func ParseKey(s string) (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%q is not a public key: base64 of %d bytes", s, ed25519.PublicKeySize)
	}
	return key, nil
}

// Generate makes the key of a host that this machine is, and returns its public half. ErrOtherKey when there is
// one.
func (d Dir) Generate(host wire.Name) (ed25519.PublicKey, error) {
	if _, err := d.Private(host); !errors.Is(err, ErrNoKey) {
		return nil, fmt.Errorf("make the key of %s: %w", host, cmp.Or(err, ErrOtherKey))
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err == nil {
		err = d.write("keys", host, private.Seed())
	}
	return public, err
}

// Private is the key of a host that this machine is. ErrNoKey when there is none.
func (d Dir) Private(host wire.Name) (ed25519.PrivateKey, error) {
	seed, err := d.read("keys", host)
	if err != nil {
		return nil, err
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// Trust notes the public key of another host. ErrOtherKey when there is another one, unless it is to be replaced;
// ErrOwn when this machine has the private key of a host of that name.
func (d Dir) Trust(host wire.Name, key ed25519.PublicKey, replace bool) error {
	if _, err := d.Private(host); !errors.Is(err, ErrNoKey) {
		return fmt.Errorf("trust %s: %w", host, cmp.Or(err, ErrOwn))
	}
	if old, err := d.Key(host); !replace && !errors.Is(err, ErrNoKey) && !key.Equal(old) {
		return fmt.Errorf("trust %s: %w", host, cmp.Or(err, ErrOtherKey))
	}
	return d.write("trusted", host, key)
}

// Key is the public key of a trusted host. ErrNoKey when it is not trusted.
func (d Dir) Key(host wire.Name) (ed25519.PublicKey, error) { return d.read("trusted", host) }

// Hosts lists the trusted hosts, sorted.
func (d Dir) Hosts() ([]wire.Name, error) { return d.list("trusted") }

// Own lists the hosts that this machine has a key of, sorted.
func (d Dir) Own() ([]wire.Name, error) { return d.list("keys") }

func (d Dir) list(sub string) (hosts []wire.Name, err error) {
	entries, err := os.ReadDir(filepath.Join(string(d), sub))
	if d == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if host, bad := ParseHost(e.Name()); bad == nil {
			hosts = append(hosts, host)
		}
	}
	return hosts, err
}

// read reads a key; both kinds have 32 bytes.
func (d Dir) read(sub string, host wire.Name) ([]byte, error) {
	if _, err := ParseHost(string(host)); err != nil { // before it is a path
		return nil, err
	}
	file := filepath.Join(string(d), sub, string(host))
	text, err := os.ReadFile(file)
	key, bad := ParseKey(string(text))
	switch {
	case d == "" || errors.Is(err, fs.ErrNotExist):
		err = ErrNoKey
	case err == nil && bad != nil:
		err = errors.New("it is damaged") // and what it says stays unsaid
	}
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", file, err)
	}
	return key, nil
}

// write writes a key durably, in a directory that is this user's alone: the file gets the directory's rights.
func (d Dir) write(sub string, host wire.Name, key []byte) error {
	if d == "" {
		return errors.New("there is no configuration directory for keys")
	}
	return durable.WritePrivate(filepath.Join(string(d), sub, string(host)), []byte(Text(key)+"\n"))
}

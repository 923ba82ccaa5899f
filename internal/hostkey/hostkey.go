// Package hostkey stores the Ed25519 keys that hosts identify themselves with: a private key for each host name that
// this user's bridges use, and the public keys of the hosts that they trust.
//
//	<dir>/keys/<host>            our private key, its seed in base64
//	<dir>/trusted/<host>         another host's public key, in base64
//	<dir>/links/<root>/<name>    another root of this user, by the SHA-256 of the path of the root that calls it so
//
// The directory is in the user's configuration, never in a root, where agents write. Trusting a host's key allows
// mail to be sent to it and accepted from it. Every call reads the files: a changed key takes effect at once.
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

// Dir is the directory of the keys; "" holds none.
type Dir string

// Errors that callers check for.
var (
	ErrNoKey    = errors.New("does not exist")
	ErrOtherKey = errors.New("there is already another key")
	ErrOwn      = errors.New("it is this machine's own name")
)

// ParseHost checks a host's name: the grammar of agent names, without the directories that .bridge has beside hosts.
func ParseHost(s string) (wire.Name, error) {
	name, err := wire.ParseName(s)
	if err == nil && slices.Contains([]string{"bad", "held", "received", "rows"}, s) {
		return "", fmt.Errorf("%q is reserved", s)
	}
	return name, err
}

// EncodeKey is the base64 form in which people exchange a public key; ParseKey reads it.
func EncodeKey(key ed25519.PublicKey) string { return base64.StdEncoding.EncodeToString(key) }

// ParseKey reads a public key that EncodeKey wrote.
func ParseKey(s string) (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%q is not a public key: base64 of %d bytes", s, ed25519.PublicKeySize)
	}
	return key, nil
}

// Generate returns the public key of a host name of this machine. It makes the pair if there is none.
func (d Dir) Generate(host wire.Name) (ed25519.PublicKey, error) {
	private, err := d.Private(host)
	if errors.Is(err, ErrNoKey) {
		if _, private, err = ed25519.GenerateKey(nil); err == nil {
			err = d.Keep(host, private)
		}
	}
	if err != nil {
		return nil, err
	}
	return private.Public().(ed25519.PublicKey), nil
}

// Keep stores a private key of a host name of this machine.
func (d Dir) Keep(host wire.Name, private ed25519.PrivateKey) error {
	return d.write("keys", host, private.Seed())
}

// Private is the private key of a host name of this machine, or ErrNoKey.
func (d Dir) Private(host wire.Name) (ed25519.PrivateKey, error) {
	seed, err := d.read("keys", host)
	if err != nil {
		return nil, err
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// Trust stores another host's public key. ErrOtherKey if a different key is stored and replace is false; ErrOwn if
// this machine has a private key for that name.
func (d Dir) Trust(host wire.Name, key ed25519.PublicKey, replace bool) error {
	if _, err := d.Private(host); !errors.Is(err, ErrNoKey) {
		return fmt.Errorf("trust %s: %w", host, cmp.Or(err, ErrOwn))
	}
	if old, err := d.Key(host); !replace && !errors.Is(err, ErrNoKey) && !key.Equal(old) {
		return fmt.Errorf("trust %s: %w", host, cmp.Or(err, ErrOtherKey))
	}
	return d.write("trusted", host, key)
}

// Key is the public key of a trusted host, or ErrNoKey.
func (d Dir) Key(host wire.Name) (ed25519.PublicKey, error) { return d.read("trusted", host) }

// Hosts lists the trusted hosts, sorted.
func (d Dir) Hosts() ([]wire.Name, error) { return d.list("trusted") }

// Own lists the host names for which this machine has a private key, sorted.
func (d Dir) Own() ([]wire.Name, error) { return d.list("keys") }

func (d Dir) list(sub string) (hosts []wire.Name, err error) {
	if d == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(filepath.Join(string(d), sub))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if host, bad := ParseHost(e.Name()); bad == nil {
			hosts = append(hosts, host)
		}
	}
	return hosts, err
}

// read reads a seed or a public key: both have 32 bytes.
func (d Dir) read(sub string, host wire.Name) ([]byte, error) {
	if _, err := ParseHost(string(host)); err != nil { // checked before it becomes part of a path
		return nil, err
	}
	if d == "" {
		return nil, fmt.Errorf("key of %s: %w", host, ErrNoKey)
	}
	file := filepath.Join(string(d), sub, string(host))
	text, err := durable.ReadRegular(file, 4<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("key %s: %w", file, ErrNoKey)
	}
	if err != nil {
		return nil, err
	}
	key, err := ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("key %s: damaged", file) // err would quote the secret
	}
	return key, nil
}

// write writes a key durably and privately.
func (d Dir) write(sub string, host wire.Name, key []byte) error {
	if d == "" {
		return errors.New("there is no configuration directory for keys")
	}
	return durable.WritePrivate(filepath.Join(string(d), sub, string(host)), []byte(EncodeKey(key)+"\n"))
}

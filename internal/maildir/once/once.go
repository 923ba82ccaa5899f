// Package once gives a message that may be sent again, as by a script, the id that it had before.
package once

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// Key names a message so that sending it again, as by a script that runs again after a kill, does not make a
// second message.
//
//	sent/once/<sha256 of name, re and to>.json
type Key struct {
	Name string   `json:"name"`
	Re   wire.ID  `json:"re,omitempty"` // the message that it answers
	To   []string `json:"to"`           // recipients, sorted: one name may be used for each of several
	ID   wire.ID  `json:"id"`
}

// ErrDamaged is returned by SetID for a key file that cannot be read. No kill leaves such a file, and its message was
// most likely sent: if the file counted as absent, the message could be sent twice.
var ErrDamaged = errors.New("the record of this name is damaged")

// ErrName is returned for a name that no key can have.
var ErrName = errors.New("a name must be one line of 1 to 200 bytes")

// CheckName returns ErrName or nil.
func CheckName(name string) error {
	if strings.TrimSpace(name) == "" || len(name) > 200 || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return ErrName
	}
	return nil
}

// SetID sets the key's ID: the first call with the same Name, Re and To stores a new id durably, later ones get that id
// and isKnown. Concurrent callers all get the same.
func SetID(b *maildir.Box, key *Key) (isKnown bool, err error) {
	root, dir := b.Store().Dir(), b.In("sent/once")
	if err := cmp.Or(CheckName(key.Name), b.CheckPresent()); err != nil {
		return false, err
	}
	if err := b.Mkdir(dir); err != nil {
		return false, err
	}
	hash := sha256.Sum256([]byte(key.Name + "\x00" + string(key.Re) + "\x00" + strings.Join(key.To, ",")))
	file := fmt.Sprintf("%s/%x.json", dir, hash)
	stored := *key
	stored.ID = wire.NewID()
	data, _ := json.Marshal(stored) // which cannot fail for strings
	err = root.Publish(file, bytes.NewReader(append(data, '\n')), true)
	if isKnown = errors.Is(err, fs.ErrExist); isKnown {
		data, err = root.ReadFile(file, 4<<20)
		if err == nil && (json.Unmarshal(data, &stored) != nil || stored.Name != key.Name || !wire.IsID(string(stored.ID))) {
			err = ErrDamaged
		}
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", root.Join(file), err)
	}
	key.ID = stored.ID
	// A known key too: the process that stored it may have been killed before it synced.
	return isKnown, errors.Join(root.Sync(dir), root.Sync(b.In("sent")))
}

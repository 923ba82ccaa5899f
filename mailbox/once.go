package mailbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agentteammail/atm/wire"
)

// IdempotencyKey is the name under which somebody sends a message, so that sending it
// again is no second message: a script that is run again after a kill says the same
// names.
//
//	sent/once/<sha256 of name, re and to>.json
type IdempotencyKey struct {
	Name string   `json:"name"`
	Re   wire.ID  `json:"re,omitempty"` // what it answers
	To   []string `json:"to"`           // whom it is for, sorted: bob's is not carol's
	ID   wire.ID  `json:"id"`
}

// CheckKeyName says what is wrong with the name of a key.
func CheckKeyName(name string) error {
	if strings.TrimSpace(name) == "" || len(name) > 200 || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return errors.New("the name of a message is one line of 1 to 200 bytes")
	}
	return nil
}

// Once gives the key its id: that of the first call with its name, what it answers and
// whom it is for, else a new one, which is noted durably before Once returns. Of several
// callers at once all get the same. known says that it was noted before.
func (b *Box) Once(key *IdempotencyKey) (known bool, err error) {
	if err := CheckKeyName(key.Name); err != nil {
		return false, err
	}
	if err := b.Present(); err != nil {
		return false, err
	}
	root, dir := b.store.root, b.in("sent/once")
	if err := b.mkdir(dir); err != nil {
		return false, err
	}
	sum := sha256.Sum256([]byte(key.Name + "\x00" + string(key.Re) + "\x00" + strings.Join(key.To, ",")))
	file := dir + "/" + hex.EncodeToString(sum[:]) + ".json"
	if known, err = b.readKey(key, file); !known && err == nil {
		key.ID = wire.NewID()
		var data []byte
		if data, err = json.Marshal(key); err == nil {
			err = b.store.publish(dir+"/."+string(wire.NewID())+".tmp", file, append(data, '\n'))
		}
		if errors.Is(err, fs.ErrExist) { // somebody was faster
			known, err = b.readKey(key, file)
		}
	}
	if err != nil {
		return false, err
	}
	// Also of what was noted before: who noted it may have been killed before this.
	return known, errors.Join(root.Sync(dir), root.Sync(b.in("sent")))
}

// readKey takes the id from the file, if that is there. One that was not written for
// this key is an error: a guess could send twice.
func (b *Box) readKey(key *IdempotencyKey, file string) (known bool, err error) {
	data, err := b.store.root.ReadFile(file, 4<<20)
	if absent(err) {
		return false, nil
	}
	var noted IdempotencyKey
	if err == nil {
		err = json.Unmarshal(data, &noted)
	}
	if err == nil && (noted.Name != key.Name || !wire.IsID(string(noted.ID))) {
		err = errors.New("it is of no message under that name")
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", b.store.root.Join(file), err)
	}
	key.ID = noted.ID
	return true, nil
}

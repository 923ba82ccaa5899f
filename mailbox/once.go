package mailbox

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

	"github.com/agentteammail/atm/wire"
)

// IdempotencyKey is the name under which somebody sends a message, so that sending it again is no second
// message: a script that is run again after a kill says the same names.
//
//	sent/once/<sha256 of name, re and to>.json
type IdempotencyKey struct {
	Name string   `json:"name"`
	Re   wire.ID  `json:"re,omitempty"` // what it answers
	To   []string `json:"to"`           // whom it is for, sorted: bob's is not carol's
	ID   wire.ID  `json:"id"`
}

// ErrKeyDamaged is returned by Once for a note that cannot be read. No kill leaves one like that, and its message was
// most likely sent: were the note taken for absent, it could be sent twice.
var ErrKeyDamaged = errors.New("the record of this name is damaged")

// CheckKeyName says what is wrong with the name of a key.
func CheckKeyName(name string) error {
	if strings.TrimSpace(name) == "" || len(name) > 200 || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return errors.New("a name must be one line of 1 to 200 bytes")
	}
	return nil
}

func (key *IdempotencyKey) file() string {
	sum := sha256.Sum256([]byte(key.Name + "\x00" + string(key.Re) + "\x00" + strings.Join(key.To, ",")))
	return fmt.Sprintf("%x.json", sum)
}

// Once gives the key its id: that of the first call with its name, what it answers and whom it is for, else a
// new one, which is noted durably before Once returns. Of several callers at once all get the same. known
// says that it was noted before.
func (b *Box) Once(key *IdempotencyKey) (known bool, err error) {
	root, dir := b.store.root, b.in("sent/once")
	if err := cmp.Or(CheckKeyName(key.Name), b.Present()); err != nil {
		return false, err
	}
	if err := b.mkdir(dir); err != nil {
		return false, err
	}
	file := dir + "/" + key.file()
	noted := *key
	noted.ID = wire.NewID()
	data, _ := json.Marshal(noted) // strings always become JSON
	err = b.store.root.Publish(dir+"/."+string(wire.NewID())+".tmp", file, bytes.NewReader(append(data, '\n')))
	if known = errors.Is(err, fs.ErrExist); known {
		data, err = root.ReadFile(file, 4<<20)
		if err == nil && (json.Unmarshal(data, &noted) != nil || noted.Name != key.Name || !wire.IsID(string(noted.ID))) {
			err = ErrKeyDamaged
		}
	}
	if err != nil {
		return false, fmt.Errorf("record the name in %s: %w", root.Join(file), err)
	}
	key.ID = noted.ID
	// Also of what was noted before: who noted it may have been killed before this.
	return known, errors.Join(root.Sync(dir), root.Sync(b.in("sent")))
}

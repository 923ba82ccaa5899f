package mailbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// Errand is a message that its sender sends under a name of their own, so that
// sending it again is no second message: a script that is run again after a
// kill says the same names.
//
//	sent/once/<sha256 of name, re and to>.json
type Errand struct {
	Name string   `json:"name"`
	Re   wire.ID  `json:"re,omitempty"` // what it answers
	To   []string `json:"to"`           // whom it was meant for, sorted: bob's is not carol's
	ID   wire.ID  `json:"id"`
}

// ErrandName says what is wrong with the name of an errand.
func ErrandName(name string) error {
	if strings.TrimSpace(name) == "" || len(name) > 200 || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return errors.New("the name of a message is one line of 1 to 200 bytes")
	}
	return nil
}

// Once gives the errand its id: that of the first call with its name, what it
// answers and whom it is for, else a new one, which is noted durably before
// Once returns. Of several callers at once all get the same. known says that
// it was noted before.
func (b *Box) Once(e *Errand) (known bool, err error) {
	if err := ErrandName(e.Name); err != nil {
		return false, err
	}
	sent, err := b.store.makeBelow([]string{string(b.agent)}, []string{"sent"})
	if err != nil {
		return false, b.absent(err)
	}
	defer sent.Close()
	dir, err := sent.Make("once")
	if err != nil {
		return false, err
	}
	defer dir.Close()
	// Also of what was noted before: who noted it may have been killed before this.
	defer func() {
		if err == nil {
			err = errors.Join(dir.Sync(), sent.Sync())
		}
	}()
	sum := sha256.Sum256([]byte(e.Name + "\x00" + string(e.Re) + "\x00" + strings.Join(e.To, ",")))
	file := hex.EncodeToString(sum[:]) + ".json"
	if known, err = e.read(dir, file); known || err != nil {
		return known, err
	}
	e.ID = wire.NewID()
	data, err := json.Marshal(e)
	if err != nil {
		return false, err
	}
	d, err := dir.Draft(fmt.Sprintf(".%s.%d", e.ID, os.Getpid()))
	if err != nil {
		return false, err
	}
	defer d.Close()
	if _, err = d.Write(append(data, '\n')); err == nil {
		err = d.Sync()
	}
	if err == nil {
		err = d.Link(dir, file)
	}
	if errors.Is(err, fs.ErrExist) { // somebody was faster
		known, err = e.read(dir, file)
		if err == nil && !known {
			err = fmt.Errorf("%s/%s came and went", dir.Path(), file)
		}
	}
	return known, err
}

// read takes the id from the file, if that is there. One that was not written
// for this errand is an error: a guess could send twice.
func (e *Errand) read(dir *atomicfile.Dir, file string) (known bool, err error) {
	data, err := dir.ReadFile(file, 4<<20)
	if atomicfile.Absent(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var noted Errand
	if err := json.Unmarshal(data, &noted); err != nil {
		return false, fmt.Errorf("%s/%s cannot be read: %w", dir.Path(), file, err)
	}
	if noted.Name != e.Name || !wire.IsID(string(noted.ID)) {
		return false, fmt.Errorf("%s/%s is of no message under that name", dir.Path(), file)
	}
	e.ID = noted.ID
	return true, nil
}

// Again puts back a message whose turn was cut short, as by asks, who has sent
// it and asks again: it is unread, and whoever hands mail over is told to do so
// once more (message_again). Killed between the two, it is to be said again.
func (b *Box) Again(ctx context.Context, id wire.ID, by wire.Address) error {
	if _, err := b.Unread(ctx, id); err != nil {
		return err
	}
	e := wire.Event{Source: "cli", Kind: wire.EventAgain}
	return b.Append(ctx, AppendOptions{}, e.With("id", string(id)).With("by", by.String()))
}

package maildir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/wire"
)

// A Folder is a directory of messages in one state.
type Folder struct {
	State wire.State
	Dir   string // below the team's directory
}

// Unread is the folder of unread messages that nobody has had; see Held for the others.
func (b *Box) Unread() Folder { return Folder{wire.Unread, b.In("inbox/new")} }

// Owed is the folder of messages that wait for an acknowledgement.
func (b *Box) Owed() Folder { return Folder{wire.Owed, b.In("inbox/cur")} }

func (b *Box) withdrawn() Folder { return Folder{wire.Withdrawn, b.In("inbox/withdrawn")} }

// AllDone has a directory for each day, with the finished messages.
func (b *Box) AllDone() Folder { return Folder{wire.Done, b.In("inbox/done")} }

// Archive has a directory for each day, with the messages that gc has moved.
func (b *Box) Archive() Folder { return Folder{wire.Done, b.Archived("done")} }

// AllSent has a directory for each day, with the index of sent messages.
func (b *Box) AllSent() Folder { return Folder{"", b.In("sent")} }

// Day returns a day's directory in a folder that has one for each.
func (d Folder) Day(day string) Folder { return Folder{d.State, d.Dir + "/" + day} }

// Done is where a message is once it is finished.
func (b *Box) Done(id wire.ID) Folder { return b.AllDone().Day(id.Day()) }

func (b *Box) sent(id wire.ID) Folder { return b.AllSent().Day(id.Day()) }

// foldersOf returns the folders in which a message may be, in the order in which it moves.
func (b *Box) foldersOf(id wire.ID) ([]Folder, error) {
	held, err := b.heldFolders()
	return slices.Concat([]Folder{b.Unread()}, held, []Folder{b.Owed(), b.Done(id), b.withdrawn(), b.Archive().Day(id.Day())}), err
}

// looks is how often a message is looked for in all folders: it may be put back into one that was searched.
const looks = 3

// maxCopies is how many files of one message a mailbox may have, by the hand of a person.
const maxCopies = 8

// isInInbox reports whether a message that is in d is unread, owed or done, and neither withdrawn nor archived.
func (b *Box) isInInbox(d Folder, id wire.ID) bool {
	return d.State == wire.Unread || d == b.Owed() || d == b.Done(id)
}

// FileName is the name of a message's file.
func FileName(id wire.ID) string { return string(id) + ".json" }

// File returns the path of a message's file, below the team's directory.
func (d Folder) File(id wire.ID) string { return d.Dir + "/" + FileName(id) }

// Has reports whether a folder has a message's file.
func (b *Box) Has(d Folder, id wire.ID) (bool, error) { return b.store.root.Exists(d.File(id)) }

// Locate finds the folder of the message with this full id, without listing a directory.
func (b *Box) Locate(id wire.ID) (d Folder, ok bool, err error) {
	for range looks {
		folders, err := b.foldersOf(id)
		if err != nil {
			return Folder{}, false, err
		}
		for _, d := range folders {
			if there, err := b.Has(d, id); there || err != nil {
				return d, there, err
			}
		}
	}
	return Folder{}, false, nil
}

// BadError says why a file is not a message, or why it cannot be read.
type BadError struct {
	Name, Reason string
	Unreadable   error // why it cannot be read; it may be a message, so it stays where it is
}

// ID returns the id that the file has as its name.
func (e *BadError) ID() wire.ID { id, _ := MessageID(e.Name); return id }

func (e *BadError) Error() string { return e.Name + ": " + e.Reason }
func (e *BadError) Unwrap() error { return e.Unreadable }

// Open reads a message from a folder. It returns ErrNotFound if the message is not there, and a *BadError if the file is
// not a whole message with that id.
func (b *Box) Open(d Folder, id wire.ID) (*wire.Item, error) {
	return b.openIn(b.store.root, d.File(id), d, id)
}

// openIn is Open with the file's name in an open directory.
func (b *Box) openIn(dir *durable.Root, name string, d Folder, id wire.ID) (*wire.Item, error) {
	data, err := dir.ReadFile(name, wire.MaxFile)
	switch {
	case durable.IsAbsent(err):
		return nil, notFound(id)
	case errors.Is(err, durable.ErrNotRegular), errors.Is(err, durable.ErrTooLarge):
		return nil, &BadError{Name: FileName(id), Reason: err.Error()}
	case err != nil: // one unreadable file must not hide the others
		return nil, &BadError{Name: FileName(id), Reason: err.Error(), Unreadable: err}
	}
	m, err := wire.Decode(data)
	if err == nil && m.ID != id {
		err = fmt.Errorf("the message inside has the id %s", m.ID)
	}
	if err != nil {
		return nil, &BadError{Name: FileName(id), Reason: err.Error()}
	}
	b.setHere(m)
	it := &wire.Item{Message: m, State: d.State, File: b.store.root.Join(d.File(id)), Size: int64(len(data))}
	b.setHolder(it, d.Holder())
	return it, nil
}

// Move renames a message from one folder to the next, or to bad as a duplicate if another folder has one with its id. It
// returns ErrNotFound for a duplicate, or if the message has moved on. The caller holds the reader lock.
func (b *Box) Move(id wire.ID, from, to Folder) error {
	folders, err := b.foldersOf(id)
	if err != nil {
		return err
	}
	for _, d := range folders {
		if isThere, _ := b.Has(d, id); isThere && d != from {
			to = d
		}
	}
	if err := b.Mkdir(to.Dir); err != nil {
		return err
	}
	err = b.store.root.Move(from.File(id), to.File(id))
	if errors.Is(err, fs.ErrExist) {
		err = cmp.Or(b.MoveToBad(from.File(id), FileName(id), "a duplicate of the message in "+to.Dir), fs.ErrNotExist)
	}
	if durable.IsAbsent(err) {
		return notFound(id)
	}
	if from.Holder() != (holder.Holder{}) {
		b.store.root.Remove(from.Dir) // if nothing is left in it
	}
	return err
}

// UnreadBefore counts the unread messages that are due and older than one, among at most so many, whichever these are: in a
// large inbox that takes no longer.
func (b *Box) UnreadBefore(id wire.ID, most int) (n int) {
	names, _ := b.store.root.SomeNames(b.Unread().Dir, most)
	for _, name := range names {
		if other, ok := MessageID(name); ok && other < id {
			n++
		}
	}
	held, _ := b.Held()
	notDue := b.NotDue(held)
	for other := range held {
		if other < id && n < most && !notDue[other] {
			n++
		}
	}
	return n
}

// MessageID returns the id that a file has as its name.
func MessageID(name string) (id wire.ID, ok bool) {
	before, ok := strings.CutSuffix(name, ".json")
	return wire.ID(before), ok && wire.IsID(before)
}

// IsMessageFile reports whether a file has a message's name.
func IsMessageFile(name string) bool {
	_, ok := MessageID(name)
	return ok
}

// Days lists the days below a folder that have changed since then, oldest first. A file with the name of a day is
// ignored.
func (b *Box) Days(top Folder, since time.Time) (days []Folder, err error) {
	names, err := b.store.root.Names(top.Dir)
	for _, name := range names {
		info, e := b.store.root.Lstat(top.Day(name).Dir)
		if e != nil && !durable.IsAbsent(e) {
			err = errors.Join(err, e)
		}
		if e == nil && isDay(name) && info.IsDir() && !info.ModTime().Before(since) {
			days = append(days, top.Day(name))
		}
	}
	return days, err
}

func isDay(name string) bool {
	_, err := time.Parse(time.DateOnly, name)
	return err == nil
}

package maildir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

// State is the state of a message at one recipient.
type State string

// The states. A done message may be in the archive.
const (
	Unread    State = "unread"
	Owed      State = "owed"
	Done      State = "done"
	Withdrawn State = "withdrawn"
)

// folder is a directory of messages in one state.
type folder struct {
	state State
	dir   string // below the team's directory
}

func (b *Box) unread() folder    { return folder{Unread, b.in("inbox/new")} }
func (b *Box) owed() folder      { return folder{Owed, b.in("inbox/cur")} }
func (b *Box) withdrawn() folder { return folder{Withdrawn, b.in("inbox/withdrawn")} }

// These folders hold a directory per day: finished messages, archived ones, and the index of sent ones.
func (b *Box) allDone() folder { return folder{Done, b.in("inbox/done")} }
func (b *Box) archive() folder { return folder{Done, b.archived("done")} }
func (b *Box) allSent() folder { return folder{"", b.in("sent")} }

func (d folder) day(day string) folder { return folder{d.state, d.dir + "/" + day} }
func (b *Box) done(id wire.ID) folder  { return b.allDone().day(id.Day()) }
func (b *Box) sent(id wire.ID) folder  { return b.allSent().day(id.Day()) }

// foldersOf returns the folders in which a message may be, in the order in which it moves.
func (b *Box) foldersOf(id wire.ID) []folder {
	return []folder{b.unread(), b.owed(), b.done(id), b.withdrawn(), b.archive().day(id.Day())}
}

// isInInbox reports whether a message that is in d is unread, owed or done, and neither withdrawn nor archived.
func (b *Box) isInInbox(d folder, id wire.ID) bool {
	return d == b.unread() || d == b.owed() || d == b.done(id)
}

func fileOf(id wire.ID) string          { return string(id) + ".json" }
func (d folder) file(id wire.ID) string { return d.dir + "/" + fileOf(id) }

func (b *Box) has(d folder, id wire.ID) (bool, error) { return b.store.root.Exists(d.file(id)) }

// locate finds the folder of the message with this full id, without listing a directory.
func (b *Box) locate(id wire.ID) (d folder, ok bool, err error) {
	for _, d := range append(b.foldersOf(id), b.unread()) { // once more: it may become unread again meanwhile
		if there, err := b.has(d, id); there || err != nil {
			return d, there, err
		}
	}
	return folder{}, false, nil
}

// Item is a message in a mailbox.
type Item struct {
	*wire.Message
	State State
	Dir   string // its directory

	Lease          *Lease // the live lease of an unread message, or nil
	TimesHandedOut int    // how often an unread message was handed out before, without being finished

	root *durable.Root
	file string // in root
	size int64  // of the file
}

// WithoutText returns what an item says about others.
func (it *Item) WithoutText() *Item {
	brief := *it
	brief.Message = &wire.Message{ID: it.ID, From: it.From, Supersedes: it.Supersedes}
	return &brief
}

// Written returns when the file was written, or zero if it is no longer there.
func (it *Item) Written() (at time.Time) {
	if info, err := it.root.Lstat(it.file); err == nil {
		at = info.ModTime()
	}
	return at
}

// BadError says why a file is not a message, or why it cannot be read.
type BadError struct {
	Name, Reason string
	Unreadable   error // why it cannot be read; it may be a message, so it stays where it is
}

func (e *BadError) Error() string { return e.Name + ": " + e.Reason }
func (e *BadError) Unwrap() error { return e.Unreadable }

// open reads a message from a folder. It returns ErrNotFound if the message is not there, and a *BadError if the file is
// not a whole message with that id.
func (b *Box) open(d folder, id wire.ID) (*Item, error) {
	return b.openIn(b.store.root, d.file(id), d, id, nil)
}

// openIn is open with the file's name in an open directory. It returns ErrNotFound also if keep (nil: all) rejects the
// text.
func (b *Box) openIn(dir *durable.Root, name string, d folder, id wire.ID, keep func(wire.ID, []byte) bool) (*Item, error) {
	data, err := dir.ReadFile(name, wire.MaxFile)
	switch {
	case durable.IsAbsent(err), err == nil && keep != nil && !keep(id, data):
		return nil, notFound(id)
	case errors.Is(err, durable.ErrNotRegular), errors.Is(err, durable.ErrTooLarge):
		return nil, &BadError{Name: fileOf(id), Reason: err.Error()}
	case err != nil: // one unreadable file must not hide the others
		return nil, &BadError{Name: fileOf(id), Reason: err.Error(), Unreadable: err}
	}
	m, err := wire.Decode(data)
	if err == nil && m.ID != id {
		err = fmt.Errorf("the message inside has the id %s", m.ID)
	}
	if err != nil {
		return nil, &BadError{Name: fileOf(id), Reason: err.Error()}
	}
	return &Item{Message: m, State: d.state, Dir: b.store.root.Join(d.dir), root: b.store.root, file: d.file(id), size: int64(len(data))}, nil
}

// move renames a message from one folder to the next, or to bad as a duplicate if another folder has one with its id. It
// returns ErrNotFound for a duplicate, or if the message has moved on. The caller holds the reader lock.
func (b *Box) move(id wire.ID, from, to folder) error {
	for _, d := range b.foldersOf(id) {
		if isThere, _ := b.has(d, id); isThere && d != from {
			to = d
		}
	}
	if err := b.mkdir(to.dir); err != nil {
		return err
	}
	err := b.store.root.Move(from.file(id), to.file(id))
	if errors.Is(err, fs.ErrExist) {
		err = cmp.Or(b.moveToBad(from.file(id), fileOf(id), "a duplicate of the message in "+to.dir), fs.ErrNotExist)
	}
	if durable.IsAbsent(err) {
		return notFound(id)
	}
	return err
}

// list lists the messages of a folder, oldest first, by file name alone.
func (b *Box) list(d folder) (ids []wire.ID, err error) {
	names, err := b.store.root.Names(d.dir)
	ids = make([]wire.ID, 0, len(names))
	for _, name := range names {
		if id, ok := messageID(name); ok {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// messageID returns the id that a file has as its name.
func messageID(name string) (id wire.ID, ok bool) {
	before, ok := strings.CutSuffix(name, ".json")
	return wire.ID(before), ok && wire.IsID(before)
}

func isMessageFile(name string) bool {
	_, ok := messageID(name)
	return ok
}

// days lists the days below a folder that have changed since then, oldest first. A file with the name of a day is
// ignored.
func (b *Box) days(top folder, since time.Time) (days []folder, err error) {
	names, err := b.store.root.Names(top.dir)
	for _, name := range names {
		info, e := b.store.root.Lstat(top.day(name).dir)
		if e != nil && !durable.IsAbsent(e) {
			err = errors.Join(err, e)
		}
		if e == nil && isDay(name) && info.IsDir() && !info.ModTime().Before(since) {
			days = append(days, top.day(name))
		}
	}
	return days, err
}

func isDay(name string) bool {
	_, err := time.Parse(time.DateOnly, name)
	return err == nil
}

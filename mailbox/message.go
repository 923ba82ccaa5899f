package mailbox

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

// State of a message at one recipient.
type State string

// The states. Done messages may lie in the archive.
const (
	Unread    State = "unread"
	Owed      State = "owed"
	Done      State = "done"
	Withdrawn State = "withdrawn"
)

// place is a directory in which messages lie in one state.
type place struct {
	state State
	dir   string // below the team's directory
}

func (b *Box) unread() place    { return place{Unread, b.in("inbox/new")} }
func (b *Box) owed() place      { return place{Owed, b.in("inbox/cur")} }
func (b *Box) withdrawn() place { return place{Withdrawn, b.in("inbox/withdrawn")} }

// The places of days: finished messages, those in the archive, and the index of what the owner sent.
func (b *Box) allDone() place { return place{Done, b.in("inbox/done")} }
func (b *Box) archive() place { return place{Done, b.archived("done")} }
func (b *Box) allSent() place { return place{"", b.in("sent")} }

func (p place) day(day string) place { return place{p.state, p.dir + "/" + day} }
func (b *Box) done(id wire.ID) place { return b.allDone().day(id.Day()) }
func (b *Box) sent(id wire.ID) place { return b.allSent().day(id.Day()) }

// places are where a message may lie, in the order in which it moves.
func (b *Box) places(id wire.ID) []place {
	return []place{b.unread(), b.owed(), b.done(id), b.withdrawn(), b.archive().day(id.Day())}
}

func fileOf(id wire.ID) string         { return string(id) + ".json" }
func (p place) file(id wire.ID) string { return p.dir + "/" + fileOf(id) }

func (b *Box) has(p place, id wire.ID) (bool, error) { return b.store.root.Exists(p.file(id)) }

// locate says where the message with this full id lies, without a listing.
func (b *Box) locate(id wire.ID) (p place, ok bool, err error) {
	for _, p := range b.places(id) {
		if there, err := b.has(p, id); there || err != nil {
			return p, there, err
		}
	}
	return place{}, false, nil
}

// Item is a message as it lies in a mailbox.
type Item struct {
	*wire.Message
	State State
	Where string // the directory it lies in

	// Of unread messages: who holds it under a lease, nil: nobody; and how often it was given out to
	// somebody who may not have received it, or did not finish it.
	Lease *Lease
	Times int

	// SupersededBy is what replaces it: of the same sender, and not withdrawn.
	SupersededBy wire.ID

	root *durable.Root
	file string // in root
}

// Written is when the file was written, zero where it lies there no more.
func (it *Item) Written() (at time.Time) {
	if info, err := it.root.Lstat(it.file); err == nil {
		at = info.ModTime()
	}
	return at
}

// BadError says why a file is no message, or why it cannot be read.
type BadError struct {
	Name, Reason string
	Unreadable   error // it may well be a message: left where it is
}

func (e *BadError) Error() string { return e.Name + ": " + e.Reason }
func (e *BadError) Unwrap() error { return e.Unreadable }

// open reads a message from a place: ErrNotFound when it is not there, or when keep (nil: all) does not want its text,
// a *BadError when the file is no whole message of that id. What it supersedes is noted, as far as that can be.
func (b *Box) open(p place, id wire.ID, keep func(raw []byte) bool) (*Item, error) {
	data, err := b.store.root.ReadFile(p.file(id), wire.MaxFile)
	switch {
	case absent(err), err == nil && keep != nil && !keep(data):
		return nil, notFound(id)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM):
		return nil, err // says something of this process, not of the file
	case errors.Is(err, durable.ErrNotRegular), errors.Is(err, durable.ErrTooLarge):
		return nil, &BadError{Name: fileOf(id), Reason: err.Error()}
	case err != nil: // one file that cannot be read must not hide the others
		return nil, &BadError{Name: fileOf(id), Reason: err.Error(), Unreadable: err}
	}
	m, err := wire.Decode(data)
	if err == nil && m.ID != id {
		err = fmt.Errorf("the message inside has the id %s", m.ID)
	}
	if err != nil {
		return nil, &BadError{Name: fileOf(id), Reason: err.Error()}
	}
	if p.state == Unread { // another program may have put it into new
		b.noteSuperseded(m)
	}
	return &Item{Message: m, State: p.state, Where: b.store.root.Join(p.dir), root: b.store.root, file: p.file(id)}, nil
}

// move renames a message from one place to the next. A second copy, where the name is taken there, goes
// to bad as a duplicate. ErrNotFound when it has moved on meanwhile. The lock of the places is held.
func (b *Box) move(id wire.ID, from, to place) error {
	if err := b.mkdir(to.dir); err != nil {
		return err
	}
	err := b.store.root.Move(from.file(id), to.file(id))
	if errors.Is(err, fs.ErrExist) {
		err = b.setAside(from.file(id), fileOf(id), "a duplicate of the message in "+to.dir)
	}
	if absent(err) {
		return notFound(id)
	}
	return err
}

// list lists the messages of a place by name, oldest first.
func (b *Box) list(p place) (ids []wire.ID, err error) {
	names, err := b.store.root.Names(p.dir)
	ids = make([]wire.ID, 0, len(names))
	for _, name := range names {
		if isMessageFile(name) {
			ids = append(ids, wire.ID(strings.TrimSuffix(name, ".json")))
		}
	}
	return ids, err
}

func isMessageFile(name string) bool {
	id, ok := strings.CutSuffix(name, ".json")
	return ok && wire.IsID(id)
}

// days lists the days below a place into which something came since a moment, oldest first. A file that is named
// like a day is none.
func (b *Box) days(top place, since time.Time) (days []place, err error) {
	names, err := b.store.root.Names(top.dir)
	for _, name := range slices.DeleteFunc(names, func(name string) bool { return !isDay(name) }) {
		info, e := b.store.root.Lstat(top.day(name).dir)
		switch {
		case absent(e):
		case e != nil:
			err = errors.Join(err, e)
		case info.IsDir() && !info.ModTime().Before(since):
			days = append(days, top.day(name))
		}
	}
	return days, err
}

func isDay(name string) bool {
	_, err := time.Parse(time.DateOnly, name)
	return err == nil
}

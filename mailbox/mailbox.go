// Package mailbox keeps messages and events as files, one mailbox an agent.
//
// Anybody may deliver to a mailbox at any time; a delivery is whole or absent,
// and once reported it survives a power cut. A message is never edited: its
// file is written once and then only renamed, and nothing here ever deletes
// one that is unread. The directory is the state:
//
//	<agent>/inbox/          drop any file here by hand
//	    tmp/                being written, or being taken in
//	    new/<id>.json       delivered, unread
//	    aside/<id>.json     taken too often under a lease and never finished
//	    cur/<id>.json       read, an acknowledgement still owed
//	    done/<day>/<id>.json
//	    withdrawn/<id>.json
//	    bad/                what could not be understood, with <name>.reason
//	    leases/<id>.lease   who holds an unread message, and who did before
//	    dated/              notes of when answers are due and messages expire
//	<agent>/sent/<day>/     what the agent sent: an index, not synced
//	<agent>/sent/once/      the ids of what it sent under names of its own
//	<agent>/events/<seq>.ndjson
//	<agent>/run/claim.json  unread mail that is in somebody's hands
//
// # What may be relied on
//
// Publishing and moving never replace. A message is in exactly one of new,
// aside, cur, done and withdrawn (or the archive), and moves in that order; only
// Unread moves back, under a lock that excludes those who look for an id. So
// whoever looks in this order finds a message that is there.
//
// Reading shows first and moves after, and moves only what was taken: a
// reader that is killed at any instant sees a message again, never loses one.
//
// Ids order a display. Nothing here decides by them what is new.
//
// # Locks
//
// All are flocks on files under the team's .locks. After one is got, the
// directories it guards are opened by path anew; what was opened before does
// not count. None is held while waiting for anything but the file system and,
// at most two seconds, the output of Read. In this order: runner, team, drops,
// inbox, reader, events; never those of two agents at once. Looking takes
// none.
//
// A mailbox knows no team beyond the directory that it is given, and no
// environment. All types here may be used by several goroutines at once.
package mailbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// Errors that callers tell apart.
var (
	ErrNoAgent    = errors.New("no such agent")
	ErrNotFound   = errors.New("no such message")
	ErrExists     = errors.New("already there")
	ErrUnreadable = errors.New("the inbox's owner could not read what this user writes")
	ErrRunning    = errors.New("is running")
	ErrSettled    = errors.New("it stays where it is")
)

// DefaultLockTimeout is how long a store waits for a lock unless told.
const DefaultLockTimeout = 5 * time.Second

// Store is a directory of mailboxes: what a team is on disk, as far as mail
// goes.
type Store struct {
	Team        wire.Name
	LockTimeout time.Duration // 0: DefaultLockTimeout

	dir       *atomicfile.Dir
	locks     *lockRoom
	logs      openLogs
	standings standings
	runners   runners
	clock     func() time.Time // of leases; nil: the system's
}

// OpenStore opens the mailboxes in dir, which the store closes with itself.
// The team's name goes into addresses only.
func OpenStore(dir *atomicfile.Dir, team wire.Name) (*Store, error) {
	return &Store{Team: team, dir: dir, locks: &lockRoom{team: dir}}, nil
}

// Close lets go of the directory.
func (s *Store) Close() error {
	s.standings.close()
	return errors.Join(s.logs.close(), s.locks.close(), s.dir.Close())
}

// Dir is the team's directory.
func (s *Store) Dir() *atomicfile.Dir { return s.dir }

// Box is the mailbox of an agent, who need not exist: the first operation that
// needs it returns ErrNoAgent.
func (s *Store) Box(agent wire.Name) *Box { return &Box{store: s, agent: agent} }

// Agents lists the agents, sorted: the directories here that hold inbox/new.
// One that cannot be opened is an error, not an absence.
func (s *Store) Agents() ([]wire.Name, error) {
	var out []wire.Name
	var unseen error
	err := s.dir.Names(func(names []string) bool {
		for _, n := range names {
			if !wire.IsName(n) {
				continue
			}
			switch err := s.Box(wire.Name(n)).Present(); {
			case err == nil:
				out = append(out, wire.Name(n))
			case !errors.Is(err, ErrNoAgent) && !errors.Is(err, atomicfile.ErrNotDirectory):
				unseen = err
			}
		}
		return unseen == nil
	})
	slices.Sort(out)
	return out, errors.Join(err, unseen)
}

// Create makes a mailbox. It is built under a dot name and renamed into place:
// half-made ones are none. ErrExists when there is one.
func (s *Store) Create(ctx context.Context, agent wire.Name) error {
	if _, err := wire.ParseName(string(agent)); err != nil {
		return err
	}
	unlock, err := s.lock(ctx, "team", lockfile.Exclusive, nil)
	if err != nil {
		return err
	}
	defer unlock()
	switch err := s.Box(agent).seen(); {
	case err == nil:
		return fmt.Errorf("%s: %w", agent, ErrExists)
	case !errors.Is(err, ErrNoAgent):
		return err
	}
	// What is there without an inbox/new is completed where it is.
	if has, err := s.dir.Has(string(agent)); err != nil {
		return err
	} else if has {
		if err := s.furnish(string(agent)); err != nil {
			return err
		}
		return s.dir.Sync()
	}
	build := "." + string(agent) + ".making"
	if err := s.furnish(build); err != nil {
		return err
	}
	if err := atomicfile.Move(s.dir, build, s.dir, string(agent)); err != nil {
		return err
	}
	return s.dir.Sync()
}

// furnish makes the directories of a mailbox, inbox/new last.
func (s *Store) furnish(name string) error {
	d, err := s.dir.Make(name)
	if err != nil {
		return err
	}
	defer d.Close()
	for _, sub := range [][]string{{"inbox", "tmp"}, {"inbox", "cur"}, {"inbox", "done"}, {"inbox", "bad"}, {"sent"}, {"events"}, {"inbox", "new"}} {
		c, err := d.Make(sub...)
		if err != nil {
			return err
		}
		c.Close()
	}
	// A power cut must not leave the name without what is behind it.
	inbox, err := d.Sub("inbox")
	if err != nil {
		return err
	}
	defer inbox.Close()
	return errors.Join(inbox.Sync(), d.Sync())
}

// Running reports whether a runner holds the agent's runner lock: the proof of
// life. The lock is probed and let go at once.
func (s *Store) Running(agent wire.Name) (bool, error) {
	return s.locks.Held(string(agent) + ".runner")
}

// now is the time by which leases run.
func (s *Store) now() time.Time {
	if s.clock != nil {
		return s.clock()
	}
	return time.Now()
}

func (s *Store) timeout() time.Duration {
	if s.LockTimeout > 0 {
		return s.LockTimeout
	}
	return DefaultLockTimeout
}

func (s *Store) lock(ctx context.Context, name string, m lockfile.Mode, seen func() error) (unlock func(), err error) {
	l, err := s.locks.Lock(ctx, name, m, s.timeout(), seen)
	if err != nil {
		return nil, err
	}
	return func() { l.Unlock() }, nil
}

// Box is one agent's mailbox.
type Box struct {
	store *Store
	agent wire.Name
}

// Agent is the name of the mailbox's owner.
func (b *Box) Agent() wire.Name { return b.agent }

// Address is the owner's full address.
func (b *Box) Address() wire.Address { return wire.Address{Agent: b.agent, Team: b.store.Team} }

// Path is the directory of the mailbox: for watching it, and for messages to
// people. Nothing is opened by it here.
func (b *Box) Path() string { return filepath.Join(b.store.dir.Path(), string(b.agent)) }

// Store is where the mailbox lies.
func (b *Box) Store() *Store { return b.store }

// Exists reports whether the mailbox is there: a directory with inbox/new.
func (b *Box) Exists() bool { return b.seen() == nil }

// Present is nil when the mailbox is there, ErrNoAgent when it is not, and
// another error when that cannot be said.
func (b *Box) Present() error { return b.seen() }

// seen is Exists with the reason: ErrNoAgent only when it is not there.
func (b *Box) seen() error {
	r, err := b.enter()
	if err == nil {
		r.close()
	}
	return err
}

func (b *Box) noAgent() error { return fmt.Errorf("%s: %w", b.Address(), ErrNoAgent) }

func (b *Box) lock(ctx context.Context, what string, m lockfile.Mode) (unlock func(), err error) {
	return b.store.lock(ctx, string(b.agent)+"."+what, m, b.seen)
}

// room is a mailbox opened by path, at one moment.
type room struct {
	box   *Box
	fresh *atomicfile.Dir // inbox/new
	lent  bool            // fresh is somebody else's, who closes it
	sub   []subdir

	unleased bool // there was no directory of leases when holders looked

	foreign []string // names met in new that are no message's
	took    bool     // they were offered to takeIn
	bad     int      // files that were moved to bad for it

	said []wire.Event // to be appended when the lock is let go of (leaseevent.go)
}

// subdir is a directory of the mailbox that is open: a handful, of which a map
// would be slower.
type subdir struct {
	path string
	*atomicfile.Dir
}

// opened is a directory that dir remembers, nil when it is not open.
func (r *room) opened(path string) *atomicfile.Dir {
	for _, s := range r.sub {
		if s.path == path {
			return s.Dir
		}
	}
	return nil
}

// release forgets a directory that dir remembers, and returns it: it is the
// caller's.
func (r *room) release(path string) (d *atomicfile.Dir) {
	r.sub = slices.DeleteFunc(r.sub, func(s subdir) bool {
		if s.path == path {
			d = s.Dir
		}
		return s.path == path
	})
	return d
}

// enter opens the mailbox: the agent's directory, its inbox and new, none of
// them a link.
func (b *Box) enter() (*room, error) {
	fresh, err := b.store.dir.Walk(string(b.agent), "inbox", "new")
	if err != nil {
		return nil, b.absent(err)
	}
	return &room{box: b, fresh: fresh}, nil
}

// enterAgain is enter for who has opened the mailbox before (nil: has not): its
// new need not be opened again if it is what lies at its path now. before stays
// the caller's.
func (b *Box) enterAgain(before *room) (*room, error) {
	if before != nil && b.store.dir.Still(before.fresh, string(b.agent), "inbox", "new") {
		return &room{box: b, fresh: before.fresh, lent: true}, nil
	}
	return b.enter()
}

func (b *Box) absent(err error) error {
	if atomicfile.Absent(err) {
		return b.noAgent()
	}
	return err
}

func (r *room) close() {
	r.letGo()
	if !r.lent {
		r.fresh.Close()
	}
}

// letGo closes all but new.
func (r *room) letGo() {
	for _, s := range r.sub {
		s.Close()
	}
	r.sub = nil
}

// Places of a message, in the order in which it moves.
const (
	placeNew       = "new"
	placeAside     = "aside"
	placeCur       = "cur"
	placeDone      = "done"
	placeWithdrawn = "withdrawn"
	placeArchive   = "archive"
)

// dir opens a directory of the mailbox by a path such as "inbox/done/2026-01-02"
// once, and remembers it. Absent: nil, nil, unless it is to be made. A path
// that begins with "archive/" lies in the team's archive for this agent.
func (r *room) dir(path string, make bool) (*atomicfile.Dir, error) {
	if path == "inbox/new" {
		return r.fresh, nil
	}
	if d := r.opened(path); d != nil {
		return d, nil
	}
	base, parts := []string{string(r.box.agent)}, strings.Split(path, "/")
	switch parts[0] {
	case "inbox":
		base, parts = append(base, "inbox"), parts[1:]
	case placeArchive:
		base, parts = nil, append([]string{".archive", string(r.box.agent)}, parts[1:]...)
	case "":
		parts = nil
	}
	d, err := r.box.store.dir.Walk(append(base[:len(base):len(base)], parts...)...)
	if atomicfile.Absent(err) {
		if !make {
			return nil, nil
		}
		d, err = r.box.store.makeBelow(base, parts)
	}
	if err != nil {
		return nil, err
	}
	r.sub = append(r.sub, subdir{path, d})
	return d, nil
}

// makeBelow makes directories below one that is there: a mailbox itself is
// never made on the way, since it may have been retired.
func (s *Store) makeBelow(base, parts []string) (*atomicfile.Dir, error) {
	if len(base) == 0 {
		return s.dir.Make(parts...)
	}
	from, err := s.dir.Walk(base...)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	return from.Make(parts...)
}

// forget closes a directory that dir remembers.
func (r *room) forget(path string) {
	if d := r.release(path); d != nil {
		d.Close()
	}
}

// place is where a message lies.
type place struct {
	name string // one of the places above
	path string // for room.dir
}

func placesOf(id wire.ID) [6]place {
	return [6]place{
		{placeNew, "inbox/new"},
		{placeAside, asideDir},
		{placeCur, "inbox/cur"},
		{placeDone, "inbox/done/" + id.Day()},
		{placeWithdrawn, "inbox/withdrawn"},
		{placeArchive, "archive/done/" + id.Day()},
	}
}

// locate says where the message with this full id lies, looking in the order
// in which messages move; no listing. ok is false when it is nowhere.
func (r *room) locate(id wire.ID) (p place, ok bool, err error) {
	name := string(id) + ".json"
	for _, p := range placesOf(id) {
		if p.name == placeDone || p.name == placeArchive {
			// gc may have moved the whole day since this room opened it.
			r.forget(p.path)
		}
		d, err := r.dir(p.path, false)
		if err != nil {
			return p, false, err
		}
		if d == nil {
			continue
		}
		has, err := d.Has(name)
		if has || err != nil {
			return p, has, err
		}
	}
	return place{}, false, nil
}

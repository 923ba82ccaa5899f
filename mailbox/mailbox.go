// Package mailbox keeps messages as files, one mailbox an agent.
//
// Anybody may deliver to a mailbox at any time; a delivery is whole or absent, and once reported it
// survives a power cut. A message is never edited: its file is written once and then only renamed, and
// nothing here ever deletes one that is unread. The directory is the state:
//
//	<agent>/inbox/          drop any file here by hand
//	    tmp/                being written, or being taken in
//	    new/<id>.json       delivered, unread
//	    cur/<id>.json       read, an acknowledgement still owed
//	    done/<day>/<id>.json
//	    withdrawn/<id>.json
//	    superseded/         which message replaces which
//	    bad/                what could not be understood, with <name>.reason
//	<agent>/sent/<day>/     what the agent sent: an index, not synced
//	<agent>/sent/once/      the ids of what it sent under names of its own
//	<agent>/events/         see package eventlog
//	<agent>/run/claims.json unread messages that somebody is handling
//	<agent>/shared          there: other members may take from this inbox
//
// # What may be relied on
//
// Publishing and moving never replace. A message is in one of new, cur, done and withdrawn (or the archive),
// and moves in that order; only MarkUnread moves back, under a lock that excludes those who look for an id.
// So whoever looks in this order finds a message that is there, and of two copies the first counts.
//
// Reading shows first and moves after, and moves only what the reader has received: a reader that is
// killed at any instant sees a message again, never loses one.
//
// Ids order a display. Nothing here decides by them what is new.
//
// # Locks
//
// All are flocks on files under the team's .locks. Only runner is held while waiting for more than the file system and,
// at most two seconds, the output of Read. Their order: runner, team, drops, inbox, reader, events; never those of two
// agents at once. Looking takes none. What was looked at before a lock does not count: things are reached by their path
// below the team's directory, and the inbox that a delivery has opened is compared with the one at its path.
package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/mailbox/eventlog"
	"github.com/agentteammail/atm/wire"
)

// Errors that callers tell apart.
var (
	ErrNoAgent    = errors.New("no such agent")
	ErrNotFound   = errors.New("no such message")
	ErrExists     = errors.New("already there")
	ErrUnreadable = errors.New("the inbox's owner could not read what this user writes")
	ErrRunning    = errors.New("is running")
	ErrWithdrawn  = errors.New("was withdrawn by its sender")
)

// UnloggedError says that something was done and could not be noted among the events.
type UnloggedError struct{ error }

func (e *UnloggedError) Unwrap() error { return e.error }

// DefaultLockTimeout is how long a store waits for a lock unless told.
const DefaultLockTimeout = 5 * time.Second

// Store is a directory of mailboxes: what a team is on disk, as far as mail goes.
type Store struct {
	Team        wire.Name
	LockTimeout time.Duration // 0: DefaultLockTimeout

	root  *durable.Root
	locks lockfile.Dir
}

// NewStore is the mailboxes in a team's directory, which the store closes with itself. The team's name
// goes into addresses only.
func NewStore(root *durable.Root, team wire.Name) *Store {
	return &Store{Team: team, root: root, locks: lockfile.In(root)}
}

// Close lets go of the directory.
func (s *Store) Close() error { return s.root.Close() }

func (s *Store) Dir() *durable.Root  { return s.root }
func (s *Store) Locks() lockfile.Dir { return s.locks }

// Box is the mailbox of an agent, who need not exist: the first operation that needs it returns ErrNoAgent.
func (s *Store) Box(agent wire.Name) *Box { return &Box{store: s, agent: agent} }

// Agents lists the agents, sorted.
func (s *Store) Agents() (agents []wire.Name, err error) {
	names, err := s.root.Names(".")
	for _, name := range names {
		if s.IsAgent(wire.Name(name)) {
			agents = append(agents, wire.Name(name))
		}
	}
	return agents, err
}

// IsAgent reports whether there is an agent of that name: a directory here that holds inbox/new. One whose
// inbox is damaged, or cannot be looked at, is an agent: who looks into the mailbox gets the error.
func (s *Store) IsAgent(name wire.Name) bool {
	isFile := errors.Is(s.root.IsDir(string(name)), durable.ErrNotDirectory)
	return wire.IsName(string(name)) && !isFile && !errors.Is(s.Box(name).Present(), ErrNoAgent)
}

// Create makes a mailbox. It is built under a dot name and renamed into place: half-made ones are none.
// ErrExists when there is one.
func (s *Store) Create(ctx context.Context, agent wire.Name) error {
	if _, err := wire.ParseName(string(agent)); err != nil {
		return err
	}
	unlock, err := s.lock(ctx, "team", lockfile.Exclusive, nil)
	if err != nil {
		return err
	}
	defer unlock()
	switch err := s.Box(agent).Present(); {
	case err == nil:
		return fmt.Errorf("%s: %w", agent, ErrExists)
	case !errors.Is(err, ErrNoAgent):
		return err
	}
	// What is there without an inbox/new is completed where it is, new last.
	isBroken, err := s.root.Exists(string(agent))
	if err != nil {
		return err
	}
	name := string(agent)
	if !isBroken {
		name = "." + name + "." + string(wire.NewID()) + ".making"
	}
	for _, sub := range []string{"inbox/tmp", "inbox/cur", "inbox/done", "inbox/bad", "sent", "events", "inbox/new"} {
		if err := s.root.MkdirAll(name + "/" + sub); err != nil {
			return err
		}
	}
	// A power cut must not leave the name without what is behind it.
	err = errors.Join(s.root.Sync(name+"/inbox"), s.root.Sync(name))
	if err == nil && !isBroken {
		err = s.root.Move(name, string(agent))
	}
	return cmp.Or(err, s.root.Sync("."))
}

// Running reports whether a runner holds the agent's runner lock: the proof of life. The lock is probed
// and let go at once.
func (s *Store) Running(agent wire.Name) (bool, error) {
	return s.locks.Held(string(agent) + ".runner")
}

func (s *Store) lock(ctx context.Context, name string, m lockfile.Mode, seen func() error) (unlock func(), err error) {
	l, err := s.locks.Lock(ctx, name, m, cmp.Or(s.LockTimeout, DefaultLockTimeout), seen)
	if err != nil {
		return nil, err
	}
	return func() { l.Unlock() }, nil
}

// Box is one agent's mailbox, or the outbox for an agent on another machine.
type Box struct {
	store *Store
	agent wire.Name
	host  wire.Name // of an outbox; "": the agent is here
}

// Agent is the name of the mailbox's owner.
func (b *Box) Agent() wire.Name { return b.agent }

// Address is the owner's full address.
func (b *Box) Address() wire.Address {
	return wire.Address{Agent: b.agent, Team: b.store.Team, Host: b.host}
}

// Path is the directory of the mailbox: for watching it, and for messages to people.
func (b *Box) Path() string { return b.store.root.Join(b.in()) }

func (b *Box) Store() *Store { return b.store }

// Exists reports whether the mailbox is there: a directory with inbox/new.
func (b *Box) Exists() bool { return b.Present() == nil }

// Present is nil when the mailbox is there, ErrNoAgent when it is not, and another error when that cannot
// be said. No part of its path may be a link. An outbox is made by its first delivery.
func (b *Box) Present() error {
	if b.host != "" {
		return nil
	}
	for _, dir := range []string{"", "inbox", "inbox/new"} {
		err := b.store.root.IsDir(b.in(dir))
		if errors.Is(err, fs.ErrNotExist) {
			return b.noAgent()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *Box) noAgent() error { return fmt.Errorf("%s: %w", b.Address(), ErrNoAgent) }

// in is the path, below the team's directory, of something in the mailbox.
func (b *Box) in(elem ...string) string {
	if b.host != "" { // the inbox of an outbox is all there is of it
		below := strings.TrimPrefix(path.Join(elem...), "inbox")
		return path.Join(BridgeDir, string(b.host), below)
	}
	return path.Join(append([]string{string(b.agent)}, elem...)...)
}

func (b *Box) archived(elem ...string) string { return path.Join(".archive", b.in(elem...)) }

// lockName is the name of one of the mailbox's locks: bob.inbox, of an outbox .bridge.build.inbox.
func (b *Box) lockName(lock string) string { return strings.ReplaceAll(b.in(), "/", ".") + "." + lock }

// lock gets one of the mailbox's locks, if the mailbox is there.
func (b *Box) lock(ctx context.Context, lock string) (unlock func(), err error) {
	unlock, err = b.store.lock(ctx, b.lockName(lock), lockfile.Exclusive, b.Present)
	if err == nil {
		if err = b.Present(); err != nil {
			unlock()
		}
	}
	return unlock, err
}

func (b *Box) locked(ctx context.Context, lock string, f func() error) error {
	unlock, err := b.lock(ctx, lock)
	if err != nil {
		return err
	}
	defer unlock()
	return f()
}

// mkdir makes a directory of the mailbox, never the mailbox itself, which may have been retired. Something else that
// lies where a day of messages belongs is moved to bad.
func (b *Box) mkdir(dir string) error {
	if dir == b.in() {
		return cmp.Or(b.Present(), b.noAgent())
	}
	root, above := b.store.root, path.Dir(dir)
	err := root.Mkdir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = b.mkdir(above); err == nil {
			err = root.Mkdir(dir)
		}
	}
	if errors.Is(err, durable.ErrNotDirectory) && isDay(path.Base(dir)) && root.IsDir(above) == nil {
		if err = b.setAside(dir, path.Base(dir), "it was in the place of a directory for messages"); err == nil {
			err = root.Mkdir(dir)
		}
	}
	return err
}

// Log is the agent's event log.
func (b *Box) Log() *eventlog.Log {
	lock := func(ctx context.Context) (func(), error) { return b.lock(ctx, "events") }
	return &eventlog.Log{Root: b.store.root, Owner: b.Address(), Lock: lock, Present: b.Present}
}

// note appends events about messages to the agent's log, which an outbox has not. What they tell of is done: they are
// appended though the caller has been interrupted meanwhile, and a failure is an *UnloggedError.
func (b *Box) note(ctx context.Context, events ...wire.Event) error {
	if b.host != "" {
		return nil
	}
	if err := b.Log().Append(context.WithoutCancel(ctx), events...); err != nil {
		return &UnloggedError{fmt.Errorf("done, but not recorded in the event log: %w", err)}
	}
	return nil
}

func event(source, kind string, id wire.ID) wire.Event {
	return wire.Event{Kind: kind, Source: source}.With("id", string(id))
}

// absent reports whether an error says that a file, or a directory above it, is not there: a stray file
// in place of a directory holds no messages.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func isUnwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

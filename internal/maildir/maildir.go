// Package maildir keeps messages as files, one mailbox per agent.
//
// Anybody may deliver to a mailbox at any time. A delivery is whole or absent, and once reported it survives a power
// cut. A message file is written once and then only renamed, and an unread message is never deleted. The directory is
// the state:
//
//	<agent>/inbox/          drop any file here by hand
//	    tmp/                being written or ingested
//	    new/<id>.json       delivered, unread; hidden while it is not due
//	    held/<holder>/<id>.json  unread, and somebody has it, or had it last: see package holder
//	    cur/<id>.json       read, an acknowledgement still owed
//	    done/<day>/<id>.json
//	    withdrawn/<id>.json
//	    bad/                files that are not messages, each with <name>.reason
//	<agent>/sent/<day>/     what the agent sent: an index, not synced
//	<agent>/sent/once/      idempotency keys
//	<agent>/events/         see package eventlog
//	<agent>/run/headers/    what is kept of the messages of each directory: a cache
//	<agent>/shared          marks an inbox from which other members may lease messages
//
// # Guarantees
//
// Publishing and moving never replace a file. A message is in new or held, cur, done, withdrawn or the archive, and moves in
// that order. Only MarkUnread moves it back, under a lock that keeps out deliveries which look for an id. So a lookup
// in this order finds every message, and of two copies the first counts.
//
// Read shows messages first, and then moves those that its reader received. A reader that is killed sees a message
// again; it never loses one. Two that read at once may both see it.
//
// Ids only order a display. They never decide what is new.
//
// # Locks
//
// All locks are flocks on files under the team's .locks, taken in this order: runner, team, drops, inbox, reader,
// events; never locks of two agents at once. Only runner and wake are held while waiting for more than the file system.
// Looking takes no lock. A look before a lock does not count after it: files are reached by their path below the team's
// directory.
//
// # Rooms
//
// Here are the store, a mailbox and its folders, and how a message is delivered, found, listed and moved. The packages below
// have the rest, as functions on a box. Each may use those above it in this list:
//
//	holder      who has an unread message
//	filestore   the content of attachments
//	headers     what a look asks of messages, kept beside them
//	maildir
//	once        idempotency keys
//	drop        files that were dropped into a mailbox become messages
//	inbox       look at an inbox and read it: dropped files come first
//	claim       who gets unread messages: a runner, a session's hook, a member with a lease, a bridge
//	keep        gc, retired mailboxes, what a backup takes, what doctor checks
package maildir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// Errors that callers tell apart.
var (
	ErrNoMailbox  = errors.New("no such agent")
	ErrNotFound   = errors.New("no such message")
	ErrIDTaken    = errors.New("another message has this id")                                        // an *IDTakenError
	ErrNotDurable = errors.New("it may not survive a power cut: deliver it again, with the same id") // a *NotDurableError
	ErrExists     = errors.New("already there")
	ErrUnreadable = errors.New("the inbox's owner could not read what this user writes")
	ErrRunning    = errors.New("another runner runs it")
	ErrWithdrawn  = errors.New("was withdrawn by its sender")
)

// UnloggedError says that the operation was done but could not be logged as an event.
type UnloggedError struct{ error }

func (e *UnloggedError) Unwrap() error { return e.error }

// Store holds the mailboxes of a team; internal/teamdir opens it.
type Store struct {
	Team        wire.Name
	LockTimeout time.Duration // 0: lockfile.DefaultTimeout

	// MayAct is called after a look at the store. It returns why nothing of what was seen may act: no dropped file is
	// ingested, no mail goes out by itself, from a runner, a hook or a bridge, and none comes in from another root. It may
	// run for seconds.
	MayAct func(context.Context) error

	// Appended is called after events were appended to an agent's log, without a lock of it; nil: nobody wants to know.
	Appended func(ctx context.Context, agent wire.Name, events []wire.Event)

	IsOfRoot bool // internal/teamdir has opened it with its root, and closes it with that

	root    *durable.Root
	locks   lockfile.Dir
	waiting *sync.Map // a folder to what its messages wait for: see Box.waiting
}

// NewStore returns the store in a team's directory, and closes root when it is closed. The team's name is used only in
// addresses.
func NewStore(root *durable.Root, team wire.Name) *Store {
	always := func(context.Context) error { return nil }
	return &Store{Team: team, MayAct: always, root: root, locks: lockfile.In(root), waiting: new(sync.Map)}
}

// Close closes the team's directory.
func (s *Store) Close() error { return s.root.Close() }

// Dir returns the team's directory.
func (s *Store) Dir() *durable.Root { return s.root }

// Locks returns the directory of the team's locks.
func (s *Store) Locks() lockfile.Dir { return s.locks }

// Box returns the mailbox of an agent. If there is no such agent, the operations on it find nothing or return
// ErrNoMailbox.
func (s *Store) Box(agent wire.Name) *Box { return &Box{store: s, agent: agent} }

// Agents lists the agents, sorted.
func (s *Store) Agents() (agents []wire.Name, err error) {
	agents = []wire.Name{} // in JSON nobody is [], not null
	names, err := s.root.Names(".")
	for _, name := range names {
		if s.IsAgent(wire.Name(name)) {
			agents = append(agents, wire.Name(name))
		}
	}
	return agents, err
}

// IsAgent reports whether there is an agent of that name: a directory that holds inbox/new. An agent whose inbox is
// damaged or not accessible still counts: opening the mailbox reports the error.
func (s *Store) IsAgent(name wire.Name) bool {
	if !wire.IsName(string(name)) {
		return false
	}
	err := s.Box(name).CheckPresent()
	return err == nil || !errors.Is(err, ErrNoMailbox) && !errors.Is(s.root.IsDir(string(name)), durable.ErrNotDirectory)
}

// Added returns a time since which a mailbox is there, or later: files that are dropped into its inbox make it later.
func (s *Store) Added(agent wire.Name) (time.Time, error) {
	info, err := s.root.Lstat(s.Box(agent).In("inbox"))
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// Create makes a mailbox, or returns ErrExists. It is built under a dot name and renamed into place, so a half-made
// mailbox is never visible.
func (s *Store) Create(ctx context.Context, agent wire.Name) error {
	if _, err := wire.ParseName(string(agent)); err != nil {
		return err
	}
	unlock, err := s.Lock(ctx, "team", lockfile.Exclusive, nil)
	if err != nil {
		return err
	}
	defer unlock()
	err = s.Box(agent).CheckPresent()
	if err == nil {
		return fmt.Errorf("%s: %w", agent, ErrExists)
	}
	if !errors.Is(err, ErrNoMailbox) {
		return err
	}
	// A directory without inbox/new is completed where it is, new last.
	isBroken, err := s.root.Exists(string(agent))
	if err != nil {
		return err
	}
	name := string(agent)
	if !isBroken {
		name = "." + name + "." + string(wire.NewID()) + ".making"
	}
	for _, sub := range mailboxDirs {
		if err := s.root.MkdirAll(name + "/" + sub); err != nil {
			return err
		}
	}
	// After a power cut the name must not be there without its directories.
	err = errors.Join(s.root.Sync(name+"/inbox"), s.root.Sync(name))
	if err == nil && !isBroken {
		err = s.root.Move(name, string(agent))
	}
	return cmp.Or(err, s.root.Sync("."))
}

// mailboxDirs are the directories of a mailbox. The last one makes it one.
var mailboxDirs = []string{"inbox/tmp", "inbox/cur", "inbox/done", "inbox/bad", "sent", "events", "inbox/new"}

// Running reports whether a runner holds the agent's runner lock, which proves that the runner is alive.
func (s *Store) Running(agent wire.Name) (bool, error) {
	return s.locks.Held(s.Box(agent).LockName("runner"))
}

// Lock takes a lock if check (nil: always) allows it before and after.
func (s *Store) Lock(ctx context.Context, name string, m lockfile.Mode, check func() error) (unlock func(), err error) {
	l, err := s.locks.Lock(ctx, name, m, cmp.Or(s.LockTimeout, lockfile.DefaultTimeout), check)
	if err != nil {
		return nil, err
	}
	if check != nil {
		if err := check(); err != nil {
			l.Unlock()
			return nil, err
		}
	}
	return func() { l.Unlock() }, nil
}

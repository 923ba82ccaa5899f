// Package maildir keeps messages as files, one mailbox per agent.
//
// Anybody may deliver to a mailbox at any time. A delivery is whole or absent, and once reported it survives a power
// cut. A message file is written once and then only renamed, and an unread message is never deleted. The directory is
// the state:
//
//	<agent>/inbox/          drop any file here by hand
//	    tmp/                being written or ingested
//	    new/<id>.json       delivered, unread
//	    cur/<id>.json       read, an acknowledgement still owed
//	    done/<day>/<id>.json
//	    withdrawn/<id>.json
//	    bad/                files that are not messages, each with <name>.reason
//	<agent>/sent/<day>/     what the agent sent: an index, not synced
//	<agent>/sent/once/      idempotency keys
//	<agent>/events/         see package eventlog
//	<agent>/run/claims.json unread messages that a runner, a session or a lease claims
//	<agent>/shared          marks an inbox from which other members may lease messages
//
// # Guarantees
//
// Publishing and moving never replace a file. A message is in new, cur, done, withdrawn or the archive, and moves in
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
package maildir

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
	ErrIDTaken    = errors.New("another message has this id")                                        // an *IDTakenError
	ErrNotDurable = errors.New("it may not survive a power cut: deliver it again, with the same id") // a *NotDurableError
	ErrExists     = errors.New("already there")
	ErrUnreadable = errors.New("the inbox's owner could not read what this user writes")
	ErrRunning    = errors.New("is running")
	ErrWithdrawn  = errors.New("was withdrawn by its sender")
)

// UnloggedError says that the operation was done but could not be logged as an event.
type UnloggedError struct{ error }

func (e *UnloggedError) Unwrap() error { return e.error }

// Store holds the mailboxes of a team; internal/teamdir opens it.
type Store struct {
	Team        wire.Name
	LockTimeout time.Duration // 0: lockfile.DefaultTimeout

	// BeforeLook is called before the store is looked at, and the function that it returns after it. That returns why
	// nothing of what was seen may act: no dropped file is ingested, and no mail goes out by itself, from a runner, a
	// hook or a bridge. It may run for seconds.
	BeforeLook func() (mayAct func(context.Context) error)

	// Appended is called after events were appended to an agent's log, without a lock of it; nil: nobody wants to know.
	Appended func(ctx context.Context, agent wire.Name, events []wire.Event)

	root  *durable.Root
	locks lockfile.Dir
}

// NewStore returns the store in a team's directory, and closes root when it is closed. The team's name is used only in
// addresses.
func NewStore(root *durable.Root, team wire.Name) *Store {
	always := func() func(context.Context) error { return func(context.Context) error { return nil } }
	return &Store{Team: team, BeforeLook: always, root: root, locks: lockfile.In(root)}
}

// MayAct returns why nothing in the store may act now; see BeforeLook.
func (s *Store) MayAct(ctx context.Context) error { return s.BeforeLook()(ctx) }

// Close closes the team's directory.
func (s *Store) Close() error { return s.root.Close() }

// Dir returns the team's directory.
func (s *Store) Dir() *durable.Root { return s.root }

// Locks returns the directory of the team's locks.
func (s *Store) Locks() lockfile.Dir { return s.locks }

// Box returns the mailbox of an agent. If there is no such agent, the operations on it find nothing or return
// ErrNoAgent.
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
	isFile := errors.Is(s.root.IsDir(string(name)), durable.ErrNotDirectory)
	return wire.IsName(string(name)) && !isFile && !errors.Is(s.Box(name).CheckPresent(), ErrNoAgent)
}

// Create makes a mailbox, or returns ErrExists. It is built under a dot name and renamed into place, so a half-made
// mailbox is never visible.
func (s *Store) Create(ctx context.Context, agent wire.Name) error {
	if _, err := wire.ParseName(string(agent)); err != nil {
		return err
	}
	unlock, err := s.lock(ctx, "team", lockfile.Exclusive, nil)
	if err != nil {
		return err
	}
	defer unlock()
	err = s.Box(agent).CheckPresent()
	if err == nil {
		return fmt.Errorf("%s: %w", agent, ErrExists)
	}
	if !errors.Is(err, ErrNoAgent) {
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

// Complete makes the directories of a mailbox again that were removed while its agent runs: git and rmdir remove empty ones.
// A held runner lock proves that it is a mailbox; one whose own directory is gone was retired or removed. It returns what
// CheckPresent returns then.
func (b *Box) Complete() error {
	err := b.CheckPresent()
	if !errors.Is(err, ErrNoAgent) || b.store.root.IsDir(b.in("")) != nil {
		return err
	}
	if isRunning, _ := b.store.Running(b.agent); !isRunning {
		return err
	}
	for _, sub := range append([]string{"inbox"}, mailboxDirs...) {
		if err := b.store.root.Mkdir(b.in(sub)); err != nil { // its parent must be there still
			return err
		}
	}
	return b.CheckPresent()
}

// Running reports whether a runner holds the agent's runner lock, which proves that the runner is alive.
func (s *Store) Running(agent wire.Name) (bool, error) {
	return s.locks.Held(s.Box(agent).lockName("runner"))
}

// lock takes a lock if check (nil: always) allows it before and after.
func (s *Store) lock(ctx context.Context, name string, m lockfile.Mode, check func() error) (unlock func(), err error) {
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

// Box is one agent's mailbox, or the outbox for a host.
type Box struct {
	store *Store
	agent wire.Name
	host  wire.Name // set for an outbox
}

// Agent returns the name of the mailbox's owner.
func (b *Box) Agent() wire.Name { return b.agent }

// Address returns the owner's full address.
func (b *Box) Address() wire.Address {
	return wire.Address{Agent: b.agent, Team: b.store.Team, Host: b.host}
}

// Path returns the mailbox's directory, for watchers and for messages to people.
func (b *Box) Path() string { return b.store.root.Join(b.in()) }

// Store returns the store that the mailbox belongs to.
func (b *Box) Store() *Store { return b.store }

// Exists reports whether the mailbox is known to exist.
func (b *Box) Exists() bool { return b.CheckPresent() == nil }

// CheckPresent returns nil if the mailbox exists, ErrNoAgent if it does not, and another error if that is not known. No
// part of its path may be a link. An outbox is always present: its first delivery makes it.
func (b *Box) CheckPresent() error {
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

// in returns the path of something in the mailbox, below the team's directory.
func (b *Box) in(elem ...string) string {
	if b.host != "" { // an outbox is only an inbox
		below := strings.TrimPrefix(path.Join(elem...), "inbox")
		return path.Join(BridgeDir, string(b.host), below)
	}
	return path.Join(append([]string{string(b.agent)}, elem...)...)
}

// archived returns the path of something in the archive. A retired mailbox has the archive of its former name.
func (b *Box) archived(elem ...string) string {
	in := b.in()
	if kept, isRetired := strings.CutPrefix(in, RetiredDir+"/"); isRetired {
		in, _, _ = strings.Cut(kept, ".")
	}
	return path.Join(append([]string{".archive", in}, elem...)...)
}

// lockName returns the name of one of the mailbox's locks: bob.inbox, or .bridge.build.inbox for an outbox.
func (b *Box) lockName(lock string) string { return strings.ReplaceAll(b.in(), "/", ".") + "." + lock }

// lock takes one of the mailbox's locks, if the mailbox exists.
func (b *Box) lock(ctx context.Context, lock string) (unlock func(), err error) {
	return b.store.lock(ctx, b.lockName(lock), lockfile.Exclusive, b.CheckPresent)
}

func (b *Box) locked(ctx context.Context, lock string, f func() error) error {
	unlock, err := b.lock(ctx, lock)
	if err != nil {
		return err
	}
	defer unlock()
	return f()
}

// mkdir makes a directory in the mailbox and its missing parents, but never the mailbox itself or its inbox: it may
// have been retired. A file named like a day, where that day's directory belongs, is moved to bad.
func (b *Box) mkdir(dir string) error {
	if dir == b.in() || dir == b.in("inbox") {
		return cmp.Or(b.CheckPresent(), b.noAgent())
	}
	root, above := b.store.root, path.Dir(dir)
	err := root.Mkdir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = b.mkdir(above); err == nil {
			err = root.Mkdir(dir)
		}
	}
	if errors.Is(err, durable.ErrNotDirectory) && isDay(path.Base(dir)) && root.IsDir(above) == nil {
		if err = b.moveToBad(dir, path.Base(dir), "it was in the place of a directory for messages"); err == nil {
			err = root.Mkdir(dir)
		}
	}
	return err
}

// Log returns the agent's event log.
func (b *Box) Log() *eventlog.Log {
	lock := func(ctx context.Context) (func(), error) { return b.lock(ctx, "events") }
	appended := func(ctx context.Context, events []wire.Event) {
		if b.store.Appended != nil {
			b.store.Appended(ctx, b.agent, events)
		}
	}
	return eventlog.New(b.store.root, b.Address(), lock, b.CheckPresent, appended)
}

// logEvents appends events about messages to the agent's log; an outbox has none. The moves they describe are done, so
// a cancelled context does not stop it, and a failure is an *UnloggedError.
func (b *Box) logEvents(ctx context.Context, events ...wire.Event) error {
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

func isUnwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

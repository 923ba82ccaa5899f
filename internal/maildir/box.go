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

// Box is one agent's mailbox, or the outbox for a host.
type Box struct {
	store *Store
	agent wire.Name
	host  wire.Name // set for an outbox

	as, from wire.Name // set for a mailbox in another root: see Linked
}

// Agent returns the name of the mailbox's owner.
func (b *Box) Agent() wire.Name { return b.agent }

// Address returns the owner's full address.
func (b *Box) Address() wire.Address {
	return b.addressHere(wire.Address{Agent: b.agent, Team: b.store.Team, Host: b.host})
}

// Host returns the host that an outbox is for; "": it is a mailbox.
func (b *Box) Host() wire.Name { return b.host }

// Path returns the mailbox's directory, for watchers and for messages to people.
func (b *Box) Path() string { return b.store.root.Join(b.In()) }

// Store returns the store that the mailbox belongs to.
func (b *Box) Store() *Store { return b.store }

// Exists reports whether the mailbox is known to exist.
func (b *Box) Exists() bool { return b.CheckPresent() == nil }

// CheckPresent returns nil if the mailbox exists, ErrNoMailbox if it does not, and another error if that is not known. No
// part of its path may be a link. An outbox is always present: its first delivery makes it.
func (b *Box) CheckPresent() error {
	if b.host != "" {
		return nil
	}
	for _, dir := range []string{"", "inbox", "inbox/new"} {
		err := b.store.root.IsDir(b.In(dir))
		if errors.Is(err, fs.ErrNotExist) {
			return b.noAgent()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *Box) noAgent() error { return fmt.Errorf("%s: %w", b.Address(), ErrNoMailbox) }

// Complete makes the directories of a mailbox again that were removed while its agent runs: git and rmdir remove empty ones.
// A held runner lock proves that it is a mailbox; one whose own directory is gone was retired or removed. It returns what
// CheckPresent returns then.
func (b *Box) Complete() error {
	err := b.CheckPresent()
	if !errors.Is(err, ErrNoMailbox) || b.store.root.IsDir(b.In("")) != nil {
		return err
	}
	if isRunning, _ := b.store.Running(b.agent); !isRunning {
		return err
	}
	return b.MakeWhole()
}

// MakeWhole makes the directories of a mailbox that are missing: git and archives may leave out empty ones.
func (b *Box) MakeWhole() error {
	for _, sub := range append([]string{"inbox"}, mailboxDirs...) {
		if err := b.store.root.Mkdir(b.In(sub)); err != nil { // its parent must be there still
			return err
		}
	}
	return b.CheckPresent()
}

// In returns the path of something in the mailbox, below the team's directory.
func (b *Box) In(elem ...string) string {
	if b.host != "" { // an outbox is only an inbox
		below := strings.TrimPrefix(path.Join(elem...), "inbox")
		return path.Join(BridgeDir, string(b.host), below)
	}
	return path.Join(append([]string{string(b.agent)}, elem...)...)
}

// RetiredDir is where the mailboxes of retired members are, in the team's directory.
const RetiredDir = ".archive/retired"

// Archived returns the path of something in the archive. A retired mailbox has the archive of its former name.
func (b *Box) Archived(elem ...string) string {
	in := b.In()
	if kept, isRetired := strings.CutPrefix(in, RetiredDir+"/"); isRetired {
		in, _, _ = strings.Cut(kept, ".")
	}
	return path.Join(append([]string{".archive", in}, elem...)...)
}

// LockName returns the name of one of the mailbox's locks: bob.inbox, or .bridge.build.inbox for an outbox.
func (b *Box) LockName(lock string) string { return strings.ReplaceAll(b.In(), "/", ".") + "." + lock }

// Lock takes one of the mailbox's locks, if the mailbox exists.
func (b *Box) Lock(ctx context.Context, lock string) (unlock func(), err error) {
	return b.store.Lock(ctx, b.LockName(lock), lockfile.Exclusive, b.CheckPresent)
}

// Locked calls f under one of the mailbox's locks.
func (b *Box) Locked(ctx context.Context, lock string, f func() error) error {
	unlock, err := b.Lock(ctx, lock)
	if err != nil {
		return err
	}
	defer unlock()
	return f()
}

// A probe holds the runner lock shared for an instant, which may take long where there is much to do: a runner that starts
// looks after probeTime whether a runner or probes hold the lock, and waits longer for probes.
const (
	probeTime  = time.Second
	probesTime = 30 * time.Second
)

// LockRunner takes the runner lock, or returns ErrRunning.
func (b *Box) LockRunner(ctx context.Context, m lockfile.Mode) (*lockfile.Lock, error) {
	for began := time.Now(); ; {
		l, err := b.store.locks.Lock(ctx, b.LockName("runner"), m, probeTime, b.CheckPresent)
		held, ok := errors.AsType[*lockfile.HeldError](err)
		if !ok {
			return l, err
		}
		if b.IsRunning() || time.Since(began) > probesTime {
			return nil, fmt.Errorf("%s: %w: %v", b.Address(), ErrRunning, held)
		}
	}
}

// IsRunning reports whether the agent's runner lock is held, also if that is not known: readers then skip what a runner
// may be typing.
func (b *Box) IsRunning() bool {
	running, err := b.store.Running(b.agent)
	return running || err != nil
}

// Mkdir makes a directory in the mailbox and its missing parents, but never the mailbox itself or its inbox: it may
// have been retired. A file named like a day, where that day's directory belongs, is moved to bad.
func (b *Box) Mkdir(dir string) error {
	if dir == b.In() || dir == b.In("inbox") {
		return cmp.Or(b.CheckPresent(), b.noAgent())
	}
	root, above := b.store.root, path.Dir(dir)
	err := root.Mkdir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = b.Mkdir(above); err == nil {
			err = root.Mkdir(dir)
		}
	}
	if errors.Is(err, durable.ErrNotDirectory) && isDay(path.Base(dir)) && root.IsDir(above) == nil {
		if err = b.MoveToBad(dir, path.Base(dir), "it was in the place of a directory for messages"); err == nil {
			err = root.Mkdir(dir)
		}
	}
	return err
}

// Log returns the agent's event log.
func (b *Box) Log() *eventlog.Log {
	lock := func(ctx context.Context) (func(), error) { return b.Lock(ctx, "events") }
	appended := func(ctx context.Context, events []wire.Event) {
		if b.store.Appended != nil {
			b.store.Appended(ctx, b.agent, events)
		}
	}
	return eventlog.New(b.store.root, b.AddressThere(b.Address()), lock, b.CheckPresent, appended)
}

// LogEvents appends events about messages to the agent's log; an outbox has none. The moves they describe are done, so
// a cancelled context does not stop it, and a failure is an *UnloggedError.
func (b *Box) LogEvents(ctx context.Context, events ...wire.Event) error {
	if b.host != "" {
		return nil
	}
	if err := b.Log().Append(context.WithoutCancel(ctx), events...); err != nil {
		return &UnloggedError{fmt.Errorf("done, but not recorded in the event log: %w", err)}
	}
	return nil
}

// Event returns an event about a message.
func Event(source, kind string, id wire.ID) wire.Event {
	return wire.Event{Kind: kind, Source: source}.With(wire.FieldID, string(id))
}

// IsUnwritable reports whether an error says that nothing can be written here: no permission, a read-only or a full disk.
func IsUnwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

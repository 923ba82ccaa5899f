package teamdir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/teamdir/snapshot"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// Team is a team, with the mailboxes of its members.
type Team struct {
	Store    *maildir.Store // the team's directory, with all mailboxes
	Name     wire.Name
	Progress func(messages int) // called by Search and Thread with how many they have looked at; nil: nobody asks

	root     *Root
	sessions *session.Store

	mu   sync.Mutex
	read readConfig
}

// Root is the team's root.
func (t *Team) Root() *Root { return t.root }

// Dir is the team's directory.
func (t *Team) Dir() *durable.Root { return t.Store.Dir() }

// Locks are the team's locks.
func (t *Team) Locks() lockfile.Dir { return t.Store.Locks() }

// Agents lists the members that have a mailbox, by name.
func (t *Team) Agents() ([]wire.Name, error) { return t.Store.Agents() }

// Box is the mailbox of a name, which may have none: see Member.
func (t *Team) Box(name wire.Name) *maildir.Box { return t.Store.Box(name) }

// State folds a member's events: see package snapshot.
func (t *Team) State(name wire.Name) (*reducer.State, error) { return snapshot.State(t.Box(name)) }

// Running reports whether a runner runs a member.
func (t *Team) Running(name wire.Name) (bool, error) { return t.Store.Running(name) }

// UnknownError is a maildir.ErrNoMailbox for a name that is no member of a team.
type UnknownError struct {
	Name, Team wire.Name
	Members    []wire.Name
	Retired    bool // a retired member has the name, and can be restored
	Planned    bool // team.toml names it, but it has no mailbox yet
	In         *Team
	Root       string // the path of the other root whose member it would be; "": it would be of this one
}

func (e *UnknownError) Error() string        { return fmt.Sprintf("no agent %q in team %q", e.Name, e.Team) }
func (e *UnknownError) Is(target error) bool { return target == maildir.ErrNoMailbox }

// Member returns the mailbox of a member, or an *UnknownError.
func (t *Team) Member(name wire.Name) (*maildir.Box, error) {
	b := t.Box(name)
	err := b.Complete()
	if wire.IsName(string(name)) && !errors.Is(err, maildir.ErrNoMailbox) {
		return b, err
	}
	members, err := t.Agents()
	if err != nil {
		return nil, err
	}
	c, _ := t.Config() // doctor reports its mistakes
	_, isPlanned := c.Members[name]
	return nil, &UnknownError{Name: name, Team: t.Name, Members: members, Retired: keep.WasRetired(t.Store, name), Planned: isPlanned, In: t}
}

// A Handle is a team as package teams has it.
type Handle struct {
	team  *Team
	front Front
}

// A Front is the program that has a team open: what has to be known of it when it sends.
type Front interface {
	Origin() *wire.Origin                             // the evidence that goes with a message
	IsPerson() bool                                   // a person sends, from outside an agent's environment: that ends a chain of hops
	MaySend(m *wire.Message, to []wire.Address) error // why it may not send that
}

// Team returns the team.
func (h *Handle) Team() *Team { return h.team }

// Front returns the program that has the team open; nil: one that is not atm's.
func (h *Handle) Front() Front { return h.front }

// Handle returns the team for a conversion to a *teams.Team.
func (t *Team) Handle(f Front) *Handle { return &Handle{t, f} }

// Boxes returns the mailboxes of all members, by name, and also of those that run although git has removed a part of
// theirs.
func (t *Team) Boxes() (out []*maildir.Box, err error) {
	names, err := t.Dir().Names(".")
	for _, n := range names {
		b := t.Box(wire.Name(n))
		if wire.IsName(n) && !errors.Is(t.Dir().IsDir(n), durable.ErrNotDirectory) && !errors.Is(b.Complete(), maildir.ErrNoMailbox) {
			out = append(out, b)
		}
	}
	return out, err
}

// Mailboxes is Boxes for a watcher.
func (t *Team) Mailboxes() (out []watcher.Mailbox, err error) {
	boxes, err := t.Boxes()
	for _, b := range boxes {
		out = append(out, b)
	}
	return out, err
}

// UnreadableError names the mailboxes that could not be read, or not completely. The result that comes with it covers
// everything else.
type UnreadableError struct{ Err error }

func (e *UnreadableError) Error() string { return strings.ReplaceAll(e.Err.Error(), "\n", "; ") }
func (e *UnreadableError) Unwrap() error { return e.Err }

// Unreadable makes an error of a mailbox an *UnreadableError that names it, except a maildir.ErrNoMailbox.
func Unreadable(b *maildir.Box, err error) error {
	if _, isNamed := errors.AsType[*UnreadableError](err); err == nil || isNamed || errors.Is(err, maildir.ErrNoMailbox) {
		return err
	}
	return &UnreadableError{Err: fmt.Errorf("the mailbox of %s: %w", b.Agent(), err)}
}

// Each calls f for the mailbox of every member, by name. It goes on after an error and returns all as one
// *UnreadableError, without those of members that are retired meanwhile.
func (t *Team) Each(f func(*maildir.Box) error) error {
	boxes, err := t.Boxes()
	if err != nil {
		return err
	}
	errs := make([]error, len(boxes))
	for i, b := range boxes {
		errs[i] = f(b)
	}
	return JoinUnreadable(boxes, errs)
}

func JoinUnreadable(boxes []*maildir.Box, errs []error) error {
	for i, err := range errs {
		if errs[i] = Unreadable(boxes[i], err); errors.Is(err, maildir.ErrNoMailbox) {
			errs[i] = nil
		}
	}
	if err := errors.Join(errs...); err != nil {
		return &UnreadableError{Err: err}
	}
	return nil
}

// AtOnce calls f with the numbers from 0 to n-1, several at once: what looks at many members waits for runners and
// disks.
func AtOnce(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	var workers sync.WaitGroup
	var next atomic.Int64
	for range min(n, 2*runtime.NumCPU()) {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				f(int(i - 1))
			}
		})
	}
	workers.Wait()
}

// Retire is keep.Retire; what the member has asked for ends, and the jobs that it has taken are given back.
func (t *Team) Retire(ctx context.Context, name wire.Name) (string, error) {
	where, err := keep.Retire(ctx, t.Store, name)
	if err == nil {
		t.Dir().Remove(SubscriberFile(name))
		err = t.giveBack(ctx, name)
	}
	return where, err
}

// LockWait is for how long a command waits for a lock.
func (t *Team) LockWait() time.Duration { return cmp.Or(t.Store.LockTimeout, lockfile.DefaultTimeout) }

// giveBack ends the leases of a member.
func (t *Team) giveBack(ctx context.Context, name wire.Name) error {
	names, errs := t.Store.Agents()
	for _, n := range names {
		ids, err := claim.LeasedBy(t.Box(n), t.Box(name).Address())
		for _, id := range ids {
			err = errors.Join(err, claim.EndLease(ctx, t.Box(n), id, t.Box(name).Address()))
		}
		errs = errors.Join(errs, err)
	}
	return errs
}

package mailbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// probesEnd is how long a runner that starts waits for the lock: whoever probes it holds it shared for an instant.
const probesEnd = time.Second

// ErrBeingTyped says that a runner is typing the message to its agent just now.
var ErrBeingTyped = errors.New("is being typed")

// Runner is the hold of an agent's runner lock. As long as it lasts the agent counts as running, and what
// its holder claims is passed over by others.
type Runner struct {
	box    *Box
	lock   *lockfile.Lock
	owner  string   // of its claims
	typing sync.Map // by message: the *Claim that has not let go of it
}

// HoldRunner takes the agent's runner lock, for as long as the agent is run. There is one at a time:
// ErrRunning, with the process where the system tells. ErrNoAgent when there is no such agent. What dead
// runners were typing is claimed by nobody from now on.
func (s *Store) HoldRunner(ctx context.Context, agent wire.Name) (*Runner, error) {
	b := s.Box(agent)
	l, err := b.lockRunner(ctx, lockfile.Exclusive)
	if err != nil {
		return nil, err
	}
	// The lock's file outlives the agent, who may have been retired meanwhile.
	if err := b.Present(); err != nil {
		l.Unlock()
		return nil, err
	}
	r := &Runner{box: b, lock: l, owner: ownerRunner + string(wire.NewID())}
	r.updateClaims(ctx, func(claims) error { return nil }) // what fails here is done with the first claim
	return r, nil
}

// lockRunner gets the runner lock, or says who runs the agent.
func (b *Box) lockRunner(ctx context.Context, m lockfile.Mode) (*lockfile.Lock, error) {
	l, err := b.store.locks.Lock(ctx, string(b.agent)+".runner", m, probesEnd, b.Present)
	if held, ok := errors.AsType[*lockfile.HeldError](err); ok {
		err = fmt.Errorf("%s %w: %v", b.Address(), ErrRunning, held)
	}
	return l, err
}

// StillHeld reports whether the lock is held, and by the file that lies at its path. Otherwise another
// runner may have taken over: nothing may be typed.
func (r *Runner) StillHeld() bool { return r.lock.Current() }

// Release lets go. Again is fine.
func (r *Runner) Release() error { return r.lock.Unlock() }

// updateClaims changes what is claimed. It ends the claims of other runners first: only one holds the lock,
// so they are dead.
func (r *Runner) updateClaims(ctx context.Context, change func(claims) error) error {
	if !r.StillHeld() {
		return fmt.Errorf("%s is not run by this process", r.box.Address())
	}
	return r.box.updateClaims(ctx, func(all claims) error {
		for id, c := range all {
			if c.isRunner() && c.Owner != r.owner && c.Until.IsZero() {
				all[id] = c.endedAt(claimNow())
			}
		}
		return change(all)
	})
}

// Claim is what a runner is typing to its agent. Until it says how that went the messages stay unread,
// and readers, hooks and who would withdraw them pass them over: Typed moves them, NotTyped and
// MaybeTyped let go of them. What a dead runner had is claimed again as a possible repeat.
//
// Its methods take the reader's lock and give up with their context, so who ends while the context does gives
// them another. What failed may be said again. A Claim is not for concurrent use.
type Claim struct {
	Items  []*Item   // in the order in which they were asked for
	Leased []wire.ID // passed over since somebody holds them under a lease
	Turn   string    // that the messages went into, where it is known: for the event injected

	runner *Runner
	claimed
}

// Claim claims those of the messages that are unread and that nobody has claimed, in this order, and says
// so among the events (injecting). With an error nothing is claimed, as when the lock is lost.
func (r *Runner) Claim(ctx context.Context, ids []wire.ID) (*Claim, error) {
	c := &Claim{runner: r}
	err := r.updateClaims(ctx, func(all claims) error {
		now := claimNow()
		live := all.live(now, true)
		maps.DeleteFunc(live, func(id wire.ID, c claim) bool { // what was let go of, and could not be written
			_, isTyping := r.typing.Load(id)
			return c.Owner == r.owner && !isTyping
		})
		c.Leased = slices.DeleteFunc(slices.Clone(ids), func(id wire.ID) bool { return !live[id].isLease() })
		batch, err := r.box.choose(ReadOptions{IDs: append([]wire.ID{}, ids...)}, live, true)
		if err != nil {
			return err
		}
		c.Items, c.claimed = batch.Items, r.box.claim(all, batch.Items, claim{Owner: r.owner, At: now})
		var injecting []wire.Event
		for _, it := range c.Items {
			injecting = append(injecting, event("pty", wire.EventInjecting, it.ID))
		}
		return r.box.Log().Append(ctx, injecting...)
	})
	if err != nil {
		return nil, err
	}
	for _, id := range c.left {
		r.typing.Store(id, c)
	}
	return c, nil
}

// Typed says that the messages were taken by the agent: they are moved, as if they had been read, and then it is said
// among the events (injected). A message that its agent has answered by now, and so moved, counts too. What cannot be
// moved stays claimed, and is moved when this is said again; an *UnloggedError is about the events alone.
func (c *Claim) Typed(ctx context.Context) error {
	var wrong []error
	err := c.runner.box.updateClaims(ctx, func(all claims) error {
		c.left = slices.DeleteFunc(c.left, func(id wire.ID) (isMoved bool) {
			if err := c.box.markRead(id); err != nil && !errors.Is(err, ErrNotFound) {
				wrong = append(wrong, err)
				return false
			}
			delete(all, id)
			// Before the claim goes: who finds that sees what became of it.
			injected := event("pty", wire.EventInjected, id)
			injected.TurnID = c.Turn
			wrong = append(wrong, c.box.note(ctx, injected))
			return true
		})
		return nil
	})
	return errors.Join(append(wrong, err)...)
}

// NotTyped says that nothing of the messages has reached the agent. The caller says why among the events
// (injection_failed).
func (c *Claim) NotTyped(ctx context.Context) error { return c.letGo(ctx, c.notReceived) }

// MaybeTyped says that it is not known whether the messages have reached the agent: like NotTyped, and
// when they are handed over again that may be a repeat.
func (c *Claim) MaybeTyped(ctx context.Context) error {
	return c.letGo(ctx, func(_ wire.ID, mine claim) claim { return mine.endedAt(claimNow()) })
}

func (c *Claim) letGo(ctx context.Context, f func(wire.ID, claim) claim) error {
	for _, id := range c.left {
		c.runner.typing.CompareAndDelete(id, c)
	}
	return c.update(ctx, f)
}

// BeingTyped are the messages that the agent's runner is typing. It is for the program that is typed into.
func (b *Box) BeingTyped() (items []*Item) {
	for id, c := range b.claims().live(time.Now(), true) {
		if it, err := b.Get(id); err == nil && c.isRunner() {
			items = append(items, it)
		}
	}
	slices.SortFunc(items, func(a, b *Item) int { return cmp.Compare(a.ID, b.ID) })
	return items
}

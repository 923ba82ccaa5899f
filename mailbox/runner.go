package mailbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// probesEnd is how long a runner that starts waits for the lock: whoever probes it
// holds it shared for an instant.
const probesEnd = time.Second

// ErrNoRunner says that this process does not hold the agent's runner lock, or holds a
// file that is no longer the one at its path: another may run the agent.
var ErrNoRunner = errors.New("is not run by this process")

// Runner is the hold of an agent's runner lock. As long as it lasts the agent counts as
// running, and what its holder claims is passed over by others.
type Runner struct {
	box    *Box
	lock   *lockfile.Lock
	owner  string   // of its claims
	typing sync.Map // the messages that it claimed and has not said how that went
}

// setTyping notes whether messages are being typed.
func (r *Runner) setTyping(ids []wire.ID, typing bool) {
	for _, id := range ids {
		r.typing.Store(id, typing)
	}
}

// isTyping reports whether a live claim of this runner is meant: what a write that
// failed left behind is not.
func (r *Runner) isTyping(id wire.ID, c claim) bool {
	typing, _ := r.typing.Load(id)
	return c.Owner != r.owner || typing == true
}

// HoldRunner takes the agent's runner lock, for as long as the agent is run. There is
// one at a time: ErrRunning, with the process where the system tells. ErrNoAgent when
// there is no such agent.
func (s *Store) HoldRunner(ctx context.Context, agent wire.Name) (*Runner, error) {
	b := s.Box(agent)
	l, err := s.locks.Lock(ctx, string(agent)+".runner", lockfile.Exclusive, probesEnd, b.Present)
	var held *lockfile.HeldError
	switch {
	case errors.As(err, &held) && held.PID > 0:
		return nil, fmt.Errorf("%s %w: %s, process %d", b.Address(), ErrRunning, held.Command, held.PID)
	case errors.As(err, &held):
		return nil, fmt.Errorf("%s %w", b.Address(), ErrRunning)
	case err != nil:
		return nil, err
	}
	// The lock's file outlives the agent, who may have been retired meanwhile.
	if err := b.Present(); err != nil {
		l.Unlock()
		return nil, err
	}
	r := &Runner{box: b, lock: l, owner: ownerRunner + string(wire.NewID())}
	s.runners.Store(agent, r)
	return r, nil
}

// StillHeld reports whether the lock is held, and by the file that lies at its path.
// Otherwise another runner may have taken over: nothing may be typed.
func (r *Runner) StillHeld() bool { return r.lock.Current() }

// Release lets go. Again is fine.
func (r *Runner) Release() error {
	r.box.store.runners.CompareAndDelete(r.box.agent, r)
	return r.lock.Unlock()
}

// updateClaimsAsRunner changes what is claimed, for this process's runner of the agent.
// It ends the claims of other runners first: only one holds the lock, so they are dead.
// ErrNoRunner when this process does not hold it.
func (b *Box) updateClaimsAsRunner(ctx context.Context, change func(*Runner, claims, time.Time) error) error {
	held, _ := b.store.runners.Load(b.agent)
	r, _ := held.(*Runner)
	if r == nil || !r.StillHeld() {
		return fmt.Errorf("%s %w", b.Address(), ErrNoRunner)
	}
	now := claimTime(time.Now())
	return b.updateClaims(ctx, func(all claims) error {
		for id, c := range all {
			if c.isRunner() && c.Owner != r.owner && c.Until.IsZero() {
				all.release(id, now, 0)
			}
		}
		return change(r, all, now)
	})
}

// Claim is what a runner is typing to its agent. Until it says how that went the
// messages stay unread, and readers, hooks and who would withdraw them pass them over:
// Typed moves them, NotTyped and MaybeTyped let go of them. What a dead runner had is
// claimed again as a possible repeat.
//
// Its methods name the messages that they are about, none: all that are left. They take
// the reader's lock and give up with their context, so who ends while the context does
// gives them another. A Claim is not for concurrent use.
type Claim struct {
	Items  []*Item          // in the order in which they were asked for
	Repeat map[wire.ID]bool // those that may have been typed before

	// Leased are those that were passed over since somebody holds them under a lease.
	Leased []wire.ID

	// Turn is the turn that the messages went into, where the runner knows it: it
	// stands in the event injected.
	Turn string

	box    *Box
	runner *Runner
	left   []wire.ID // of which nothing was said yet
}

// Claim claims those of the messages that are unread and that nobody has claimed, in
// this order, and says so among the events (injecting). With an error nothing is
// claimed, or the claim ends with the runner; ErrNoRunner when this process does not
// hold the runner lock.
func (b *Box) Claim(ctx context.Context, ids []wire.ID) (*Claim, error) {
	c := &Claim{Repeat: map[wire.ID]bool{}, box: b}
	err := b.updateClaimsAsRunner(ctx, func(r *Runner, all claims, now time.Time) error {
		c.runner = r
		for _, id := range ids {
			before := all[id]
			if before.isLive(now, true) && r.isTyping(id, before) {
				if before.isLease() {
					c.Leased = append(c.Leased, id)
				}
				continue
			}
			it, err := b.open(b.unread(), id)
			var bad *BadError
			switch {
			case err == errGone:
				continue
			case errors.As(err, &bad):
				b.setAsideBad(bad)
				continue
			case err != nil:
				return err
			}
			all[id] = claim{Owner: r.owner, At: now, Times: before.Times + 1}
			if before.Times > 0 {
				c.Repeat[id] = true
			}
			c.Items, c.left = append(c.Items, it), append(c.left, id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.runner.setTyping(c.left, true)
	if err := b.Log().Append(ctx, c.events(wire.EventInjecting, c.left)...); err != nil {
		return nil, errors.Join(err, c.NotTyped(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// Typed says that messages were taken by the agent: they are moved, as if they had been
// read, and then it is said among the events (injected). A message that its agent has
// answered by now, and so moved, counts too. What cannot be moved stays claimed, and is
// moved when this is said again; an *UnloggedError is about the events alone.
func (c *Claim) Typed(ctx context.Context, ids ...wire.ID) error {
	var errs []error
	err := c.end(ctx, ids, func(all claims, ids []wire.ID) (ended []wire.ID) {
		for _, id := range ids {
			if err := c.box.openAndMarkRead(id); err == nil || err == errGone {
				ended = append(ended, id)
				delete(all, id)
			} else {
				errs = append(errs, err)
			}
		}
		// Before the claim goes: who finds that sees what became of it.
		errs = append(errs, c.box.note(ctx, c.events(wire.EventInjected, ended)...))
		return ended
	})
	return errors.Join(append(errs, err)...)
}

// NotTyped says that nothing of the messages has reached the agent. The caller says why
// among the events (injection_failed).
func (c *Claim) NotTyped(ctx context.Context, ids ...wire.ID) error { return c.release(ctx, ids, 1) }

// MaybeTyped says that it is not known whether the messages have reached the agent:
// like NotTyped, and when they are handed over again that may be a repeat.
func (c *Claim) MaybeTyped(ctx context.Context, ids ...wire.ID) error { return c.release(ctx, ids, 0) }

func (c *Claim) release(ctx context.Context, ids []wire.ID, uncounted int) error {
	if len(ids) == 0 {
		ids = c.left
	}
	c.runner.setTyping(ids, false)
	return c.end(ctx, ids, func(all claims, ids []wire.ID) []wire.ID {
		for _, id := range ids {
			if mine := all[id]; mine.Owner == c.runner.owner && mine.Until.IsZero() {
				all.release(id, claimTime(time.Now()), uncounted)
			}
		}
		return ids
	})
}

// end has f end the claim of messages under the reader's lock.
func (c *Claim) end(ctx context.Context, ids []wire.ID, f func(claims, []wire.ID) (ended []wire.ID)) error {
	if len(ids) == 0 {
		ids = c.left
	}
	ids = slices.DeleteFunc(slices.Clone(ids), func(id wire.ID) bool { return !slices.Contains(c.left, id) })
	if len(ids) == 0 {
		return nil
	}
	var ended []wire.ID
	err := c.box.updateClaims(ctx, func(all claims) error {
		ended = f(all, ids)
		return nil
	})
	if err == nil {
		c.runner.setTyping(ended, false)
		c.left = slices.DeleteFunc(c.left, func(id wire.ID) bool { return slices.Contains(ended, id) })
	}
	return err
}

// events are the events of one kind about messages.
func (c *Claim) events(kind string, ids []wire.ID) []wire.Event {
	out := make([]wire.Event, len(ids))
	for i, id := range ids {
		out[i] = wire.Event{Kind: kind, Source: "pty"}.With("id", string(id))
		if kind == wire.EventInjected {
			out[i].TurnID = c.Turn
		}
	}
	return out
}

// Unfinished is what dead runners of the agent left: unread messages that they were
// typing, or did not know to have arrived. It is asked by who has just got the runner
// lock; ErrNoRunner from anybody else.
func (b *Box) Unfinished(ctx context.Context) (ids []wire.ID, err error) {
	err = b.updateClaimsAsRunner(ctx, func(_ *Runner, all claims, now time.Time) error {
		for id, c := range all {
			if c.isRunner() && !c.isLive(now, true) {
				ids = append(ids, id)
			}
		}
		return nil
	})
	slices.Sort(ids)
	return ids, err
}

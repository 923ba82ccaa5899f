package maildir

import (
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

// probeTime is how long a starting runner waits for the lock: a probe holds it shared for an instant.
const probeTime = time.Second

// ErrBeingTyped says that a runner is typing the message to its agent just now.
var ErrBeingTyped = errors.New("is being typed")

// Runner holds an agent's runner lock. While it is held the agent counts as running, and others skip the messages that
// the runner claims.
type Runner struct {
	box    *Box
	lock   *lockfile.Lock
	owner  Owner    // of its claims
	typing sync.Map // message id to the *Claim that holds it
}

// HoldRunner takes the agent's runner lock and ends the claims of dead runners. Errors: ErrRunning while another
// process holds it, with that process if the system tells; ErrNoAgent if there is no such agent.
func (s *Store) HoldRunner(ctx context.Context, agent wire.Name) (*Runner, error) {
	b := s.Box(agent)
	l, err := b.lockRunner(ctx, lockfile.Exclusive)
	if err != nil {
		return nil, err
	}
	// The lock file outlives the agent, which may have been retired meanwhile.
	if err := b.CheckPresent(); err != nil {
		l.Unlock()
		return nil, err
	}
	r := &Runner{box: b, lock: l, owner: ownerRunner + Owner(wire.NewID())}
	r.update(ctx, func(*tx) error { return nil }) // on failure the first Claim does it
	return r, nil
}

// lockRunner takes the runner lock, or returns ErrRunning.
func (b *Box) lockRunner(ctx context.Context, m lockfile.Mode) (*lockfile.Lock, error) {
	l, err := b.store.locks.Lock(ctx, b.lockName("runner"), m, probeTime, b.CheckPresent)
	if held, ok := errors.AsType[*lockfile.HeldError](err); ok {
		err = fmt.Errorf("%s %w: %v", b.Address(), ErrRunning, held)
	}
	return l, err
}

// StillHeld reports whether the lock is held on the file at its path. Otherwise another runner may have taken over, and
// nothing may be typed.
func (r *Runner) StillHeld() bool { return r.lock.Current() }

// Release releases the lock. It may be called twice.
func (r *Runner) Release() error { return r.lock.Unlock() }

// update is Box.update, after it has ended the claims of other runners: they are dead, since this one holds the lock.
func (r *Runner) update(ctx context.Context, change func(*tx) error) error {
	if !r.StillHeld() {
		return fmt.Errorf("%s is not run by this process", r.box.Address())
	}
	return r.box.update(ctx, func(t *tx) error {
		for id, c := range t.claims {
			if c.Owner.is(ownerRunner) && c.Owner != r.owner && c.Until.IsZero() {
				t.claims[id] = c.endedAt(inClaim(time.Now()))
			}
		}
		return change(t)
	})
}

// EndSessions ends the claims of sessions: the program that they were of has ended.
func (r *Runner) EndSessions(ctx context.Context) error {
	return r.update(ctx, func(t *tx) error {
		now := inClaim(time.Now())
		for id, c := range t.claims {
			if c.Owner.Session() != "" && c.isLive(now, true) {
				t.claims[id] = c.endedAt(now)
			}
		}
		return nil
	})
}

// Claim holds messages that a runner is typing to its agent. They stay unread, and readers, hooks and Withdraw skip
// them, until Typed moves them, or Release or Expire ends the claim. The messages of a dead runner are claimed again as
// possible repeats.
//
// The methods stop waiting for the reader lock when their context ends, so a runner that shuts down passes a fresh one.
// A method that failed may be called again. A Claim is not for concurrent use.
type Claim struct {
	Claimed           // Items are in the requested order
	Leased  []wire.ID // skipped because they are leased
	Turn    string    // the turn that the messages went into, if known, for the event injected

	runner   *Runner
	isTyped  bool
	unlogged []wire.Event // once it is typed: those injected that are not in the log yet
}

// Claim claims those of the messages that are unread and unclaimed, in this order, and logs injecting. With an error,
// as when the runner lock is lost or the store may not act, nothing is claimed.
func (r *Runner) Claim(ctx context.Context, ids []wire.ID) (*Claim, error) {
	mayAct := r.box.store.BeforeLook()
	ids = slices.DeleteFunc(slices.Clone(ids), func(id wire.ID) bool { // one may be gone, and come back later
		there, err := r.box.has(r.box.unread(), id)
		return !there && err == nil
	})
	if err := mayAct(ctx); err != nil {
		return nil, err
	}
	c := &Claim{runner: r}
	err := r.update(ctx, func(t *tx) (err error) {
		now := inClaim(time.Now())
		live := t.claims.live(now, true)
		maps.DeleteFunc(live, func(id wire.ID, c claim) bool { // released, but that could not be written
			_, isTyping := r.typing.Load(id)
			return c.Owner == r.owner && !isTyping
		})
		c.Leased = slices.DeleteFunc(slices.Clone(ids), func(id wire.ID) bool { return !live[id].Owner.is(ownerLease) })
		these := ReadOptions{IDs: append([]wire.ID{}, ids...)} // not nil, which would be all
		c.Claimed, err = t.claim(claim{Owner: r.owner, At: now}, these, live)
		return err
	})
	if err != nil {
		return nil, err
	}
	var injecting []wire.Event // logged last: no event takes one back
	for _, id := range c.left {
		r.typing.Store(id, c)
		injecting = append(injecting, event("pty", wire.EventInjecting, id))
	}
	if err := r.box.Log().Append(ctx, injecting...); err != nil {
		return nil, errors.Join(err, c.Release(ctx))
	}
	return c, nil
}

// Typed moves the messages as read, since the agent received them, and logs injected; also for a message that the agent
// has moved meanwhile by answering it. A message that cannot be moved stays claimed. After an error, calling Typed again
// does what is missing.
//
// It logs before it moves: of what a killed runner moved the log always tells, so the next one can give it again.
func (c *Claim) Typed(ctx context.Context) error {
	var errs []error
	err := c.box.update(ctx, func(t *tx) error {
		if err := c.logInjected(ctx); err != nil {
			return err
		}
		c.left = slices.DeleteFunc(c.left, func(id wire.ID) (isMoved bool) {
			if _, err := t.markRead(id); err != nil && !errors.Is(err, ErrNotFound) {
				errs = append(errs, err)
				return false
			}
			delete(t.claims, id)
			c.runner.typing.CompareAndDelete(id, c)
			return true
		})
		return nil
	})
	return errors.Join(append(errs, err)...)
}

// logInjected logs injected for all messages, each once.
func (c *Claim) logInjected(ctx context.Context) error {
	if !c.isTyped {
		for _, it := range c.Items {
			e := event("pty", wire.EventInjected, it.ID)
			e.TurnID = c.Turn
			c.unlogged = append(c.unlogged, c.box.WithType(e, it))
		}
		c.isTyped = true
	}
	err := c.box.Log().Append(ctx, c.unlogged...)
	c.unlogged = slices.DeleteFunc(c.unlogged, func(e wire.Event) bool { return err == nil || e.Seq != 0 })
	return err
}

// Release ends the claim because nothing of the messages has reached the agent. The caller logs injection_failed with the
// reason.
func (c *Claim) Release(ctx context.Context) error {
	c.forget()
	return c.Claimed.Release(ctx)
}

// Expire ends the claim when it is not known whether the messages have reached the agent: the next handover may be a
// repeat.
func (c *Claim) Expire(ctx context.Context) error {
	c.forget()
	return c.Claimed.Expire(ctx)
}

func (c *Claim) forget() {
	for _, id := range c.left {
		c.runner.typing.CompareAndDelete(id, c)
	}
}

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
	r := &Runner{box: b, lock: l, owner: Owner{ofRunner, string(wire.NewID())}}
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
			if c.Owner.kind == ofRunner && c.Owner != r.owner && c.Until.IsZero() {
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

// Claim claims those of the messages that are unread and unclaimed, in this order, for the agent, and logs injecting.
// Readers, hooks and Withdraw skip them then. The messages of a dead runner are claimed again as possible repeats. With an
// error, as when the runner lock is lost or the store may not act, nothing is claimed. A method of the Claim stops waiting
// for the reader lock when its context ends, so a runner that shuts down passes a fresh one.
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
	err := r.update(ctx, func(t *tx) error {
		now := inClaim(time.Now())
		live := t.claims.live(now, true)
		maps.DeleteFunc(live, func(id wire.ID, c claim) bool { // released, but that could not be written
			_, isTyping := r.typing.Load(id)
			return c.Owner == r.owner && !isTyping
		})
		c.Leased = slices.DeleteFunc(slices.Clone(ids), func(id wire.ID) bool { return live[id].Owner.kind != ofLease })
		these := ReadOptions{IDs: append([]wire.ID{}, ids...)} // not nil, which would be all
		return c.take(t, claim{Owner: r.owner, At: now}, these, live)
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

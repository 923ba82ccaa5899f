package claim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claimfile"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

// Runner holds an agent's runner lock. While it is held the agent counts as running, and others skip the messages that
// the runner claims.
type Runner struct {
	box    *maildir.Box
	lock   *lockfile.Lock
	owner  claimfile.Owner // of its claims
	typing sync.Map        // message id to the *Claim that holds it
}

// HoldRunner takes the agent's runner lock and ends the claims of dead runners. Errors: ErrRunning while another
// process holds it, with that process if the system tells; ErrNoAgent if there is no such agent.
func HoldRunner(ctx context.Context, s *maildir.Store, agent wire.Name) (*Runner, error) {
	b := s.Box(agent)
	l, err := b.LockRunner(ctx, lockfile.Exclusive)
	if err != nil {
		return nil, err
	}
	// The lock file outlives the agent, which may have been retired meanwhile.
	if err := b.CheckPresent(); err != nil {
		l.Unlock()
		return nil, err
	}
	r := &Runner{box: b, lock: l, owner: claimfile.Owner{Kind: claimfile.Runner, ID: string(wire.NewID())}}
	r.update(ctx, func(*maildir.Tx) error { return nil }) // on failure the first Claim does it
	return r, nil
}

// StillHeld reports whether the lock is held on the file at its path. Otherwise another runner may have taken over, and
// nothing may be typed.
func (r *Runner) StillHeld() bool { return r.lock.Current() }

// Release releases the lock. It may be called twice.
func (r *Runner) Release() error { return r.lock.Unlock() }

// update is Box.Update, after it has ended the claims of other runners: they are dead, since this one holds the lock.
func (r *Runner) update(ctx context.Context, change func(*maildir.Tx) error) error {
	if !r.StillHeld() {
		return fmt.Errorf("%s is not run by this process", r.box.Address())
	}
	return r.box.Update(ctx, func(t *maildir.Tx) error {
		for id, c := range t.Claims {
			if c.Owner.Kind == claimfile.Runner && c.Owner != r.owner && c.Until.IsZero() {
				t.Claims[id] = c.EndedAt(claimfile.Moment(time.Now()))
			}
		}
		return change(t)
	})
}

// EndSessions ends the claims of sessions: the program that they were of has ended.
func (r *Runner) EndSessions(ctx context.Context) error {
	return r.update(ctx, func(t *maildir.Tx) error {
		now := claimfile.Moment(time.Now())
		for id, c := range t.Claims {
			if c.Owner.Session() != "" && c.IsLive(now, true) {
				t.Claims[id] = c.EndedAt(now)
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
	ids = slices.DeleteFunc(slices.Clone(ids), func(id wire.ID) bool { // one may be gone, and come back later
		there, err := r.box.Has(r.box.Unread(), id)
		return !there && err == nil
	})
	if err := r.box.Store().MayAct(ctx); err != nil {
		return nil, err
	}
	c := &Claim{runner: r}
	err := r.update(ctx, func(t *maildir.Tx) error {
		now := claimfile.Moment(time.Now())
		live := t.Claims.Live(now, true)
		maps.DeleteFunc(live, func(id wire.ID, c claimfile.Entry) bool { // released, but that could not be written
			_, isTyping := r.typing.Load(id)
			return c.Owner == r.owner && !isTyping
		})
		c.Leased = slices.DeleteFunc(slices.Clone(ids), func(id wire.ID) bool { return live[id].Owner.Kind != claimfile.Lease })
		these := inbox.ReadOptions{IDs: append([]wire.ID{}, ids...)} // not nil, which would be all
		return c.take(t, claimfile.Entry{Owner: r.owner, At: now}, these, live)
	})
	if err != nil {
		return nil, err
	}
	var injecting []wire.Event // logged last: no event takes one back
	for _, id := range c.left {
		r.typing.Store(id, c)
		injecting = append(injecting, maildir.Event(wire.SourcePTY, wire.EventInjecting, id))
	}
	if err := r.box.Log().Append(ctx, injecting...); err != nil {
		return nil, errors.Join(err, c.Release(ctx))
	}
	return c, nil
}

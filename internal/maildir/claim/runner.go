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
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

// Runner holds an agent's runner lock. While it is held the agent counts as running, and others skip the messages that
// the runner claims.
type Runner struct {
	box    *maildir.Box
	lock   *lockfile.Lock
	run    string   // of its claims
	typing sync.Map // message id to the *Claim that holds it
}

// HoldRunner takes the agent's runner lock and ends the claims of dead runners. Errors: ErrRunning while another
// process holds it, with that process if the system tells; ErrNoMailbox if there is no such agent.
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
	r := &Runner{box: b, lock: l, run: string(wire.NewID())}
	r.locked(ctx, func(maildir.Held) error { return nil }) // on failure the first Claim does it
	return r, nil
}

// StillHeld reports whether the lock is held on the file at its path. Otherwise another runner may have taken over, and
// nothing may be typed.
func (r *Runner) StillHeld() bool { return r.lock.Current() }

// Release releases the lock. It may be called twice.
func (r *Runner) Release() error { return r.lock.Unlock() }

// locked calls f under the reader lock with who has what, after it has ended the claims of other runners: they are dead,
// since this one holds the runner lock.
func (r *Runner) locked(ctx context.Context, f func(maildir.Held) error) error {
	if !r.StillHeld() {
		return fmt.Errorf("%s is not run by this process", r.box.Address())
	}
	return r.box.Locked(ctx, "reader", func() error {
		held, err := r.box.Held()
		if err != nil {
			return err
		}
		isDead := func(h holder.Holder) bool { return h.Kind == holder.Runner && h.Who != r.run && h.Until.IsZero() }
		if err := r.box.EndHolders(held, isDead); err != nil {
			return err
		}
		return f(held)
	})
}

// EndSessions ends the claims of sessions: the program that they were of has ended.
func (r *Runner) EndSessions(ctx context.Context) error {
	now := time.Now()
	return r.locked(ctx, func(held maildir.Held) error {
		return r.box.EndHolders(held, func(h holder.Holder) bool { return h.Session() != "" && h.IsLive(now, true) })
	})
}

// Claim claims those of the messages that are unread and unclaimed, in this order, for the agent, and logs injecting.
// Readers, hooks and Withdraw skip them then. The messages of a dead runner are claimed again as possible repeats. With an
// error, as when the runner lock is lost or the store may not act, nothing is claimed. A method of the Claim stops waiting
// for the reader lock when its context ends, so a runner that shuts down passes a fresh one.
func (r *Runner) Claim(ctx context.Context, ids []wire.ID) (*Claim, error) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id wire.ID) bool { // one may be gone, and come back later
		d, _, err := r.box.Locate(id)
		return d.State != wire.Unread && err == nil
	})
	if err := r.box.Store().MayAct(ctx); err != nil {
		return nil, err
	}
	c := &Claim{runner: r}
	err := r.locked(ctx, func(held maildir.Held) error {
		now := time.Now()
		live := held.Live(now, true)
		maps.DeleteFunc(live, func(id wire.ID, h holder.Holder) bool { // released, but that could not be written
			_, isTyping := r.typing.Load(id)
			return h.Kind == holder.Runner && h.Who == r.run && !isTyping
		})
		c.Leased = slices.DeleteFunc(slices.Clone(ids), func(id wire.ID) bool { return live[id].Kind != holder.Lease })
		these := inbox.ReadOptions{IDs: append([]wire.ID{}, ids...)} // not nil, which would be all
		return c.take(r.box, holder.New(holder.Runner, r.run, "", now), these, held, live)
	})
	if err != nil {
		return nil, err
	}
	var injecting []wire.Event // logged last: no event takes one back
	for _, it := range c.Items {
		r.typing.Store(it.ID, c)
		injecting = append(injecting, maildir.Event(wire.SourcePTY, wire.EventInjecting, it.ID))
	}
	if err := r.box.Log().Append(ctx, injecting...); err != nil {
		return nil, errors.Join(err, c.Release(ctx))
	}
	return c, nil
}

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
	box   *Box
	lock  *lockfile.Lock
	owner string // of its claims

	mu     sync.Mutex
	typing map[wire.ID]bool // what it claimed and has not said how that went
}

// setTyping notes whether messages are being typed.
func (r *Runner) setTyping(ids []wire.ID, typing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		r.typing[id] = typing
	}
}

// isTyping reports whether a live claim of this runner is meant: what a write that
// failed left behind is not.
func (r *Runner) isTyping(id wire.ID, c claim) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.Owner != r.owner || r.typing[id]
}

// runners are the runner locks that a store holds.
type runners struct {
	mu   sync.Mutex
	held map[wire.Name]*Runner
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
	r := &Runner{box: b, lock: l, owner: ownerRunner + string(wire.NewID()), typing: map[wire.ID]bool{}}
	s.runners.mu.Lock()
	defer s.runners.mu.Unlock()
	if s.runners.held == nil {
		s.runners.held = map[wire.Name]*Runner{}
	}
	s.runners.held[agent] = r
	return r, nil
}

// StillHeld reports whether the lock is held, and by the file that lies at its path.
// Otherwise another runner may have taken over: nothing may be typed.
func (r *Runner) StillHeld() bool { return r.lock.Current() }

// Release lets go. Again is fine.
func (r *Runner) Release() error {
	s := r.box.store
	s.runners.mu.Lock()
	if s.runners.held[r.box.agent] == r {
		delete(s.runners.held, r.box.agent)
	}
	s.runners.mu.Unlock()
	return r.lock.Unlock()
}

// runner is this process's hold of the agent's runner lock, ErrNoRunner when there is
// none that counts.
func (b *Box) runner() (*Runner, error) {
	b.store.runners.mu.Lock()
	r := b.store.runners.held[b.agent]
	b.store.runners.mu.Unlock()
	if r == nil || !r.StillHeld() {
		return nil, fmt.Errorf("%s %w", b.Address(), ErrNoRunner)
	}
	return r, nil
}

// endOthers ends the claims of other runners: only one holds the lock, so they are
// dead.
func (r *Runner) endOthers(all claims, now time.Time) {
	for id, c := range all {
		if c.isRunner() && c.Owner != r.owner && c.Until.IsZero() {
			c.Until = now
			all[id] = c
		}
	}
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
	runner, err := b.runner()
	if err != nil {
		return nil, err
	}
	c := &Claim{Repeat: map[wire.ID]bool{}, box: b, runner: runner}
	now := claimTime(time.Now())
	err = b.locked(ctx, "reader", lockfile.Exclusive, func() error {
		return b.changeClaims(func(all claims) error {
			runner.endOthers(all, now)
			for _, id := range ids {
				before, known := all[id]
				if known && before.isLive(now, true) && runner.isTyping(id, before) {
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
				all[id] = claim{Owner: runner.owner, At: now, Times: before.Times + 1}
				if before.Times > 0 {
					c.Repeat[id] = true
				}
				c.Items, c.left = append(c.Items, it), append(c.left, id)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	runner.setTyping(c.left, true)
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
			it, err := c.box.open(c.box.unread(), id)
			if err == nil {
				err = c.box.markRead(it.Message)
			}
			if err == nil || err == errGone {
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

// release lets go of messages; off are the times that do not count.
func (c *Claim) release(ctx context.Context, ids []wire.ID, off int) error {
	if len(ids) == 0 {
		ids = c.left
	}
	c.runner.setTyping(ids, false)
	return c.end(ctx, ids, func(all claims, ids []wire.ID) []wire.ID {
		for _, id := range ids {
			mine := all[id]
			if mine.Owner != c.runner.owner || !mine.Until.IsZero() {
				continue
			}
			mine.Times -= off
			mine.Until = claimTime(time.Now())
			if all[id] = mine; mine.Times == 0 {
				delete(all, id)
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
	err := c.box.locked(ctx, "reader", lockfile.Exclusive, func() error {
		return c.box.changeClaims(func(all claims) error {
			ended = f(all, ids)
			return nil
		})
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
	runner, err := b.runner()
	if err != nil {
		return nil, err
	}
	err = b.locked(ctx, "reader", lockfile.Exclusive, func() error {
		return b.changeClaims(func(all claims) error {
			now := claimTime(time.Now())
			runner.endOthers(all, now)
			for id, c := range all {
				if c.isRunner() && !c.isLive(now, true) {
					ids = append(ids, id)
				}
			}
			return nil
		})
	})
	slices.Sort(ids)
	return ids, err
}

package mailbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// Claim is what a runner has in its hands, to type it to its agent. Until it
// says how that went the messages stay unread, and readers, hooks and who would
// withdraw them pass them over: Taken moves them, Back and Doubt let go of them.
// A claim counts while the runner lock is held; what a dead runner had is
// claimed again as a possible repeat.
//
// Its methods name the messages that they are about, none: all that are left.
// They take the reader's lock and give up with their context, so who ends while
// the context does gives them another. A Claim is not for concurrent use.
type Claim struct {
	Items []*Item          // in the order in which they were asked for
	Again map[wire.ID]bool // those that may be a repeat

	// Leased are those that were passed over since somebody holds them under a
	// lease.
	Leased []wire.ID

	// Turn is the turn that the messages went into, where the runner knows it:
	// it stands in the event injected.
	Turn string

	box    *Box
	runner *Runner
	left   []wire.ID // of which nothing was said yet
}

// Claim takes in hand those of the messages that are unread and in nobody's
// hands, in this order, and says so among the events (injecting). What a hook
// has handed to a session is passed over, as is what this runner claimed before.
// With an error nothing is claimed, or the claim ends with the runner;
// ErrNoRunner when this process does not hold the runner lock.
func (b *Box) Claim(ctx context.Context, ids []wire.ID) (*Claim, error) {
	c := &Claim{box: b, Again: map[wire.ID]bool{}}
	if err := b.underReader(ctx, func(r *room) error { return c.take(r, ids) }); err != nil {
		return nil, err
	}
	if err := b.Append(ctx, AppendOptions{}, c.events(wire.EventInjecting, c.left)...); err != nil {
		return nil, errors.Join(err, c.Back(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// take is Claim under the reader's lock.
func (c *Claim) take(r *room, ids []wire.ID) error {
	runner, err := c.box.runner()
	if err != nil {
		return err
	}
	c.runner = runner
	all, err := r.claims()
	if err != nil {
		return err
	}
	now := time.Now().UTC().Round(0)
	bury(all, runner.run)
	held, again := map[wire.ID]bool{}, map[wire.ID]bool{}
	leased, _, err := r.holders(c.box.store.now())
	if err != nil {
		return err
	}
	for id := range leased {
		held[id] = true
	}
	for i := range all {
		for _, id := range all[i].IDs {
			// What a write that failed left of this runner's is in nobody's hands.
			if all[i].holds(now, true) && (all[i].Session != "" || runner.has(id)) {
				held[id] = true
			} else {
				again[id] = true
			}
		}
	}
	mine := claim{At: now, Run: runner.run}
	for _, id := range ids {
		if leased[id] {
			c.Leased = append(c.Leased, id)
		}
		if held[id] || !wire.IsID(string(id)) {
			continue
		}
		it, err := r.open(place{placeNew, "inbox/new"}, id)
		var bad *BadError
		switch {
		case errors.Is(err, errGone):
			continue
		case errors.As(err, &bad):
			if bad.Unreadable == nil {
				r.setAside(bad)
			}
			continue
		case err != nil:
			return err
		}
		held[id] = true
		c.Items, mine.IDs = append(c.Items, it), append(mine.IDs, id)
		if again[id] {
			c.Again[id], mine.Again = true, append(mine.Again, id)
		}
	}
	if len(mine.IDs) == 0 {
		return nil
	}
	for i := range all {
		all[i].drop(mine.IDs)
	}
	if err := r.setClaims(append(all, mine)); err != nil {
		return err
	}
	c.left = slices.Clone(mine.IDs)
	runner.holds(c.left, true)
	return nil
}

// Taken says that messages were taken: they are moved, as if they had been
// read, and then it is said among the events (injected). A message that its
// agent has answered by now, and so moved, counts too. What cannot be moved
// stays in hand, and is moved when this is said again; an *UnloggedError is
// about the events alone.
func (c *Claim) Taken(ctx context.Context, ids ...wire.ID) error {
	var moved []wire.ID
	var unmoved []error
	err := c.amend(ctx, ids, func(r *room, ids []wire.ID) (done []wire.ID) {
		for _, id := range ids {
			it, err := r.open(place{placeNew, "inbox/new"}, id)
			if err == nil {
				err = r.settle(it.Message)
			}
			if err == nil || errors.Is(err, errGone) {
				moved = append(moved, id)
			} else {
				unmoved = append(unmoved, err)
			}
		}
		// Before the claim goes: who finds that sees what became of it.
		if err := c.box.Append(ctx, AppendOptions{}, c.events(wire.EventInjected, moved)...); err != nil {
			unmoved = append(unmoved, unlogged(err))
		}
		return moved
	}, nil)
	return errors.Join(append(unmoved, err)...)
}

// Back says that nothing of the messages has reached the agent. The caller says
// why among the events (injection_failed).
func (c *Claim) Back(ctx context.Context, ids ...wire.ID) error {
	return c.amend(ctx, ids, nil, func(id wire.ID) bool { return c.Again[id] })
}

// Doubt says that it is not known whether the messages have reached the agent:
// like Back, and when they are handed over again that may be a repeat.
func (c *Claim) Doubt(ctx context.Context, ids ...wire.ID) error {
	return c.amend(ctx, ids, nil, func(wire.ID) bool { return true })
}

// amend takes messages out of the claim: all of them, or what do says. Those
// that may have been seen by the agent stay noted, in nobody's hands.
func (c *Claim) amend(ctx context.Context, ids []wire.ID, do func(*room, []wire.ID) []wire.ID, seen func(wire.ID) bool) error {
	if len(ids) == 0 {
		ids = c.left
	}
	ids = slices.DeleteFunc(slices.Clone(ids), func(id wire.ID) bool { return !slices.Contains(c.left, id) })
	if len(ids) == 0 {
		return nil
	}
	if do == nil {
		c.runner.holds(ids, false)
	}
	return c.box.underReader(ctx, func(r *room) error {
		if do != nil {
			ids = do(r, ids)
			c.runner.holds(ids, false)
		}
		all, err := r.claims()
		if err != nil {
			return err
		}
		noted := claim{At: time.Now().UTC().Round(0), Run: c.runner.run, Ended: true}
		for i := range all {
			if all[i].Run != c.runner.run || all[i].Session != "" || all[i].Ended {
				continue
			}
			for _, id := range ids {
				if seen != nil && seen(id) && slices.Contains(all[i].IDs, id) {
					noted.IDs = append(noted.IDs, id)
				}
			}
			all[i].drop(ids)
		}
		if err := r.setClaims(append(all, noted)); err != nil {
			return err
		}
		c.left = slices.DeleteFunc(c.left, func(id wire.ID) bool { return slices.Contains(ids, id) })
		return nil
	})
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

// Unfinished is what dead runners of the agent left: unread messages that they
// were typing, or did not know to have been taken. They are in nobody's hands
// from now on. It is asked by who has just got the runner lock; ErrNoRunner from
// anybody else.
func (b *Box) Unfinished(ctx context.Context) (ids []wire.ID, err error) {
	err = b.underReader(ctx, func(r *room) error {
		runner, err := b.runner()
		if err != nil {
			return err
		}
		all, err := r.claims()
		if err != nil {
			return err
		}
		changed := bury(all, runner.run)
		for i := range all {
			c := &all[i]
			changed = r.forgetRead(c) || changed
			if c.Session != "" || c.Run == runner.run && !c.Ended {
				continue
			}
			for _, id := range c.IDs {
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
		if !changed {
			return nil
		}
		return r.setClaims(all)
	})
	slices.Sort(ids)
	return ids, err
}

// bury ends the claims of other runners than the one that holds the lock, and
// reports whether there were any: they are dead.
func bury(all []claim, run string) (any bool) {
	for i := range all {
		if c := &all[i]; c.typed() && c.Run != run {
			c.Ended, any = true, true
		}
	}
	return any
}

// drop takes messages out of a claim.
func (c *claim) drop(ids []wire.ID) {
	in := func(id wire.ID) bool { return slices.Contains(ids, id) }
	c.IDs = slices.DeleteFunc(slices.Clone(c.IDs), in)
	c.Again = slices.DeleteFunc(slices.Clone(c.Again), in)
}

// underReader calls f with the mailbox, opened under the reader's lock.
func (b *Box) underReader(ctx context.Context, f func(*room) error) error {
	unlock, err := b.lock(ctx, "reader", lockfile.Exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := b.enter()
	if err != nil {
		return err
	}
	defer r.close()
	return f(r)
}

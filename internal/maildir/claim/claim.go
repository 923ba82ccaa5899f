// Package claim gives unread messages to one who handles them: a runner that types them, a session of the agent's program
// that gets them in a hook's answer or is given them beside it, a member who leases one, a bridge that sends them.
package claim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

// A Claim is unread messages that one holder handles: a runner gives them to its agent, or a session of the agent's
// program gets them. They stay unread, and others skip them, until it is known what became of them: one of the methods says
// that. A method that failed may be called again. A Claim is not for concurrent use.
type Claim struct {
	inbox.Batch                  // without Items there is no mail
	Repeat      map[wire.ID]bool // messages that were handed out before, and may have been received

	// Of Runner.Claim.
	Leased []wire.ID // skipped because they are leased
	Turn   string    // the turn that the messages went into, if known, for the event injected

	// Of HandOver.
	GivenUp    int  // unread messages that were handed over too often in vain
	IsFull     bool // as many pushed messages as may wait in the session
	IsRepeated bool // the same call, of a hook that is installed twice, has just claimed mail: the program goes on

	box    *maildir.Box
	left   maildir.Held // messages that the holder has, as far as is known
	before maildir.Held // who had had them before

	runner   *Runner // nil: the holder is no runner
	isTyped  bool
	unlogged []wire.Event // once it is typed: those injected that are not in the log yet
}

// take selects messages as Read does, but for those in skipped, and gives them to a holder. One that somebody else has just
// taken is left out. The reader lock is held.
func (g *Claim) take(b *maildir.Box, to holder.Holder, opt inbox.ReadOptions, held, skipped maildir.Held) error {
	batch, err := inbox.Choose(b, opt, held, skipped)
	if err != nil {
		return err
	}
	g.Batch, g.Repeat, g.box, g.left, g.before = batch, map[wire.ID]bool{}, b, maildir.Held{}, maildir.Held{}
	g.Items = nil
	for _, it := range batch.Items {
		to.Times = held[it.ID].Times + 1
		if err := b.HandTo(it.ID, held[it.ID], to); errors.Is(err, maildir.ErrNotFound) {
			continue
		} else if err != nil {
			return errors.Join(err, g.handBack())
		}
		g.Items = append(g.Items, it)
		g.left[it.ID], g.before[it.ID] = to, held[it.ID]
		if to.Times > 1 {
			g.Repeat[it.ID] = true
		}
	}
	return nil
}

// change has each message that the holder still has change hands.
func (g *Claim) change(ctx context.Context, to func(wire.ID, holder.Holder) holder.Holder) error {
	if len(g.left) == 0 {
		return nil
	}
	return g.box.Locked(ctx, "reader", func() (errs error) {
		for id, h := range g.left {
			next := to(id, h)
			switch err := g.box.HandTo(id, h, next); {
			case err == nil:
				g.left[id] = next
			case errors.Is(err, maildir.ErrNotFound):
				delete(g.left, id)
			default:
				errs = errors.Join(errs, err)
			}
		}
		return errs
	})
}

// handBack undoes take. The reader lock is held.
func (g *Claim) handBack() (errs error) {
	for id, h := range g.left {
		if err := g.box.HandTo(id, h, g.before[id]); err != nil && !errors.Is(err, maildir.ErrNotFound) {
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

// Release undoes the claim: nothing of the messages was received. Of a runner's the caller logs injection_failed with the
// reason.
func (g *Claim) Release(ctx context.Context) error {
	g.forget()
	return g.change(ctx, func(id wire.ID, _ holder.Holder) holder.Holder { return g.before[id] })
}

// Expire ends the claim when it is not known whether the messages were received: the next one may be a repeat.
func (g *Claim) Expire(ctx context.Context) error {
	g.forget()
	return g.change(ctx, func(_ wire.ID, h holder.Holder) holder.Holder { return h.Ended() })
}

// forget says that the messages are not being typed any more.
func (g *Claim) forget() {
	for id := range g.left {
		if g.runner != nil {
			g.runner.typing.CompareAndDelete(id, g)
		}
	}
}

// Sent records that the mail was given to the program, which may not have received it yet, and returns the events
// message_announced for the caller to append.
func (g *Claim) Sent(ctx context.Context) (announced []wire.Event, err error) {
	for _, it := range g.Items {
		announced = append(announced, hookEvent(g.left[it.ID], wire.EventAnnounced, it.ID))
	}
	return announced, g.change(ctx, func(_ wire.ID, h holder.Holder) holder.Holder { return h.Shown(time.Time{}) })
}

// Typed moves a runner's messages as read, since the agent received them, and logs injected; also for a message that the
// agent has moved meanwhile by answering it. A message that cannot be moved stays claimed. After an error, calling Typed
// again does what is missing.
//
// It logs before it moves: of what a killed runner moved the log always tells, so the next one can give it again.
func (g *Claim) Typed(ctx context.Context) error {
	return g.box.Locked(ctx, "reader", func() error {
		errs := g.logInjected(ctx)
		if errs != nil {
			return errs
		}
		for id := range g.left {
			if _, err := g.box.MoveToRead(id); err != nil && !errors.Is(err, maildir.ErrNotFound) {
				errs = errors.Join(errs, err)
				continue
			}
			delete(g.left, id)
			g.runner.typing.CompareAndDelete(id, g)
		}
		return errs
	})
}

// logInjected logs injected for all messages, each once.
func (g *Claim) logInjected(ctx context.Context) error {
	if !g.isTyped {
		for _, it := range g.Items {
			e := maildir.Event(wire.SourcePTY, wire.EventInjected, it.ID)
			e.TurnID = g.Turn
			g.unlogged = append(g.unlogged, g.box.WithType(e, it))
		}
		g.isTyped = true
	}
	err := g.box.Log().Append(ctx, g.unlogged...)
	g.unlogged = slices.DeleteFunc(g.unlogged, func(e wire.Event) bool { return err == nil || e.Seq != 0 })
	return err
}

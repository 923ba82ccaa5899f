// Package claim gives unread messages to one who handles them: a runner that types them, a session of the agent's program
// that gets them in a hook's answer or is given them beside it, a member who leases one, a bridge that sends them.
package claim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claimfile"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

const (
	sessionTime = 10 * time.Minute // how long a session's claim is live
	pushTime    = time.Hour        // likewise of what was pushed: it may wait for the end of a tool or for a person
	answerTime  = 10 * time.Second // how long it may take to write an answer
)

// A Claim is unread messages that one owner handles: a runner gives them to its agent, or a session of the agent's
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
	left   []wire.ID       // messages that are not known to have moved
	claim  claimfile.Entry // the claim of each message, but for Times
	before claimfile.Table // all claims before

	runner   *Runner // nil: the owner is no runner
	isTyped  bool
	unlogged []wire.Event // once it is typed: those injected that are not in the log yet
}

// take selects messages as Read does, but for those in skipped, and claims them. It counts how often a message was
// handed out.
func (g *Claim) take(t *maildir.Tx, c claimfile.Entry, opt inbox.ReadOptions, skipped claimfile.Table) error {
	batch, err := inbox.Choose(t.Box, opt, skipped)
	if err != nil {
		return err
	}
	g.Batch, g.Repeat, g.box, g.claim, g.before = batch, map[wire.ID]bool{}, t.Box, c, maps.Clone(t.Claims)
	for _, it := range batch.Items {
		c.Times = t.Claims[it.ID].Times + 1
		t.Claims[it.ID] = c
		g.left = append(g.left, it.ID)
		if c.Times > 1 {
			g.Repeat[it.ID] = true
		}
	}
	return nil
}

// update replaces each claim of the group by change's result, unless the claim has changed meanwhile.
func (g *Claim) update(ctx context.Context, change func(wire.ID, claimfile.Entry) claimfile.Entry) error {
	if len(g.left) == 0 {
		return nil
	}
	return g.box.Update(ctx, func(t *maildir.Tx) error {
		for _, id := range g.left {
			c := t.Claims[id]
			if c.Owner == g.claim.Owner && c.At.Equal(g.claim.At) && c.Until.Equal(g.claim.Until) {
				t.Claims[id] = change(id, c)
			}
		}
		return nil
	})
}

// Release undoes the claim: nothing of the messages was received. Of a runner's the caller logs injection_failed with the
// reason.
func (g *Claim) Release(ctx context.Context) error {
	g.forget()
	return g.update(ctx, func(id wire.ID, _ claimfile.Entry) claimfile.Entry { return g.before[id] })
}

// Expire ends the claim when it is not known whether the messages were received: the next one may be a repeat.
func (g *Claim) Expire(ctx context.Context) error {
	g.forget()
	return g.update(ctx, func(_ wire.ID, c claimfile.Entry) claimfile.Entry { return c.EndedAt(claimfile.Moment(time.Now())) })
}

// forget says that the messages are not being typed any more.
func (g *Claim) forget() {
	for _, id := range g.left {
		if g.runner != nil {
			g.runner.typing.CompareAndDelete(id, g)
		}
	}
}

// Sent records that the mail was given to the program, which may not have received it yet, and returns the events
// message_announced for the caller to append.
func (g *Claim) Sent(ctx context.Context) (announced []wire.Event, err error) {
	for _, it := range g.Items {
		announced = append(announced, hookEvent(g.claim.Owner, wire.EventAnnounced, it.ID))
	}
	return announced, g.update(ctx, func(_ wire.ID, c claimfile.Entry) claimfile.Entry {
		c.Offered, c.Until = true, c.At.Add(sessionTime)
		if c.Owner.IsPush() {
			c.Until = c.At.Add(pushTime)
		}
		return c
	})
}

// Typed moves a runner's messages as read, since the agent received them, and logs injected; also for a message that the
// agent has moved meanwhile by answering it. A message that cannot be moved stays claimed. After an error, calling Typed
// again does what is missing.
//
// It logs before it moves: of what a killed runner moved the log always tells, so the next one can give it again.
func (g *Claim) Typed(ctx context.Context) error {
	var errs []error
	err := g.box.Update(ctx, func(t *maildir.Tx) error {
		if err := g.logInjected(ctx); err != nil {
			return err
		}
		g.left = slices.DeleteFunc(g.left, func(id wire.ID) (isMoved bool) {
			if _, err := t.MoveToRead(id); err != nil && !errors.Is(err, maildir.ErrNotFound) {
				errs = append(errs, err)
				return false
			}
			delete(t.Claims, id)
			g.runner.typing.CompareAndDelete(id, g)
			return true
		})
		return nil
	})
	return errors.Join(append(errs, err)...)
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

package ptyrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

// A way is a way into the agent's program: delivery.Way for the loop, so nothing in it waits. There are three: a terminal
// is typed at, a speaker is prompted, and beside has Options.Beside.
type way interface {
	// gate says why the way takes no text now.
	gate(now time.Time) control.Gate
	// put begins to give a text. It reports In before the program gets anything of it; else Moot.
	put(g *giving)
	// has returns what has happened to the text since then, and why; "": nothing new.
	has(g *giving, now time.Time) (e delivery.Event, why string)
	// takeBack takes the text back, and returns Gone or Kept; "": that is not known yet.
	takeBack(g *giving) delivery.Event
}

// A giving is a text on its way into the program. The table of package delivery says what each event means for it.
type giving struct {
	state delivery.State
	since time.Time // of the state
	way   way       // nil: it is being claimed
	text  string

	prompt    *prompt      // nil: it is mail
	ids       []wire.ID    // of the messages
	claim     *claim.Claim // of those that were still unread; nil: the way claims them itself
	isPointer bool         // the text only points at the messages, which stay unread
	turn      string       // that it began, if known
	typing    *typing      // nil: nothing of it was typed

	cause delivery.Event // why it is not given, or taken back
	why   string
}

// items are the claimed messages, which the text contains or points at.
func (g *giving) items() []*maildir.Item {
	if g.claim == nil {
		return nil
	}
	return g.claim.Items
}

// typed returns what was typed of the text; nil: nothing.
func (g *giving) typed() *typing {
	if g == nil {
		return nil
	}
	return g.typing
}

// isBeingTyped reports whether keys were typed, but not yet the return key; isSubmitted whether that was, too.
func (g *giving) isBeingTyped() bool { return g.typed() != nil && g.state == delivery.Put }
func (g *giving) isSubmitted() bool  { return g.typed() != nil && g.state == delivery.Sent }

const (
	maxClaimed = 64 // messages at once

	retryClaim = time.Second
	retryFirst = 5 * time.Second // after a text that the program did not accept; doubles up to retryLast
	retryLast  = 5 * time.Minute
)

// happened tells the text under way what has happened, and does what the table says.
func (r *runner) happened(e delivery.Event, why string) {
	g := r.mail.giving
	if g == nil {
		return
	}
	state, effect := delivery.Next(g.state, e)
	if state != g.state {
		g.state, g.since = state, r.now()
	}
	if effect != delivery.Nothing && why != "" {
		g.cause, g.why = e, why
	}
	switch effect {
	case delivery.Give:
		if why := r.compose(g); why != "" {
			r.happened(delivery.Moot, why)
		} else {
			g.way.put(g)
		}
	case delivery.TakeBack:
		if e := g.way.takeBack(g); e != "" {
			r.happened(e, "")
		}
	case delivery.MarkRead:
		r.wasAccepted(g)
	case delivery.Release, delivery.Repeat:
		r.wasNotAccepted(g, effect)
	}
}

// report is happened for what another goroutine has learned.
func (r *runner) report(g *giving, err error) {
	r.post(func() {
		if r.mail.giving != g {
			return
		}
		why := ""
		if err != nil {
			why = err.Error()
		}
		r.happened(delivery.EventOf(err), why)
	})
}

// stepGiving asks what has happened to the text under way.
func (r *runner) stepGiving(now time.Time) {
	if g := r.mail.giving; g.way != nil {
		if e, why := g.way.has(g, now); e != "" {
			r.happened(e, why)
		}
	}
}

// abandonGiving withdraws the text under way. What was sent off stays: its program, if there is one, may have it.
func (r *runner) abandonGiving(why string) {
	if r.prog == nil {
		r.happened(delivery.Ended, why)
	} else {
		r.happened(delivery.Moot, why)
	}
}

// claim claims messages beside the loop, so that nobody else reads them. For a prompt it only asks whether anything may act.
func (r *runner) claim(g *giving) {
	ids, now, reader, how := g.ids, r.now(), r.prog.state().reader, r.inject()
	r.claims.do(func() {
		isMoved := !r.isInPlace()
		if g.prompt != nil {
			err := r.Box.Store().MayAct(r.ctx)
			r.post(func() {
				r.root.isMoved = isMoved
				r.claimed(g, err)
			})
			return
		}
		wanted := ids
		ids = r.follower.Admit(ids)
		held := slices.DeleteFunc(slices.Clone(wanted), func(id wire.ID) bool { return slices.Contains(ids, id) })
		n, isPointer := len(ids), how == Pointer
		if how == Body {
			n, isPointer = r.countTogether(ids, now, reader)
		}
		ids = ids[:n]
		c, err := r.Hold.Claim(r.ctx, ids)
		if err == nil && isPointer { // at once, so that a hook of this prompt may hand the messages over
			c.Release(r.ctx) // an error does not matter: it is done again at the end
		}
		var leased []*maildir.Item // of them the queue has to know until when
		for i := 0; c != nil && i < len(c.Leased); i++ {
			if it, err := r.Box.Get(c.Leased[i]); err == nil {
				leased = append(leased, it)
			}
		}
		if !r.post(func() {
			g.ids, g.claim, g.isPointer, r.root.isMoved = ids, c, isPointer, isMoved
			r.mail.unqueue(held...) // they are told of again when they may be given
			if err == nil {
				r.mail.unqueue(ids...)
			}
			for _, it := range leased {
				r.messageArrived(it, r.now())
			}
			r.claimed(g, err)
		}) && c != nil {
			c.Release(context.Background())
		}
	})
}

// claimed goes on with what may be given. Messages may have been read meanwhile, or handed over by a hook.
func (r *runner) claimed(g *giving, failed error) {
	m, c, now := &r.mail, g.claim, r.now()
	if r.prog != nil {
		r.prog.refresh()
	}
	if failed != nil {
		m.retryAt = now.Add(retryClaim)
		r.Log.Error("claiming messages", "err", failed)
		r.askMayAct() // perhaps that is why
	} else if c != nil {
		g.ids = idsOf(c.Items)
	}
	isOver := g.prompt == nil && len(g.ids) == 0 || g.prompt != nil && (g.prompt.isOver || r.gate(now) != control.GateOpen)
	if failed != nil || isOver {
		m.giving = nil
		return
	}
	for _, id := range g.ids { // the log says so, too, but perhaps after the turn: urgent mail would interrupt its own
		begun := wire.Event{Kind: wire.EventInjecting}.With("id", string(id))
		r.queue.Apply(&begun, now)
	}
	g.way = r.prog
	r.happened(delivery.Got, "")
}

// compose renders the claimed messages, or says why they may not be given: the gates may have shut.
func (r *runner) compose(g *giving) (why string) {
	if g.claim == nil {
		return ""
	}
	now := r.now()
	gate := r.gate(now)
	_, why = r.typable(g.items())
	switch {
	case gate != control.GateOpen:
		return string(gate)
	case why == "" && r.inject() == Execute && slices.Contains(noticeTypes, g.items()[0].Type):
		r.giveUp(g)
		return noNotices
	case why != "":
		return why
	}
	if g.text = r.mailText(g, now); g.text == "" && r.inject() != Execute {
		g.isPointer, g.text = true, pointerText(g.items(), r.prog.state().isPlain)
	}
	return ""
}

// giveUp keeps the messages from being given again in this run, unless they arrive now.
func (r *runner) giveUp(g *giving) {
	for _, id := range g.ids {
		r.mail.tries[id] = control.MaxTries
	}
}

// wasAccepted ends the giving of a text that the program has accepted. Only now do the messages become read.
func (r *runner) wasAccepted(g *giving) {
	m := &r.mail
	m.giving, m.pause = nil, 0
	if g.way != way(&r.beside) {
		m.last = g
	}
	if g.prompt != nil {
		m.end(g.prompt, nil)
	}
	switch {
	case g.claim != nil && !g.isPointer:
		g.claim.Turn = g.turn
		r.changeClaim(func() error {
			r.events.wait() // the log has the turn first: see undoLastTyping
			return g.claim.Typed(context.Background())
		})
	case g.claim != nil:
		r.changeClaim(func() error { return g.claim.Release(context.Background()) })
		r.appendForAll(wire.Event{Kind: wire.EventInjected}.With("as", "pointer"), g.ids)
	}
	for _, id := range g.ids {
		delete(m.tries, id)
	}
	r.writeRunInfo() // it has the driver of the program that got the mail
	r.releaseKeys()
}

// wasNotAccepted ends the giving of a text that the program does not have, or may not have. The messages stay unread:
//
//	it has nothing of them       nobody will know, and they may be given again
//	it may have them             the next giving is marked as a possible repeat
//	nothing tells what it did    that, and it was one of MaxTries
//	lines of them were run       the last of MaxTries: they must not run again
//
// They are given again as soon as a way is open: after a pause if they were typed. But a shell that may have run them gets
// nothing before it is idle once more.
func (r *runner) wasNotAccepted(g *giving, effect delivery.Effect) {
	m := &r.mail
	m.giving = nil
	outcome, isUnknown := "failed", g.cause == delivery.Silent || g.cause == delivery.Ended
	if isUnknown {
		outcome = "unverified"
	}
	r.Log.Warn("giving a text", "outcome", outcome, "reason", g.why)
	again := g.ids
	if c := g.claim; c != nil {
		again, _ = r.typable(c.Items)
		r.appendForAll(wire.Event{Kind: wire.EventInjectionFailed}.With("outcome", outcome).With("reason", g.why), g.ids)
		if effect == delivery.Release || g.isPointer {
			r.changeClaim(func() error { return c.Release(context.Background()) })
		} else {
			r.changeClaim(func() error { return c.Expire(context.Background()) })
		}
	}
	failed := errors.New("the text was not accepted: " + g.why)
	if effect == delivery.Repeat {
		failed = fmt.Errorf("%w: %s", delivery.ErrUnsure, g.why)
	}
	switch p := g.prompt; {
	case p == nil:
	case effect == delivery.Release && g.cause == delivery.NotIn: // like one whose gate has shut
	case !m.end(p, failed):
		r.reportError("the first prompt was not typed: " + g.why)
	}
	if isUnknown {
		for _, id := range g.ids {
			m.tries[id]++
		}
	}
	switch {
	case g.way == way(&r.beside):
		r.beside.rest(g)
	case g.typing != nil:
		m.pause = min(max(2*m.pause, retryFirst), retryLast)
		m.retryAt = r.now().Add(m.pause)
	}
	if !isUnknown || r.prog != nil && !r.prog.state().isPlain {
		m.requeue(again)
	}
	r.releaseKeys()
}

func (r *runner) appendForAll(e wire.Event, ids []wire.ID) {
	for _, id := range ids {
		r.append(e.With("id", string(id)))
	}
}

func idsOf(items []*maildir.Item) []wire.ID {
	ids := make([]wire.ID, 0, len(items))
	for _, it := range items {
		ids = append(ids, it.ID)
	}
	return ids
}

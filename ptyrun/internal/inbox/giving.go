package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/wire"
)

// A giving is a text that is being given. The table of package delivery says what each event means for it.
type giving struct {
	run.Text
	way    run.Way      // nil: it is being claimed
	prompt *Prompt      // nil: it is mail
	claim  *claim.Claim // of the messages that were still unread; nil: it is a prompt
	why    string       // as its Cause
}

const (
	maxClaimed = 64 // messages at once
	retryClaim = time.Second
)

// Happened tells the text under way what has happened, and does what the table says.
func (in *Inbox) Happened(e delivery.Event, why string) {
	g := in.giving
	if g == nil {
		return
	}
	state, effect := delivery.Next(g.State, e)
	if state != g.State {
		g.State, g.Since = state, in.Now()
	}
	if effect != delivery.Nothing && why != "" {
		g.Cause, g.why = e, why
	}
	switch effect {
	case delivery.Give:
		if why := in.compose(g); why != "" {
			in.Happened(delivery.Moot, why)
		} else {
			e, why := g.way.Put(&g.Text, func(err error) { in.report(g, err) })
			in.Happened(e, why)
		}
	case delivery.TakeBack:
		if e := g.way.TakeBack(&g.Text); e != "" {
			in.Happened(e, "")
		}
	case delivery.MarkRead:
		in.wasAccepted(g)
	case delivery.Release, delivery.Repeat:
		in.wasNotAccepted(g, effect)
	}
}

// report is Happened for what another goroutine has learned.
func (in *Inbox) report(g *giving, err error) {
	in.Post(func() {
		if in.giving != g {
			return
		}
		why := ""
		if err != nil {
			why = err.Error()
		}
		in.Happened(delivery.EventOf(err), why)
	})
}

// stepGiving asks what has happened to the text under way.
func (in *Inbox) stepGiving(now time.Time) {
	if g := in.giving; g.way != nil {
		if e, why := g.way.Has(&g.Text, now); e != "" {
			in.Happened(e, why)
		}
	}
}

// Abandon withdraws the text under way. What was sent off stays: its program, if there is one, may have it.
func (in *Inbox) Abandon(why string) {
	if in.Agent == nil {
		in.Happened(delivery.Ended, why)
	} else {
		in.Happened(delivery.Moot, why)
	}
}

// claim claims messages beside the loop, so that nobody else reads them. For a prompt it only asks whether anything may act.
func (in *Inbox) claim(g *giving) {
	ids, now, reader, how := g.IDs, in.Now(), in.Agent.State().Reader, in.Inject()
	in.claims.Do(func() {
		isMoved := in.IsMoved()
		if g.prompt != nil {
			err := in.Box.Store().MayAct(in.Context())
			in.Post(func() {
				in.root.isMoved = isMoved
				in.claimed(g, err)
			})
			return
		}
		n, isPointer := len(ids), how == Pointer
		if how == Body {
			n, isPointer = in.countTogether(ids, now, reader)
		}
		var held []wire.ID
		asked := in.rereads.Load()
		ids = slices.DeleteFunc(slices.Clone(ids[:n]), func(id wire.ID) bool {
			it, err := in.Box.Get(id)
			isHeld := err == nil && in.isWithheld(it)
			if isHeld {
				held = append(held, id)
			}
			return isHeld
		})
		c, err := in.hold.Claim(in.Context(), ids)
		if err == nil && isPointer { // at once, so that a hook of this prompt may hand the messages over
			c.Release(in.Context()) // an error does not matter: it is done again at the end
		}
		var leased []*wire.Item // of them the queue has to know until when
		for i := 0; c != nil && i < len(c.Leased); i++ {
			if it, err := in.Box.Get(c.Leased[i]); err == nil {
				leased = append(leased, it)
			}
		}
		if !in.Post(func() {
			g.IDs, g.claim, g.IsPointer, in.root.isMoved = ids, c, isPointer, isMoved
			if c != nil {
				g.Items = c.Items
			}
			in.withheld(asked, held...)
			if err == nil {
				in.unqueue(ids...)
				for _, id := range ids { // somebody else may have claimed it, and lose it
					if !slices.ContainsFunc(c.Items, func(it *wire.Item) bool { return it.ID == id }) {
						in.queue.Hold(id, in.Now().Add(in.queue.Patience))
					}
				}
			}
			for _, it := range leased {
				in.Arrived(it, in.Now())
			}
			in.claimed(g, err)
		}) && c != nil {
			c.Release(context.Background())
		}
	})
}

// claimed goes on with what may be given. Messages may have been read meanwhile, or handed over by a hook.
func (in *Inbox) claimed(g *giving, failed error) {
	c, now := g.claim, in.Now()
	if in.Agent != nil {
		in.Agent.Refresh()
	}
	if failed != nil {
		in.retryAt = now.Add(retryClaim)
		in.Log.Error("claiming messages", "err", failed)
		in.AskMayAct() // perhaps that is why
	} else if c != nil {
		g.IDs = idsOf(c.Items)
	}
	isOver := g.prompt == nil && len(g.IDs) == 0 || g.prompt != nil && (g.prompt.isOver || in.Gate(now) != control.GateOpen)
	if failed != nil || isOver {
		in.giving = nil
		return
	}
	for _, id := range g.IDs { // the log says so, too, but perhaps after the turn: urgent mail would interrupt its own
		begun := wire.Event{Kind: wire.EventInjecting}.With("id", string(id))
		in.queue.Apply(&begun, now)
	}
	g.way = in.Agent
	in.Happened(delivery.Got, "")
}

// compose renders the claimed messages, or says why they may not be given: the gates may have shut.
func (in *Inbox) compose(g *giving) (why string) {
	if g.claim == nil {
		return ""
	}
	now := in.Now()
	if gate := in.Gate(now); gate != control.GateOpen {
		return string(gate)
	}
	if _, why = in.typable(g.Items); why != "" {
		return why
	}
	if g.Words = in.mailText(g, now); g.Words == "" {
		g.IsPointer, g.Words = true, pointerText(g.Items, in.Agent.State().IsPlain)
	}
	return ""
}

// wasAccepted ends the giving of a text that the program has accepted. Only now do the messages become read.
func (in *Inbox) wasAccepted(g *giving) {
	in.giving, in.pause, in.last = nil, 0, g
	if g.prompt != nil {
		in.end(g.prompt, nil)
	}
	switch {
	case g.claim != nil && !g.IsPointer:
		g.claim.Turn = g.Turn
		in.ChangeClaim(func() error {
			in.WaitLogged() // the log has the turn first: see UndoGiven
			return g.claim.Typed(context.Background())
		})
	case g.claim != nil:
		in.ChangeClaim(func() error { return g.claim.Release(context.Background()) })
		in.appendForAll(wire.Event{Kind: wire.EventInjected}.With("as", "pointer"), g.IDs)
	}
	for _, id := range g.IDs {
		delete(in.tries, id)
	}
	in.o.Dropped()
}

// wasNotAccepted ends the giving of a text that the program does not have, or may not have. The messages stay unread:
//
//	it has nothing of them       nobody will know, and they may be given again
//	it may have them             the next giving is marked as a possible repeat
//	nothing tells what it did    that, and it was one of MaxTries
//
// They are given again as soon as a way is open: after a pause if they were typed.
func (in *Inbox) wasNotAccepted(g *giving, effect delivery.Effect) {
	in.giving = nil
	outcome, isUnknown := "failed", g.Cause == delivery.Silent || g.Cause == delivery.Ended
	if isUnknown {
		outcome = "unverified"
	}
	in.Log.Warn("giving a text", "outcome", outcome, "reason", g.why)
	again := g.IDs
	if c := g.claim; c != nil {
		again, _ = in.typable(c.Items)
		in.appendForAll(wire.Event{Kind: wire.EventInjectionFailed}.With("outcome", outcome).With("reason", g.why), g.IDs)
		if effect == delivery.Release || g.IsPointer {
			in.ChangeClaim(func() error { return c.Release(context.Background()) })
		} else {
			in.ChangeClaim(func() error { return c.Expire(context.Background()) })
		}
	}
	failed := errors.New("the text was not accepted: " + g.why)
	if effect == delivery.Repeat {
		failed = fmt.Errorf("%w: %s", delivery.ErrUnsure, g.why)
	}
	switch p := g.prompt; {
	case p == nil:
	case effect == delivery.Release && g.Cause == delivery.NotIn: // like one whose gate has shut
	case !in.end(p, failed):
		in.ReportError("the first prompt was not typed: " + g.why)
	}
	if isUnknown {
		for _, id := range g.IDs {
			in.tries[id]++
		}
	}
	if g.IsTyped {
		in.pause = min(max(2*in.pause, in.Timing.Retry), run.RetryLast)
		in.retryAt = in.Now().Add(in.pause)
	}
	in.requeue(again)
	in.o.Dropped()
}

func (in *Inbox) appendForAll(e wire.Event, ids []wire.ID) {
	for _, id := range ids {
		in.Append(e.With("id", string(id)))
	}
}

func idsOf(items []*wire.Item) []wire.ID {
	ids := make([]wire.ID, 0, len(items))
	for _, it := range items {
		ids = append(ids, it.ID)
	}
	return ids
}

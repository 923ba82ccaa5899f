package ptyrun

import (
	"context"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Beside gives a program mail by another way than its prompt: an inbox of its own, its server, a plugin. Then a person's
// draft and keys are no reason to wait. The program, or what it has for this, tells which messages it has: they are read
// then. The runner types what nobody has told of in time.
//
// Its methods are called beside the loop, one at a time.
type Beside interface {
	// Look names the way that is open now; "": none is.
	Look(ctx context.Context) (by string)
	// Give gives messages, or has the program take them. After an error it has none of them.
	Give(ctx context.Context, ids []wire.ID) error
	// TakeBack returns those of the messages that may be given again: they are not read, and nobody else is giving them.
	TakeBack(ctx context.Context, ids []wire.ID) []wire.ID
}

// beside is Options.Beside as a way of the loop. The messages are claimed by whoever gives them so: the log tells that they
// are read.
type beside struct {
	r         *runner
	by        string // the way that is open; "": none, or not known yet
	lookedAt  time.Time
	isLooking bool
	restUntil time.Time        // it was of no use
	taking    *giving          // is just being taken back
	atPrompt  map[wire.ID]bool // what does not go this way: the follower gives it in other words
}

const (
	lookTime  = 3 * time.Second
	giveTime  = 8 * time.Second // a plugin starts a process or two for it
	lookEvery = 2 * time.Second // while there is mail
)

func (b *beside) isOpen(now time.Time) bool { return b.by != "" && !now.Before(b.restUntil) }

// lookBeside finds out which way is open, and reports whether that is not known yet. It is asked again before each mail.
func (r *runner) lookBeside(now time.Time) (isLooking bool) {
	b := &r.beside
	switch {
	case r.Beside == nil, r.inject() != Body, !r.hasTerminal(), now.Before(b.restUntil):
		return false
	case b.isLooking:
		return true
	case !b.lookedAt.IsZero() && now.Before(b.lookedAt.Add(lookEvery)):
		return false
	}
	b.isLooking = true
	r.wg.Go(func() {
		ctx, cancel := context.WithTimeout(r.ctx, lookTime)
		defer cancel()
		by := r.Beside.Look(ctx)
		r.post(func() { b.by, b.isLooking, b.lookedAt = by, false, r.now() })
	})
	return true
}

func (b *beside) gate(now time.Time) control.Gate { return b.r.onTerminal().screenGate(now, true) }

func (b *beside) put(g *giving) {
	r, ids := b.r, slices.Clone(g.ids)
	r.happened(delivery.In, "")
	r.wg.Go(func() {
		ctx, cancel := context.WithTimeout(r.ctx, giveTime)
		defer cancel()
		r.report(g, r.Beside.Give(ctx, ids))
	})
}

// has reports whether all messages are read. While the program is busy it takes them behind what it does.
func (b *beside) has(g *giving, now time.Time) (e delivery.Event, why string) {
	r := b.r
	switch {
	case len(g.ids) == 0:
		return delivery.Receipt, ""
	case g.state == delivery.Put, b.taking == g, r.mustWait(g.since.Add(5*r.timing.accept), now):
		return "", ""
	case r.state.Session().Word() != reducer.WordIdle:
		return "", ""
	}
	return delivery.Silent, "the program has not confirmed it"
}

// takeBack ends with those of the messages that may be given again.
func (b *beside) takeBack(g *giving) delivery.Event {
	if g.cause == delivery.NotIn {
		return delivery.Gone
	}
	if g.state == delivery.Put {
		return "" // it is just being given
	}
	r, ids := b.r, slices.Clone(g.ids)
	b.taking = g
	r.claims.do(func() {
		back := r.Beside.TakeBack(context.WithoutCancel(r.ctx), ids)
		r.post(func() {
			if r.mail.giving != g {
				return
			}
			if g.ids = back; len(back) > 0 {
				r.happened(delivery.Kept, "")
			} else {
				r.happened(delivery.Receipt, "")
			}
		})
	})
	return ""
}

// rest has all mail typed for a while, after messages that the way did not take. With the program the way has ended, too.
func (b *beside) rest(g *giving) {
	by := b.by
	b.by, b.lookedAt = "", time.Time{}
	if g.cause == delivery.Ended {
		return
	}
	b.r.Log.Warn("giving mail beside the prompt", "way", by, "reason", g.why)
	b.restUntil = b.r.now().Add(retryLast)
}

// takenBeside has a message that an idle program has taken itself count as given: its plugin may be faster than the loop.
func (r *runner) takenBeside(e *wire.Event) {
	b, g, id := &r.beside, r.mail.giving, e.MessageID()
	if e.Kind != wire.EventAnnounced || e.Source != "hook" || b.by == "" || r.state.Session().Word() != reducer.WordIdle {
		return
	}
	r.mail.unqueue(id)
	switch {
	case g == nil:
		r.mail.giving, r.mail.last = &giving{state: delivery.Sent, since: r.now(), way: b, ids: []wire.ID{id}}, nil
	case g.way == way(b) && !slices.Contains(g.ids, id):
		g.ids, g.since = append(g.ids, id), r.now()
	}
}

// readBeside takes a message that was read or withdrawn from what is under way.
func (r *runner) readBeside(e *wire.Event) {
	switch e.Kind {
	case wire.EventRead, wire.EventInjected, wire.EventAcked, wire.EventWithdrawn:
		if g := r.mail.giving; g != nil && g.way == way(&r.beside) {
			g.ids = slices.DeleteFunc(g.ids, func(id wire.ID) bool { return id == e.MessageID() })
		}
	}
}

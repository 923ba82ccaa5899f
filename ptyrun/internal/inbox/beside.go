package inbox

import (
	"context"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// beside is Options.Beside as a way of the loop. The messages are claimed by whoever gives them so: the log tells that they
// are read.
type beside struct {
	in        *Inbox
	by        string // the way that is open; "": none, or not known yet
	lookedAt  time.Time
	isLooking bool
	restUntil time.Time        // it was of no use
	taking    *run.Text        // is just being taken back
	atPrompt  map[wire.ID]bool // what does not go this way: it is given in other words
}

// besideAgent is an agent with a terminal, which says why it takes nothing beside its prompt.
type besideAgent interface {
	BesideGate(now time.Time) control.Gate
}

const (
	lookTime  = 3 * time.Second
	giveTime  = 8 * time.Second // a plugin starts a process or two for it
	lookEvery = 2 * time.Second // while there is mail
)

func (b *beside) isOpen(now time.Time) bool { return b.by != "" && !now.Before(b.restUntil) }

// lookBeside finds out which way is open, and reports whether that is not known yet. It is asked again before each mail.
func (in *Inbox) lookBeside(now time.Time) (isLooking bool) {
	b := &in.beside
	switch {
	case in.o.Beside == nil, in.Inject() != Body, !in.o.HasTerminal, now.Before(b.restUntil):
		return false
	case b.isLooking:
		return true
	case !b.lookedAt.IsZero() && now.Before(b.lookedAt.Add(lookEvery)):
		return false
	}
	b.isLooking = true
	in.Go(func() {
		ctx, cancel := context.WithTimeout(in.Context(), lookTime)
		defer cancel()
		by := in.o.Beside.Look(ctx)
		in.Post(func() { b.by, b.isLooking, b.lookedAt = by, false, in.Now() })
	})
	return true
}

func (b *beside) Gate(now time.Time) control.Gate { return b.in.Agent.(besideAgent).BesideGate(now) }

func (b *beside) Put(g *run.Text, report func(error)) (e delivery.Event, why string) {
	in, ids := b.in, slices.Clone(g.IDs)
	in.Go(func() {
		ctx, cancel := context.WithTimeout(in.Context(), giveTime)
		defer cancel()
		report(in.o.Beside.Give(ctx, ids))
	})
	return delivery.In, ""
}

// Has reports whether all messages are read. While the program is busy it takes them behind what it does.
func (b *beside) Has(g *run.Text, now time.Time) (e delivery.Event, why string) {
	in := b.in
	switch {
	case len(g.IDs) == 0:
		return delivery.Receipt, ""
	case g.State == delivery.Put, b.taking == g, in.MustWait(g.Since.Add(5*in.Timing.Accept), now):
		return "", ""
	case in.State.Session().Word() != reducer.WordIdle:
		return "", ""
	}
	return delivery.Silent, "the program has not confirmed it"
}

// TakeBack ends with those of the messages that may be given again.
func (b *beside) TakeBack(g *run.Text) delivery.Event {
	if g.Cause == delivery.NotIn {
		return delivery.Gone
	}
	if g.State == delivery.Put {
		return "" // it is just being given
	}
	in, ids := b.in, slices.Clone(g.IDs)
	b.taking = g
	in.claims.Do(func() {
		back := in.o.Beside.TakeBack(context.WithoutCancel(in.Context()), ids)
		in.Post(func() {
			if now := in.giving; now == nil || &now.Text != g {
				return
			}
			if g.IDs = back; len(back) > 0 {
				in.Happened(delivery.Kept, "")
			} else {
				in.Happened(delivery.Receipt, "")
			}
		})
	})
	return ""
}

// rest has all mail typed for a while, after messages that the way did not take. With the program the way has ended, too.
func (b *beside) rest(g *giving) {
	by := b.by
	b.by, b.lookedAt = "", time.Time{}
	if g.Cause == delivery.Ended {
		return
	}
	b.in.Log.Warn("giving mail beside the prompt", "way", by, "reason", g.why)
	b.restUntil = b.in.Now().Add(run.RetryLast)
}

// takenBeside has a message that an idle program has taken itself count as given: its plugin may be faster than the loop.
func (in *Inbox) takenBeside(e *wire.Event) {
	b, g, id := &in.beside, in.giving, e.MessageID()
	if e.Kind != wire.EventAnnounced || e.Source != wire.SourceHook || b.by == "" || in.State.Session().Word() != reducer.WordIdle {
		return
	}
	in.unqueue(id)
	switch {
	case g == nil:
		in.giving, in.last = &giving{Text: run.Text{State: delivery.Sent, Since: in.Now(), IDs: []wire.ID{id}}, way: b}, nil
	case g.way == run.Way(b) && !slices.Contains(g.IDs, id):
		g.IDs, g.Since = append(g.IDs, id), in.Now()
	}
}

// readBeside takes a message that was read or withdrawn from what is under way.
func (in *Inbox) readBeside(e *wire.Event) {
	switch e.Kind {
	case wire.EventRead, wire.EventInjected, wire.EventAcked, wire.EventWithdrawn:
		if g := in.giving; g != nil && g.way == run.Way(&in.beside) {
			g.IDs = slices.DeleteFunc(g.IDs, func(id wire.ID) bool { return id == e.MessageID() })
		}
	}
}

// Beside gives a program mail by another way than its prompt: see ptyrun.Beside.
type Beside interface {
	Look(ctx context.Context) (by string)
	Give(ctx context.Context, ids []wire.ID) error
	TakeBack(ctx context.Context, ids []wire.ID) []wire.ID
}

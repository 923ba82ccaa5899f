package ptyrun

import (
	"context"
	"slices"
	"time"

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

// beside is what the loop knows of Options.Beside.
type beside struct {
	by        string // the way that is open; "": none, or not known yet
	lookedAt  time.Time
	isLooking bool
	restUntil time.Time // it was of no use

	ids     []wire.ID // that were given, and are not known to be read
	isBusy  bool      // they are just being given or taken back
	givenAt time.Time
	isTyped map[wire.ID]bool // they do not go that way: it was in vain, or the follower gives them in other words
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
	case r.Beside == nil, r.inject() != Body, now.Before(b.restUntil):
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

// goesBeside reports whether a message goes by that way.
func (r *runner) goesBeside(id wire.ID, now time.Time) bool {
	b := &r.beside
	return r.prog != nil && r.inject() == Body && b.isOpen(now) && !b.isTyped[id]
}

// giveBeside gives messages. Until they are read, or it was in vain, nothing else is given.
func (r *runner) giveBeside(ids []wire.ID) {
	b, by := &r.beside, r.beside.by
	ids = slices.Clone(ids)
	r.mail.unqueue(ids...)
	r.mail.given, r.mail.givenPrompt = nil, nil
	b.ids, b.isBusy = slices.Clone(ids), true
	r.wg.Go(func() {
		ctx, cancel := context.WithTimeout(r.ctx, giveTime)
		defer cancel()
		err := r.Beside.Give(ctx, ids)
		r.post(func() {
			b.isBusy, b.givenAt = false, r.now()
			if err != nil {
				r.wasInVain(by, b.ids, err.Error())
			}
		})
	})
}

// stepBeside reports whether what was given is still under way.
func (r *runner) stepBeside(now time.Time) (isUnderWay bool) {
	b := &r.beside
	switch {
	case len(b.ids) == 0:
		return false
	case b.isBusy, r.mustWait(b.givenAt.Add(5*r.timing.accept), now):
		return true
	case r.state.Session().Word() != reducer.WordIdle: // it takes it behind what it does
		return true
	}
	b.isBusy = true
	ids, by := slices.Clone(b.ids), b.by
	r.claims.do(func() {
		back := r.Beside.TakeBack(context.WithoutCancel(r.ctx), ids)
		r.post(func() {
			b.isBusy = false
			for _, id := range back { // perhaps it has them: once more, and no more
				r.mail.tries[id] = control.MaxTries - 1
			}
			r.wasInVain(by, back, "the program has not confirmed it")
		})
	})
	return true
}

// wasInVain has messages typed, and what comes next for a while.
func (r *runner) wasInVain(by string, ids []wire.ID, why string) {
	b := &r.beside
	b.ids = nil
	if len(ids) == 0 {
		return
	}
	r.Log.Warn("giving mail beside the prompt", "way", by, "reason", why)
	b.by, b.restUntil = "", r.now().Add(retryLast)
	for _, id := range ids {
		b.isTyped[id] = true
	}
	r.mail.requeue(ids)
}

// takenBeside has a message that an idle program has taken itself count as given: its plugin may be faster than the loop.
func (r *runner) takenBeside(e *wire.Event) {
	b, id := &r.beside, e.MessageID()
	if e.Kind == wire.EventAnnounced && e.Source == "hook" && b.by != "" && r.state.Session().Word() == reducer.WordIdle && !slices.Contains(b.ids, id) {
		b.ids, b.givenAt = append(b.ids, id), r.now()
		r.mail.unqueue(id)
	}
}

// readBeside takes a message that was read or withdrawn from what is under way.
func (r *runner) readBeside(e *wire.Event) {
	switch e.Kind {
	case wire.EventRead, wire.EventInjected, wire.EventAcked, wire.EventWithdrawn:
		id := e.MessageID()
		r.beside.ids = slices.DeleteFunc(r.beside.ids, func(other wire.ID) bool { return other == id })
	}
}

// nextTogether returns how many of the messages that are next go together, and whether beside the prompt.
func (r *runner) nextTogether(queue []wire.ID, now time.Time) (n int, isBeside bool) {
	n, isBeside = 1, r.goesBeside(queue[0], now)
	for !r.isAlone(queue[0]) && n < min(len(queue), maxClaimed) && !r.isAlone(queue[n]) && r.goesBeside(queue[n], now) == isBeside {
		n++
	}
	return n, isBeside
}

package main

import (
	"context"
	"errors"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// goal is one thing that is waited for.
type goal struct {
	kind string // mail, reply, acked, idle, busy, turn-done, confirming, exit, event
	word string // as it was named
	box  *mailbox.Box

	id    wire.ID // reply, acked, turn-done of a message
	msg   *wire.Message
	ways  []*way
	since int                  // event: -1 from now
	check func() (bool, error) // mail: another question to ask than whether there is any

	met   *mailbox.Item
	event *wire.Event
	row   *teams.Member
	done  bool
}

// way is a message's delivery to one recipient.
type way struct {
	box   *mailbox.Box
	turns *teams.Turns
	turn  func() *teams.Turn // into which it was handed
}

// about reports whether the goal is about an agent's state.
func (g *goal) about() bool {
	switch g.kind {
	case "idle", "busy", "confirming", "blocked", "exit":
		return true
	case "turn-done":
		return len(g.ways) == 0
	}
	return false
}

// reached reports whether a member's row is what is waited for. Unknown is
// none of these.
func (g *goal) reached(m teams.Member) bool {
	switch g.kind {
	case "idle":
		return m.State == reducer.WordIdle
	case "busy":
		return m.State == reducer.WordBusy
	case "confirming":
		return m.State == reducer.WordBlocked && m.Activity == reducer.Confirming
	case "blocked":
		return m.State == reducer.WordBlocked
	case "exit":
		return m.State == reducer.WordOff
	case "turn-done":
		return m.State == reducer.WordIdle || m.State == reducer.WordOff || m.TurnStatus == reducer.TurnTerminal
	}
	return false
}

// waiter waits until goals are met. It watches from the moment it is made, so
// that nothing between a look and the wait is missed.
type waiter struct {
	w     *watcher.Watcher
	goals []*goal
	folds map[wire.Address]*reducer.State
}

// tick is how often a runner's lock is probed by who waits for an exit: a kill
// writes no event.
const tick = time.Second

func (e *env) newWaiter(ctx context.Context, goals []*goal) (*waiter, error) {
	w := &waiter{goals: goals, folds: map[wire.Address]*reducer.State{}}
	// Messages even where only events count: a dropped file may be either.
	opt := watcher.Options{Messages: true, After: map[wire.Address]uint64{}}
	var boxes []*mailbox.Box
	watch := func(b *mailbox.Box, after uint64) {
		a := b.Address()
		if old, ok := opt.After[a]; !ok {
			boxes = append(boxes, b)
			opt.After[a] = after
		} else {
			opt.After[a] = min(old, after)
		}
	}
	for _, g := range goals {
		switch {
		case g.about():
			opt.Events = true
			t, err := e.root.Team(g.box.Address().Team)
			if err != nil {
				return nil, err
			}
			g.box.TakeIn(ctx)
			s, err := t.State(g.box.Agent())
			if err != nil {
				return nil, err
			}
			w.folds[g.box.Address()] = s
			watch(g.box, s.Seq)
		case g.kind == "event":
			opt.Events = true
			after := uint64(max(0, g.since))
			if g.since < 0 {
				var err error
				if after, err = g.box.Log().LastSeq(); err != nil {
					return nil, err
				}
				g.since = int(after)
			}
			watch(g.box, after)
		case g.ways != nil:
			opt.Events = true
			for _, y := range g.ways {
				watch(y.box, y.turns.Seq())
			}
		default:
			watch(g.box, ^uint64(0)>>2)
		}
	}
	if len(goals) == 0 { // send's, which come when the message has an id
		watch(e.me, 0)
	}
	var err error
	w.w, err = watcher.Open(ctx, boxes, opt)
	return w, err
}

// whenMail returns when check is satisfied: asked at once, and again whenever
// something arrived for me. A timeout of 0 is for ever.
func (e *env) whenMail(ctx context.Context, timeout time.Duration, check func() (bool, error)) error {
	w, err := e.newWaiter(ctx, []*goal{{kind: "mail", box: e.me, check: check}})
	if err != nil {
		return err
	}
	defer w.close()
	return w.meet(ctx, e, timeout, false)
}

func (w *waiter) close() { w.w.Close() }

// meet waits until any of the goals, or every one, is met. A timeout of 0 is
// for ever.
func (w *waiter) meet(ctx context.Context, e *env, timeout time.Duration, every bool) error {
	for _, g := range w.goals {
		if err := g.look(ctx, e, w); err != nil {
			return err
		}
	}
	if w.enough(every) {
		return nil
	}
	w.warn(e)
	limited := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	for {
		if ok, err := w.next(ctx, limited, e, every); ok || err != nil {
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				// The end of a runner is no event: what was seen last need not be so.
				for _, g := range w.goals {
					if bad := g.look(ctx, e, w); bad != nil && !errors.Is(bad, mailbox.ErrNoAgent) {
						return bad
					}
				}
				if w.enough(every) {
					return nil
				}
				t := cmdline.Timeout("waited %s in vain", timeout)
				t.Extra = map[string]any{"timeout": true}
				return t
			}
			return err
		}
	}
}

// next waits for one entry, or for a tick of the clock where a lock is to be
// probed, and reports whether enough is met.
func (w *waiter) next(ctx, limited context.Context, e *env, every bool) (bool, error) {
	turn := limited
	if w.probing() {
		var cancel context.CancelFunc
		turn, cancel = context.WithTimeout(limited, tick)
		defer cancel()
	}
	entry, err := w.w.Next(turn)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil && limited.Err() == nil && turn.Err() != nil:
		for _, g := range w.goals {
			if g.kind == "exit" {
				if err := g.look(ctx, e, w); err != nil {
					return false, err
				}
			}
		}
		return w.enough(every), nil
	case err != nil:
		return false, err
	}
	if entry.Event != nil {
		if s := w.folds[entry.Box.Address()]; s != nil {
			s.Apply(reducer.Input{Now: time.Now(), Event: entry.Event})
		}
	}
	for _, g := range w.goals {
		if err := g.see(ctx, e, w, entry); err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
			return false, err // an error of the watcher's may pass: a directory that is moved and comes back
		}
	}
	return w.enough(every), nil
}

func (w *waiter) probing() bool {
	for _, g := range w.goals {
		if g.kind == "exit" && !g.done && g.row != nil && g.row.Running {
			return true
		}
	}
	return false
}

func (w *waiter) enough(every bool) bool {
	n := 0
	for _, g := range w.goals {
		if g.done {
			n++
		}
	}
	return n == len(w.goals) || n > 0 && !every
}

// warn says at once where waiting has little to hope for.
func (w *waiter) warn(e *env) {
	said := map[wire.Address]bool{}
	for _, g := range w.goals {
		if g.done || !g.about() || g.row == nil || said[g.box.Address()] {
			continue
		}
		said[g.box.Address()] = true
		switch g.row.State {
		case reducer.WordOff:
			e.Warn("%s is off%s", g.row.Name, since(*g.row))
		case reducer.WordPerson:
			e.Warn("%s is a person: their state is not known", g.row.Name)
		case reducer.WordUnknown:
			if !g.row.Running {
				e.Warn("the state of %s is unknown: no runner, no hook has said anything (atm install TOOL adds hooks)", g.row.Name)
			}
		}
	}
}

// lasts reports whether a goal that was met may be met no more: a state that
// passes. The end of a turn, an exit or a message is not undone.
func (g *goal) lasts() bool { return !g.about() || g.kind == "turn-done" || g.kind == "exit" }

// look looks at everything that is there.
func (g *goal) look(ctx context.Context, e *env, w *waiter) error {
	if g.done && g.lasts() {
		return nil
	}
	switch {
	case g.about():
		t, err := e.root.Team(g.box.Address().Team)
		if err != nil {
			return err
		}
		m, err := t.SummaryOf(g.box.Agent(), w.folds[g.box.Address()], time.Now())
		if err != nil {
			return err
		}
		g.row, g.done = &m, g.reached(m)
	case g.ways != nil:
		g.done = true
		for _, y := range g.ways {
			g.done = g.done && y.turn().HasEnded()
		}
	case g.check != nil:
		var err error
		g.done, err = g.check()
		return err
	case g.kind == "mail":
		b, err := e.me.Peek(ctx, mailbox.ReadOptions{Limit: 1})
		if err != nil {
			return err
		}
		if len(b.Items) > 0 {
			g.met, g.done = b.Items[0], true
		}
	case g.kind == "reply":
		if r := teams.Replies(ctx, e.me, g.id, wire.Address{}); len(r) > 0 {
			g.met, g.done = r[0], true
		}
	case g.kind == "acked":
		g.met, g.done = e.root.AckedBy(ctx, g.msg, e.me)
	}
	return nil
}

// see looks at one entry of the watcher.
func (g *goal) see(ctx context.Context, e *env, w *waiter, entry watcher.Entry) error {
	it, ev := entry.Message, entry.Event
	switch {
	case g.done && g.lasts():
	case ev != nil && g.ways != nil:
		for _, y := range g.ways {
			if y.box.Address() == entry.Box.Address() && ev.Seq > y.turns.Seq() {
				y.turns.Apply(ev)
			}
		}
		return g.look(ctx, e, w)
	case ev != nil && g.about() && g.box.Address() == entry.Box.Address():
		return g.look(ctx, e, w)
	case ev != nil && g.kind == "event" && g.box.Address() == entry.Box.Address() && ev.Seq > uint64(max(0, g.since)):
		// What was passed over need not be looked at again by who waits again.
		g.since = int(ev.Seq)
		if ev.Kind == g.word {
			g.event, g.done = ev, true
		}
	case it == nil:
	case g.kind == "mail" && entry.Box.Address() == e.me.Address():
		return g.look(ctx, e, w)
	case g.kind == "reply" && teams.Answers(it.Message, g.id):
		g.met, g.done = it, true
	case g.kind == "acked" && it.InReplyTo == g.id:
		return g.look(ctx, e, w)
	}
	return nil
}

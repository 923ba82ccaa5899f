package inbox

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// UndoTurn makes the messages that began the turn unread: they are typed again after the urgent mail that interrupts
// it. The channel gets the error, or nil, when that is done.
func (in *Inbox) UndoTurn() <-chan error {
	g, done := cmp.Or(in.last, &giving{}), make(chan error, 1)
	if p := g.prompt; p != nil {
		p.isUndone = true
		in.prompts = append(in.prompts, p)
	}
	in.last = nil         // undone once
	in.claims.Do(func() { // after the job that marks them as read
		var failed error
		for _, id := range g.IDs {
			if !g.IsPointer {
				failed = errors.Join(failed, in.Box.MarkUndone(context.Background(), id))
			}
		}
		in.appendForAll(wire.Event{Kind: wire.EventUnread}, g.IDs)
		done <- failed
	})
	return done
}

// UndoLast is UndoGiven for a program that is being stopped since a time. It waits for it, but not for ever.
func (in *Inbox) UndoLast(stopped time.Time) {
	done := make(chan struct{})
	in.claims.Do(func() { // after the job that marks them as read
		defer close(done)
		in.WaitLogged()
		if err := UndoGiven(context.Background(), in.Box, stopped, in.o.HasAnswered); err != nil {
			in.Log.Error("making unread what the program may not have seen", "err", err)
		}
	})
	select {
	case <-done:
	case <-time.After(undoTime):
	}
}

const undoTime = 2 * time.Second

// UndoGiven makes unread what the open turn of a program was given, by its runner or its hooks, unless that is answered. A
// turn that ends once the program is being stopped is open; zero: its runner was killed.
func UndoGiven(ctx context.Context, box *maildir.Box, stopped time.Time, hasAnswered func(context.Context, *wire.Message) bool) error {
	isAnswered := func(m *wire.Message) bool { return hasAnswered != nil && hasAnswered(ctx, m) }
	if err := readAnswered(ctx, box, isAnswered); err != nil {
		return err
	}
	isEnd := func(e *wire.Event) bool { return endsTurn(e) && (stopped.IsZero() || e.At.Before(stopped)) }
	events, err := box.Log().Tail(isEnd)
	if err != nil || len(events) == 0 {
		return err
	}
	ended := "" // a turn that was over before it was logged what had begun it
	if isEnd(&events[0]) {
		ended = events[0].TurnID
	}
	isLost := func(id wire.ID) bool {
		it, err := box.Get(id)
		return err == nil && it.State != wire.Unread && !isAnswered(it.Message)
	}
	var errs []error
	var again []wire.Event
	hasNewer := map[wire.ID]bool{} // messages of which a later event tells what became of them
	for _, e := range slices.Backward(events) {
		id, isHooks := e.MessageID(), e.Source == wire.SourceHook
		isGiven := e.Kind == wire.EventInjected && e.Field("as") != "pointer" || isHooks && e.Kind == wire.EventAnnounced
		if isGiven && !hasNewer[id] && (e.TurnID == "" || e.TurnID != ended) && isLost(id) {
			if err := box.MarkUndone(ctx, id); err != nil {
				errs = append(errs, err)
			} else {
				again = append(again, wire.Event{Source: wire.SourcePTY, Kind: wire.EventUnread}.With("id", string(id)))
			}
		}
		hasNewer[id] = hasNewer[id] || !isHooks || e.Kind != wire.EventRead // a hook's receipt follows what the hook gave
	}
	return errors.Join(append(errs, box.Log().Append(ctx, again...))...)
}

// endsTurn reports whether an event ends a turn, or is another program's, or what was before it is past.
func endsTurn(e *wire.Event) bool {
	switch e.Kind {
	case wire.TurnCompleted, wire.TurnIdle, wire.Exited, wire.Spawned:
		return true
	}
	return e.IsFreshStart() || e.Kind == wire.StateChange && run.HasEndedTurn(reducer.Activity(e.Field("new")))
}

// readAnswered marks what was given before, is unread and has been answered, as an answer marks it: that came while its
// program was stopped, or was cut off before.
func readAnswered(ctx context.Context, box *maildir.Box, isAnswered func(*wire.Message) bool) error {
	var errs []error
	held, _ := box.Held()
	for id := range held {
		it, err := box.Get(id)
		switch {
		case err != nil, it.State != wire.Unread, !isAnswered(it.Message):
		case it.RequiresAck:
			errs = append(errs, box.MarkAcked(ctx, id, box.Address()))
		default:
			errs = append(errs, box.MarkRead(ctx, id))
		}
	}
	return errors.Join(errs...)
}

package room

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// Mail returns messages of mine in the order of the ids. It leaves out those that are gone by now.
func (r *Room) Mail(ids []wire.ID) (items []*mailbox.Item) {
	for _, id := range ids {
		if it, err := r.Scope.Me.Get(id); err == nil {
			items = append(items, it)
		}
	}
	return items
}

// Thread returns the messages of a thread that I received or sent, oldest first. If the given message is not among
// them, it returns the whole thread, which takes long in a team with much mail.
func (r *Room) Thread(ctx context.Context, thread, message wire.ID) ([]*mailbox.Item, error) {
	if r.Scope.Me != nil {
		items, err := r.Scope.Team.Thread(ctx, thread, r.Scope.Me.Agent())
		if slices.ContainsFunc(items, func(it *mailbox.Item) bool { return it.ID == message }) {
			return items, err
		}
	}
	return r.Scope.Team.Thread(ctx, thread)
}

// Turns returns an agent's newest turns, oldest first.
func (r *Room) Turns(name wire.Name, limit int) ([]teams.Turn, error) {
	if _, err := r.Scope.Member(string(name)); err != nil {
		return nil, err
	}
	return r.Scope.Team.History(name, limit)
}

// Lane is a member's states over a time, in order and without gaps.
type Lane struct {
	Name  wire.Name
	Spans []Span
}

// Span is a time in which a member's state was the same.
type Span struct {
	State    reducer.Word
	From, To time.Time
}

const maxEvents = 20_000

// Timeline returns a lane for each member on this machine, and the messages that these have sent, oldest first.
func (r *Room) Timeline(ctx context.Context, since time.Time) (lanes []Lane, sent []*mailbox.Item, err error) {
	s, _ := r.Snapshot()
	var errs []error
	for _, m := range s.Members {
		if m.Host != "" {
			continue
		}
		box := r.Scope.Team.Box(m.Name)
		spans, err := spansOf(box, since)
		if last := spans[len(spans)-1]; last.State != m.State { // a lock or the clock changed it, without an event
			spans = append(spans, Span{m.State, last.To, last.To})
		}
		lanes = append(lanes, Lane{m.Name, spans})
		_, err2 := box.Walk(ctx, mailbox.Range{Sent: true, Newest: true, Since: since}, func(it *mailbox.Item) bool {
			if !it.SentAt.Before(since) {
				sent = append(sent, it)
			}
			return it.ID.Time().After(since.Add(-time.Hour)) // an ack's id has the time of the acknowledged message
		})
		errs = append(errs, err, err2)
	}
	slices.SortFunc(sent, func(a, b *mailbox.Item) int { return a.SentAt.Compare(b.SentAt) })
	return lanes, sent, errors.Join(errs...)
}

// spansOf folds a member's events into spans, at least one.
func spansOf(box *mailbox.Box, since time.Time) ([]Span, error) {
	n := 0
	events, err := box.Log().Tail(func(e *wire.Event) bool {
		n++
		isStart := slices.Contains([]string{wire.TurnStarted, wire.TurnCompleted, "spawned", "exited"}, e.Kind)
		return n >= maxEvents || isStart && e.At.Before(since)
	})
	spans, state := []Span{{reducer.WordUnknown, since, time.Now()}}, reducer.State{}
	for i := range events {
		e := &events[i]
		state.Apply(reducer.Input{Now: e.At, Event: e})
		last := &spans[len(spans)-1]
		word := state.Turn().Word()
		switch {
		case word == last.State:
		case !e.At.After(last.From):
			last.State = word
		default:
			spans = append(spans, Span{word, e.At, last.To})
			spans[len(spans)-2].To = e.At
		}
	}
	return spans, err
}

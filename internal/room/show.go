package room

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// Mail are messages of mine, in the order of their ids. What has gone meanwhile is left out.
func (r *Room) Mail(ids []wire.ID) (items []*mailbox.Item) {
	for _, id := range ids {
		if it, err := r.scope.Me.Get(id); err == nil {
			items = append(items, it)
		}
	}
	return items
}

// Message is the message that an id, or the beginning of one, means: mine, else one of the team's. It stays
// as it is.
func (r *Room) Message(id string) (*mailbox.Item, error) {
	it, _, err := r.scope.Team.Find(r.scope.Me, id)
	return it, err
}

// Thread is what a thread has of messages that I got or sent, or, where I am nobody, all of it, in order.
func (r *Room) Thread(ctx context.Context, thread wire.ID) ([]*mailbox.Item, error) {
	if r.scope.Me == nil {
		return r.scope.Team.Thread(ctx, thread)
	}
	return r.scope.Team.Thread(ctx, thread, r.scope.Me.Agent())
}

// Search are the messages of the team that words mean, as `atm search` reads them, newest first.
func (r *Room) Search(ctx context.Context, words string) ([]*mailbox.Item, error) {
	q, err := teams.ParseQuery(strings.Fields(words), time.Now(), command.ParseDuration)
	if err != nil {
		return nil, command.Usage("%v", err).WithHint("WORDS from:alice since:7d")
	}
	return r.scope.Team.Search(ctx, q)
}

// Turns are an agent's newest turns, the oldest of them first.
func (r *Room) Turns(name wire.Name, limit int) ([]teams.Turn, error) {
	if _, err := r.scope.Member(string(name)); err != nil {
		return nil, err
	}
	return r.scope.Team.History(name, limit)
}

// redraw is how often a screen that changes all the time is shown.
const redraw = 100 * time.Millisecond

// Screen calls show with an agent's screen, with colours, at once and when it has changed, until ctx ends,
// which is no error, or the runner.
func (r *Room) Screen(ctx context.Context, name wire.Name, show func(control.Screen)) error {
	viewer, err := r.scope.Team.DialRunner(ctx, name)
	if err != nil {
		return r.scope.RunnerError(name, err)
	}
	client, err := r.scope.Team.DialRunner(ctx, name)
	if err != nil {
		viewer.Close()
		return r.scope.RunnerError(name, err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(ctx)
	changed, ended := make(signal, 1), make(chan struct{})
	defer func() { cancel(); <-ended }()
	go func() {
		defer close(ended)
		viewer.Attach(ctx, control.AttachRequest{ReadOnly: true}, control.Terminal{Out: changed})
	}()
	for {
		screen, err := client.Screen(ctx, control.ScreenRequest{ANSI: true})
		if ctx.Err() != nil {
			return nil
		} else if err != nil {
			return r.scope.RunnerError(name, err)
		}
		show(screen)
		time.Sleep(redraw)
		select {
		case <-changed:
		case <-ended:
			return r.scope.RunnerError(name, control.ErrNoRunner)
		case <-ctx.Done():
			return nil
		}
	}
}

// signal is a writer that tells that something was written.
type signal chan struct{}

func (s signal) Write(p []byte) (int, error) {
	select {
	case s <- struct{}{}:
	default:
	}
	return len(p), nil
}

// Lane is a member's states since a moment, in order and without gaps. A state that nothing is known of is
// unknown.
type Lane struct {
	Name   wire.Name
	Spans  []Span
	Member teams.Member // as it is now
}

// Span is a time in which a member's state was the same.
type Span struct {
	State    reducer.Word
	From, To time.Time
}

// maxEvents is how many events of a member a timeline looks at.
const maxEvents = 20_000

// Timeline is what has happened since a moment: a lane for each member on this machine, and the messages
// that members have sent each other, oldest first.
func (r *Room) Timeline(ctx context.Context, since time.Time) (lanes []Lane, sent []*mailbox.Item, err error) {
	s, _ := r.Snapshot()
	var errs []error
	for _, m := range s.Members {
		if m.Host != "" {
			continue
		}
		box := r.scope.Team.Box(m.Name)
		spans, err := spansOf(box, since)
		if last := spans[len(spans)-1]; m.State == reducer.WordPerson {
			spans = []Span{{m.State, since, last.To}}
		} else if last.State != m.State { // since now, by its lock or the clock
			spans = append(spans, Span{m.State, last.To, last.To})
		}
		lanes = append(lanes, Lane{m.Name, spans, m})
		_, _, err2 := box.Walk(ctx, mailbox.Range{Sent: true, Newest: true, Since: since}, func(it *mailbox.Item) bool {
			if !it.SentAt.Before(since) {
				sent = append(sent, it)
			}
			return it.ID.Time().After(since.Add(-time.Hour)) // an ack's id is as old as what it is about
		})
		errs = append(errs, err, err2)
	}
	slices.SortFunc(sent, func(a, b *mailbox.Item) int { return a.SentAt.Compare(b.SentAt) })
	return lanes, sent, errors.Join(errs...)
}

// spansOf are a member's states as its events tell, at least one.
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

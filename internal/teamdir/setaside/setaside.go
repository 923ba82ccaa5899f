// Package setaside lists what could not be delivered, given or read, with the reason, and has it tried again.
package setaside

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/wire"
)

// Item is something that was set aside with a reason, and can be tried again. Its JSON is what atm doctor --fix says of it.
type Item struct {
	Kind   Kind      `json:"kind"`
	Name   string    `json:"name"`  // of the file, or the message's id
	Agent  wire.Name `json:"agent"` // whose inbox it is for
	Reason string    `json:"reason"`
}

// Kind says what was set aside.
type Kind string

// The kinds.
const (
	File    Kind = "file"    // in an inbox, and is no message
	Untyped Kind = "untyped" // mail that a runner has typed, and that was not accepted
)

// Short is what names it in a line: bob/notes.json, 9f3a1c.
func (s *Item) Short() string {
	if s.Kind == File {
		return string(s.Agent) + "/" + s.Name
	}
	return wire.ID(s.Name).Short(6)
}

// IsCalled reports whether a word names it: its name, with or without the agent's, or a part of an id as people type it.
func (s *Item) IsCalled(word string) bool {
	f, err := wire.ParseFragment(word)
	id, _, _ := strings.Cut(s.Name, ".")
	return word == s.Name || word == s.Short() || err == nil && wire.IsID(id) && f.Matches(wire.ID(id))
}

// List lists what was set aside in the team. With an *UnreadableError it lists the others.
func List(ctx context.Context, t *teamdir.Team) (all []Item, errs error) {
	errs = t.Each(func(b *maildir.Box) error {
		some, err := Of(t, b)
		all = append(all, some...)
		return err
	})
	return all, errs
}

// Of lists what was set aside in a mailbox: files, and the unread mail that its runner has typed and its program did not
// accept.
func Of(t *teamdir.Team, b *maildir.Box) (all []Item, err error) {
	files, err := drop.BadFiles(b)
	for _, f := range files {
		if f.Dir == "inbox/bad" {
			all = append(all, Item{File, f.Name, b.Agent(), f.Reason})
		}
	}
	running, err2 := t.Running(b.Agent())
	unread, err3 := b.UnreadIDs()
	if err = errors.Join(err, err2, err3); !running || len(unread) == 0 {
		return all, err
	}
	first := slices.Min(unread)
	past, historyErr := t.HistorySince(b.Agent(), search.BeforeAnswers(first, first.Time(), b))
	for _, id := range unread {
		if d := past.Delivery(id); d.Failed.Exists() {
			all = append(all, Item{Untyped, string(id), b.Agent(), d.FailedWhy})
		}
	}
	return all, errors.Join(err, historyErr)
}

// Retry has something that was set aside tried again, on behalf of a member ("": nobody's). id is the message that it has
// become, "": none yet. What its recipient got before does not come twice.
func Retry(ctx context.Context, t *teamdir.Team, s Item, by wire.Name) (id wire.ID, err error) {
	if s.Kind == File {
		return drop.Retry(ctx, t.Box(s.Agent), s.Name)
	}
	it, err := t.Box(s.Agent).Get(wire.ID(s.Name))
	if err != nil {
		return "", err
	}
	if it.State != wire.Unread { // it was read just now
		return "", &drop.DeliveredError{ID: it.ID, State: it.State}
	}
	again := wire.Event{Source: wire.SourceCLI, Kind: wire.EventUnread}.With(wire.FieldID, s.Name)
	if by != "" {
		again = again.With(wire.FieldBy, t.Box(by).Address().String())
	}
	return wire.ID(s.Name), t.Box(s.Agent).Log().Append(ctx, again)
}

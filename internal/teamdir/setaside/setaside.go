// Package setaside lists what could not be delivered, given or read, with the reason, and has it tried again.
package setaside

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/wire"
)

// Item is something that was set aside with a reason, and can be tried again. Its JSON is what atm retry lists.
type Item struct {
	Kind   Kind      `json:"kind"`
	Name   string    `json:"name"`  // of the file, or the message's id
	Agent  wire.Name `json:"agent"` // whose inbox it is for; "": a bridge's
	Reason string    `json:"reason"`
}

// Kind says what was set aside.
type Kind string

// The kinds.
const (
	File     Kind = "file"     // in an inbox, and is no message
	Untyped  Kind = "untyped"  // mail that a runner has typed, and that was not accepted
	Envelope Kind = "envelope" // from another machine, not accepted
)

// Short is what names it in a line: bob/notes.json, 9f3a1c, the beginning of an envelope's name.
func (s *Item) Short() string {
	switch s.Kind {
	case File:
		return string(s.Agent) + "/" + s.Name
	case Envelope:
		return s.Name[:min(len(s.Name), 12)]
	}
	return wire.ID(s.Name).Short(6)
}

// IsCalled reports whether a word names it: its name, with or without the agent's, or a part of an id as people type it.
func (s *Item) IsCalled(word string) bool {
	f, err := wire.ParseFragment(word)
	id, _, _ := strings.Cut(s.Name, ".")
	switch {
	case word == s.Name, word == s.Short():
		return true
	case s.Kind == Envelope:
		return len(word) >= 6 && strings.HasPrefix(s.Name, word)
	}
	return err == nil && wire.IsID(id) && f.Matches(wire.ID(id))
}

// List lists what was set aside in the team. With an *UnreadableError it lists the others.
func List(ctx context.Context, t *teamdir.Team) (all []Item, errs error) {
	errs = t.Each(func(b *maildir.Box) error {
		files, err := drop.BadFiles(b)
		for _, f := range files {
			if f.Dir == "inbox/bad" {
				all = append(all, Item{Kind: File, Name: f.Name, Agent: b.Agent(), Reason: f.Reason})
			}
		}
		untyped, err2 := ListUntyped(t, b)
		all = append(all, untyped...)
		return errors.Join(err, err2)
	})
	envelopes, err := presence.RejectReasons(t)
	for name, reason := range envelopes {
		all = append(all, Item{Kind: Envelope, Name: name, Reason: reason})
	}
	slices.SortStableFunc(all, func(a, b Item) int { return strings.Compare(a.Short(), b.Short()) })
	return all, errors.Join(errs, err)
}

// ListUntyped lists the unread mail that a member's runner has typed, and that its program did not accept.
func ListUntyped(t *teamdir.Team, b *maildir.Box) (all []Item, err error) {
	if running, err := t.Running(b.Agent()); !running || err != nil {
		return nil, err
	}
	unread, err := b.UnreadIDs()
	if len(unread) == 0 || err != nil {
		return nil, err
	}
	first := slices.Min(unread)
	past, err := t.HistorySince(b.Agent(), search.BeforeAnswers(first, first.Time(), b))
	for _, id := range unread {
		if d := past.Delivery(id); d.Failed.Exists() {
			all = append(all, Item{Kind: Untyped, Name: string(id), Agent: b.Agent(), Reason: d.FailedWhy})
		}
	}
	return all, err
}

// Retry has something that was set aside tried again, on behalf of a member ("": nobody's). id is the message that it has
// become, "": none yet. What its recipient got before does not come twice.
func Retry(ctx context.Context, t *teamdir.Team, s Item, by wire.Name) (id wire.ID, err error) {
	switch s.Kind {
	case File:
		return drop.Retry(ctx, t.Box(s.Agent), s.Name)
	case Envelope:
		return "", t.Dir().Remove(path.Join(teamdir.BadEnvelopes, s.Name+presence.ReasonSuffix))
	}
	it, err := t.Box(s.Agent).Get(wire.ID(s.Name))
	if err != nil {
		return "", err
	}
	if it.State != maildir.Unread { // it was read just now
		return "", &drop.DeliveredError{ID: it.ID, State: it.State}
	}
	again := wire.Event{Source: wire.SourceCLI, Kind: wire.EventUnread}.With(wire.FieldID, s.Name)
	if by != "" {
		again = again.With(wire.FieldBy, t.Box(by).Address().String())
	}
	return wire.ID(s.Name), t.Box(s.Agent).Log().Append(ctx, again)
}

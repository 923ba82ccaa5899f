package post

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/push"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/wire"
)

// SetAside is something that was set aside with a reason, and can be tried again. Its JSON is what atm retry lists.
type SetAside struct {
	Kind   SetAsideKind `json:"kind"`
	Name   string       `json:"name"`  // of the file, or the message's id
	Agent  wire.Name    `json:"agent"` // whose inbox it is for, or who sent what was not delivered; "": a bridge's
	Reason string       `json:"reason"`

	later Later
}

// SetAsideKind says what was set aside.
type SetAsideKind string

// The kinds.
const (
	AsideFile      SetAsideKind = "file"        // in an inbox, and is no message
	AsideLater     SetAsideKind = "undelivered" // was to be sent later
	AsideUntyped   SetAsideKind = "untyped"     // mail that a runner has typed, and that was not accepted
	AsideEnvelopes SetAsideKind = "envelope"    // from another machine, not accepted
)

// Short is what names it in a line: bob/notes.json, 9f3a1c, the beginning of an envelope's name.
func (s *SetAside) Short() string {
	switch s.Kind {
	case AsideFile:
		return string(s.Agent) + "/" + s.Name
	case AsideEnvelopes:
		return s.Name[:min(len(s.Name), 12)]
	}
	return wire.ID(s.Name).Short(6)
}

// IsCalled reports whether a word names it: its name, with or without the agent's, or a part of an id as people type it.
func (s *SetAside) IsCalled(word string) bool {
	f, err := wire.ParseFragment(word)
	id, _, _ := strings.Cut(s.Name, ".")
	switch {
	case word == s.Name, word == s.Short():
		return true
	case s.Kind == AsideEnvelopes:
		return len(word) >= 6 && strings.HasPrefix(s.Name, word)
	}
	return err == nil && wire.IsID(id) && f.Matches(wire.ID(id))
}

// ListSetAside lists what was set aside in the team. With an *UnreadableError it lists the others.
func ListSetAside(ctx context.Context, t *teamdir.Team) (all []SetAside, errs error) {
	later, errs := ListLater(t, Undelivered)
	for _, l := range later {
		all = append(all, SetAside{AsideLater, string(l.ID), l.From, LaterReason(t, l), l})
	}
	errs = errors.Join(errs, t.Each(func(b *maildir.Box) error {
		files, err := drop.BadFiles(b)
		for _, f := range files {
			if f.Dir == "inbox/bad" {
				all = append(all, SetAside{Kind: AsideFile, Name: f.Name, Agent: b.Agent(), Reason: f.Reason})
			}
		}
		untyped, err2 := Untyped(t, b)
		all = append(all, untyped...)
		return errors.Join(err, err2)
	}))
	envelopes, err := presence.RejectReasons(t)
	for name, reason := range envelopes {
		all = append(all, SetAside{Kind: AsideEnvelopes, Name: name, Reason: reason})
	}
	slices.SortStableFunc(all, func(a, b SetAside) int { return strings.Compare(a.Short(), b.Short()) })
	return all, errors.Join(errs, err)
}

// Untyped lists the unread mail that a member's runner has typed, and that its program did not accept. A shell's is not
// among it: some lines of it may have run.
func Untyped(t *teamdir.Team, b *maildir.Box) (all []SetAside, err error) {
	if running, err := t.Running(b.Agent()); !running || err != nil {
		return nil, err
	}
	unread, err := b.UnreadIDs()
	if len(unread) == 0 || err != nil {
		return nil, err
	}
	run, err := runinfo.Read(t.Dir(), b.Agent())
	if err != nil || run.Inject == "run" {
		return nil, err
	}
	first := slices.Min(unread)
	past, err := t.HistorySince(b.Agent(), search.BeforeAnswers(first, first.Time(), b))
	for _, id := range unread {
		if d := past.Delivery(id); d.Failed.Exists() {
			all = append(all, SetAside{Kind: AsideUntyped, Name: string(id), Agent: b.Agent(), Reason: d.FailedWhy})
		}
	}
	return all, err
}

// Retry has something that was set aside tried again, on behalf of a member ("": nobody's). id is the message that it has
// become, "": none yet. What its recipient got before does not come twice.
func Retry(ctx context.Context, t *teamdir.Team, s SetAside, by wire.Name) (id wire.ID, err error) {
	switch s.Kind {
	case AsideFile:
		return drop.Retry(ctx, t.Box(s.Agent), s.Name)
	case AsideLater:
		return s.later.ID, RetryLater(ctx, t, s.later)
	case AsideEnvelopes:
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

// RetryLater has a message that could not be delivered delivered again: those that have it do not get it twice. If that is
// not possible still, the error is a *maildir.BadError with the reason.
func RetryLater(ctx context.Context, t *teamdir.Team, l Later) error {
	err := sendAgain(ctx, t, l)
	if err == nil {
		l.State = ToBeSent
		var posts []*maildir.Post
		_, posts, err = deliverSome(ctx, t, []Later{l}, t.LockWait())
		push.All(ctx, t.Root(), posts)
	}
	if now, _ := FindLater(t, l.ID); err == nil && now != nil && now.State == Undelivered {
		err = &maildir.BadError{Name: l.ID.Short(6), Reason: LaterReason(t, *now)}
	}
	return err
}

// sendAgain moves a message that could not be delivered to those that are to be sent, unless another process has done so.
func sendAgain(ctx context.Context, t *teamdir.Team, l Later) error {
	if err := t.Store.MayAct(ctx); err != nil {
		return err
	}
	lock, err := lockLater(ctx, t, t.LockWait())
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := moveLater(t, l, ToBeSent); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

package room

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// observer reads the team's state again, member by member, when something changes.
type observer struct {
	*Room
	rows               map[wire.Name]teams.Member
	problems           map[wire.Name]string
	remote             []teams.Member // of other hosts, as last received
	drafts             []policy.Question
	unread, owed, read []wire.ID
}

// readMember reads a member's state. An error does not hide the rest.
func (o *observer) readMember(ctx context.Context, name wire.Name) {
	m, err := o.Scope.Team.Status(ctx, name)
	if m.Running {
		m.PresenceAt = nil // it is the current time, so it would make every snapshot a new one
	}
	o.rows[name] = m
	delete(o.problems, name)
	if err := cmp.Or(err, m.EventsErr); err != nil {
		o.problems[name] = err.Error()
	}
}

// readMail reads the ids of my unread and owed messages, and of those that I have read if withRead is set.
func (o *observer) readMail(withRead bool) {
	me := o.Scope.Me
	if me == nil {
		return
	}
	o.unread, _ = me.IDs(mailbox.Range{Unread: true, Newest: true}) // the member's row reports an error
	o.owed, _ = me.IDs(mailbox.Range{Owed: true, Newest: true})
	if withRead {
		o.read, _ = me.IDs(mailbox.Range{Done: true, Archive: true, Newest: true, Limit: maxRead})
	}
}

func (o *observer) readDrafts(ctx context.Context) {
	o.drafts, _ = o.Scope.Team.Drafts(ctx) // atm pending reports an error
}

// awaitChanges waits for changes, or until a time, and reads the members that they are about.
func (o *observer) awaitChanges(ctx context.Context, w *watcher.Watcher, until time.Time) error {
	changed := map[wire.Name]bool{} // true: by an event
	hasDraft := false
	for {
		limited, cancel := context.WithDeadline(ctx, until)
		e, err := w.Next(limited)
		cancel()
		if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			break
		} else if err != nil {
			return err
		}
		if len(changed) == 0 {
			until = time.Now().Add(gather)
		}
		changed[e.Agent] = changed[e.Agent] || e.Message == nil
		hasDraft = hasDraft || e.Message != nil && e.Message.Type == wire.TypeHumanInput ||
			e.Event != nil && (e.Event.Kind == "draft_ready" || strings.HasPrefix(e.Event.Kind, "session_"))
	}
	for name, byEvent := range changed {
		o.readMember(ctx, name)
		if o.Scope.Me != nil && name == o.Scope.Me.Agent() {
			o.readMail(byEvent)
		}
	}
	if hasDraft {
		o.readDrafts(ctx)
	}
	return nil
}

func (o *observer) snapshot() Snapshot {
	s, _ := o.Snapshot()
	next := Snapshot{Team: s.Team, Me: s.Me, Unread: o.unread, Owed: o.owed, Read: o.read}
	add := func(questions []policy.Question) {
		for _, q := range questions {
			mayAnswer := s.Me != "" && q.ID != "" && o.Scope.MayAnswer(q) == nil
			next.Waiting = append(next.Waiting, Question{q, mayAnswer})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.rows)) {
		next.Members = append(next.Members, o.rows[name])
	}
	next.Members = append(next.Members, o.remote...)
	for _, m := range next.Members {
		add(m.Questions)
	}
	add(o.drafts)
	slices.SortStableFunc(next.Waiting, func(a, b Question) int {
		if a.MayAnswer == b.MayAnswer {
			return a.Since.Compare(b.Since)
		} else if a.MayAnswer {
			return -1
		}
		return 1
	})
	next.Problem = strings.Join(slices.Sorted(maps.Values(o.problems)), "; ")
	if next.Problem != "" {
		next.Problem += ": atm doctor"
	}
	return next
}

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

// look is what was seen of each member when something last happened to it.
type look struct {
	*Room
	rows               map[wire.Name]teams.Row
	problems           map[wire.Name]string
	remote             []teams.Row // members of other hosts, as these told last
	drafts             []policy.Question
	unread, owed, read []wire.ID
}

// one looks at a member. What cannot be read hides nothing else.
func (l *look) one(ctx context.Context, name wire.Name) {
	m, err := l.Scope.Team.Status(ctx, name)
	asked, err2 := l.Scope.Team.Questions(name)
	if m.Running {
		m.PresenceAt = nil // it is the moment of the look
	}
	l.rows[name] = teams.Row{Member: m, Questions: asked}
	delete(l.problems, name)
	if err := cmp.Or(err, teams.Unreadable(l.Scope.Team.Box(name), err2)); err != nil {
		l.problems[name] = err.Error()
	}
}

// atMail looks at what I have not settled, and at what I have read as well.
func (l *look) atMail(andRead bool) {
	me := l.Scope.Me
	if me == nil {
		return
	}
	l.unread, _ = me.IDs(mailbox.Range{Unread: true, Newest: true}) // the row says what cannot be read
	l.owed, _ = me.IDs(mailbox.Range{Owed: true, Newest: true})
	if andRead {
		l.read, _ = me.IDs(mailbox.Range{Done: true, Archive: true, Newest: true, Limit: keepRead})
	}
}

func (l *look) atDrafts(ctx context.Context) {
	l.drafts, _ = l.Scope.Team.Drafts(ctx) // atm pending says what cannot be read
}

// await waits until something happens, or until a moment, and looks at whom it happened to.
func (l *look) await(ctx context.Context, w *watcher.Watcher, until time.Time) error {
	touched := map[wire.Name]bool{} // true: by an event
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
		if len(touched) == 0 {
			until = time.Now().Add(settle)
		}
		touched[e.Agent] = touched[e.Agent] || e.Message == nil
		hasDraft = hasDraft || e.Message != nil && e.Message.Type == wire.TypeHumanInput ||
			e.Event != nil && (e.Event.Kind == "draft_ready" || strings.HasPrefix(e.Event.Kind, "session_"))
	}
	for name, byEvent := range touched {
		l.one(ctx, name)
		if l.Scope.Me != nil && name == l.Scope.Me.Agent() {
			l.atMail(byEvent)
		}
	}
	if hasDraft {
		l.atDrafts(ctx)
	}
	return nil
}

func (l *look) snapshot() Snapshot {
	s, _ := l.Snapshot()
	next := Snapshot{Team: s.Team, Me: s.Me, Unread: l.unread, Owed: l.owed, Read: l.read}
	add := func(row teams.Row) {
		if row.Name != "" {
			next.Members = append(next.Members, row.Member)
		}
		for _, q := range row.Questions {
			isMine := s.Me != "" && q.ID != "" && l.Scope.MayAnswer(q) == nil
			next.Waiting = append(next.Waiting, Question{q, isMine})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.rows)) {
		add(l.rows[name])
	}
	for _, row := range append(l.remote, teams.Row{Questions: l.drafts}) {
		add(row)
	}
	slices.SortStableFunc(next.Waiting, func(a, b Question) int {
		switch {
		case a.Mine && !b.Mine:
			return -1
		case b.Mine && !a.Mine:
			return 1
		}
		return a.Since.Compare(b.Since)
	})
	if next.Problem = strings.Join(slices.Sorted(maps.Values(l.problems)), "; "); next.Problem != "" {
		next.Problem += ": atm doctor"
	}
	return next
}

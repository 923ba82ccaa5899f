package post

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// Need is a message that another one needs to be done before it is shown.
type Need struct {
	*wire.Message
	Outcome string       // of all its recipients if it is done, else what one of them says; "": nothing yet
	By      wire.Address // whose outcome that is
	State   string       // Outcome, else in a word where it is: acked, taken, read, unread
}

// Needs returns how far the messages are that a message needs. maildir.ErrNotFound: one of them is not there.
func Needs(t *teamdir.Team, m *wire.Message) (needs []Need, err error) {
	for _, id := range m.Needs {
		it, _, err := Find(t, nil, string(id))
		if err != nil {
			return needs, err
		}
		needs = append(needs, NeedFor(t, it.Message))
	}
	return needs, nil
}

// NeedFor returns how far a message is.
func NeedFor(t *teamdir.Team, m *wire.Message) (need Need) {
	need = Need{Message: m}
	answers, open := AnswersTo(context.Background(), t.Root(), m), false
	for _, a := range m.To {
		p := answers.At(m, a)
		outcome, by := p.Outcome()
		if outcome != "done" && outcome != "" {
			return Need{m, outcome, by, outcome}
		}
		if outcome == "" {
			open, need.State = true, cmp.Or(need.State, p.Word())
		}
	}
	if !open && len(m.To) > 0 {
		need.Outcome, need.State = "done", "done"
	}
	return need
}

// IsDue reports whether readers are shown a message of a member of the team by now.
func IsDue(t *teamdir.Team, m *wire.Message) bool { return m.IsDue(time.Now(), t.Store.IsDone) }

// LaterMail calls f with each mailbox, retired ones too, and outbox of the team and each message in it that is not due.
func LaterMail(t *teamdir.Team, f func(*maildir.Box, *wire.Item)) error {
	walk := func(box *maildir.Box) error {
		_, err := box.Walk(maildir.Range{Later: true}, func(it *wire.Item) bool { f(box, it); return true })
		return err
	}
	errs := t.Each(walk)
	retired, err := keep.Retired(t.Store, "")
	for _, box := range retired {
		err = errors.Join(err, walk(box))
	}
	outboxes, outErr := t.Store.Outboxes()
	err = errors.Join(err, outErr)
	for _, box := range outboxes {
		_, walkErr := box.Walk(maildir.Range{Unread: true, Owed: true}, func(it *wire.Item) bool {
			if !IsDue(t, it.Message) {
				f(box, it)
			}
			return true
		})
		err = errors.Join(err, walkErr)
	}
	return errors.Join(errs, err)
}

// Stuck is a message that may never be due.
type Stuck struct {
	ID  wire.ID  `json:"id"`
	To  []string `json:"to"`
	Why string   `json:"why"`

	Message *wire.Message `json:"-"`
}

// StuckMail lists the messages that may never be due, each once.
func StuckMail(t *teamdir.Team) (stuck []Stuck, err error) {
	err = LaterMail(t, func(_ *maildir.Box, it *wire.Item) {
		isKnown := slices.ContainsFunc(stuck, func(s Stuck) bool { return s.ID == it.ID })
		why := WhyNever(t, it.Message)
		if why == "" || isKnown {
			return
		}
		one := Stuck{ID: it.ID, Why: why, Message: it.Message}
		for _, a := range it.To {
			one.To = append(one.To, a.String())
		}
		stuck = append(stuck, one)
	})
	return stuck, err
}

// WhenDue says when a message is shown that is not due: "today 14:00", "after 9f3a1c (taken), 8b2c1d (blocked)".
func WhenDue(t *teamdir.Team, m *wire.Message) (when string) {
	if now := time.Now(); m.NotBefore.After(now) {
		when = letter.When(now, m.NotBefore)
	}
	needs, _ := Needs(t, m)
	after := ""
	for _, n := range needs {
		if after != "" {
			after += ", "
		}
		after += n.ID.Short(6) + " (" + n.State + ")"
	}
	if after != "" && when != "" {
		return when + ", after " + after
	}
	return cmp.Or(when, "after "+after)
}

// WhyNever says why a message may never be shown, "" if it may: "9f3a1c, which bob declined", "bob, who is not there any more".
func WhyNever(t *teamdir.Team, m *wire.Message) string {
	isThere := func(a wire.Address) bool {
		_, err := t.Root().Mailbox(a)
		return a.Host != "" || !errors.Is(err, maildir.ErrNoMailbox)
	}
	if len(m.To) > 0 && !slices.ContainsFunc(m.To, isThere) {
		return who(m, m.To[0]) + ", who is not there any more"
	}
	needs, err := Needs(t, m)
	for _, n := range needs {
		by := who(m, n.By)
		switch n.Outcome {
		case "", "done":
		case OutcomeWithdrawn:
			return n.ID.Short(6) + ", which was withdrawn"
		case OutcomeRetired:
			return n.ID.Short(6) + ", and " + by + " is not there any more"
		case "blocked":
			return n.ID.Short(6) + ", which " + by + " acked as blocked"
		default:
			return n.ID.Short(6) + ", which " + by + " " + n.Outcome
		}
	}
	if errors.Is(err, maildir.ErrNotFound) {
		return err.Error()
	}
	return ""
}

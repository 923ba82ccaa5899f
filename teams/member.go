package teams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// Member is a member's row: what is known of them, each thing on evidence.
// What there is no evidence for is unknown, which is neither idle nor off.
type Member struct {
	Name       wire.Name  `json:"name"`
	Kind       string     `json:"kind"`
	State      string     `json:"state"`
	Presence   string     `json:"presence"`
	PresenceAt *time.Time `json:"presence_at,omitempty"` // the newest event
	ReadAt     *time.Time `json:"read_at,omitempty"`     // the newest message_read
	Unread     int        `json:"unread"`
	Owed       int        `json:"owed"`
	Bad        int        `json:"bad,omitempty"`
	Running    bool       `json:"-"`
}

// Stats counts a team's members.
type Stats struct {
	Total   int `json:"total"`
	Running int `json:"running"`
	Idle    int `json:"idle"`
	Busy    int `json:"busy"`
	Stopped int `json:"stopped"`
}

// onlineFor is how long an event is evidence that its agent is online.
const onlineFor = 5 * time.Minute

// Glance is a member's row without the counts: what one line about somebody
// needs. It reads the runner's lock and the end of the event log.
func (t *Team) Glance(name wire.Name) (Member, error) {
	m := Member{Name: name, Kind: "agent", State: "unknown", Presence: "unknown"}
	running, err := t.Running(name)
	if err != nil {
		return m, err
	}
	m.Running = running
	events, err := t.Box(name).TailUntil(func(events []wire.Event) bool {
		return len(events) >= 64 || slices.ContainsFunc(events, func(e wire.Event) bool { return e.Kind == wire.EventRead })
	})
	if err != nil {
		return m, err
	}
	for i := len(events) - 1; i >= 0; i-- {
		e := &events[i]
		// What others did to the mailbox is no sign of its owner's life.
		if e.Kind == wire.EventWithdrawn {
			continue
		}
		at := e.At
		if m.PresenceAt == nil {
			m.PresenceAt = &at
		}
		if e.Kind == wire.EventRead {
			m.ReadAt = &at
			break
		}
	}
	if running || m.PresenceAt != nil && time.Since(*m.PresenceAt) < onlineFor {
		m.Presence = "online"
	}
	return m, nil
}

// Row is a member's row with what waits in the mailbox; drops are taken in.
func (t *Team) Row(ctx context.Context, name wire.Name) (Member, error) {
	m, err := t.Glance(name)
	if err != nil {
		return m, err
	}
	c, err := t.Box(name).Count(ctx)
	m.Unread, m.Owed, m.Bad = c.Unread, c.Owed, c.Bad
	return m, err
}

// Rows are the rows of all members and what they add up to.
func (t *Team) Rows(ctx context.Context) ([]Member, Stats, error) {
	names, err := t.Agents()
	if err != nil {
		return nil, Stats{}, err
	}
	var rows []Member
	var s Stats
	for _, n := range names {
		m, err := t.Row(ctx, n)
		if errors.Is(err, mailbox.ErrNoAgent) {
			continue // retired meanwhile
		}
		if err != nil {
			return nil, s, err
		}
		rows = append(rows, m)
		s.Total++
		if m.Running {
			s.Running++
		} else {
			s.Stopped++
		}
	}
	return rows, s, nil
}

// Word says in a few words when a message is likely to be seen, on evidence.
func (m Member) Word(now time.Time) string {
	switch {
	case m.Running:
		return "running"
	case m.ReadAt != nil:
		return "last read " + mailbox.Age(now, *m.ReadAt)
	case m.PresenceAt != nil:
		return "last seen " + mailbox.Age(now, *m.PresenceAt)
	}
	return "has not read yet"
}

// Stage is one step of a message's way, with the evidence for it.
type Stage struct {
	Stage    string     `json:"stage"`
	At       *time.Time `json:"at,omitempty"`
	Evidence *string    `json:"evidence"` // null: no evidence, which is not "no"
	Text     string     `json:"text,omitempty"`
}

// Traced is a message's way to one recipient.
type Traced struct {
	To     string        `json:"to"`
	State  mailbox.State `json:"state,omitempty"`
	Stages []Stage       `json:"stages"`
	Gate   string        `json:"gate,omitempty"` // what the next stage waits for
}

// Trace says how far a message got at each recipient.
func (r *Root) Trace(ctx context.Context, m *wire.Message) []Traced {
	var out []Traced
	sender, _ := r.Mailbox(m.From)
	for _, a := range m.To {
		out = append(out, r.traceTo(ctx, m, a, sender))
	}
	return out
}

func (r *Root) traceTo(ctx context.Context, m *wire.Message, a wire.Address, sender *mailbox.Box) Traced {
	t := Traced{To: a.String()}
	found := map[string]*Stage{}
	for _, s := range []string{"stored", "announced", "read", "turn_started", "turn_done", "acked", "replied"} {
		t.Stages = append(t.Stages, Stage{Stage: s})
	}
	for i := range t.Stages {
		found[t.Stages[i].Stage] = &t.Stages[i]
	}
	set := func(stage string, at time.Time, format string, args ...any) {
		s := found[stage]
		text := fmt.Sprintf(format, args...)
		s.Evidence = &text
		if !at.IsZero() {
			at = at.UTC()
			s.At = &at
		}
	}
	b, err := r.Mailbox(a)
	if err != nil {
		t.Gate = fmt.Sprintf("no mailbox of %s here; a retired one keeps its mail: atm team restore %s", a, a.Agent)
		return t
	}
	it, err := b.Get(m.ID)
	if err == nil {
		t.State = it.State
		set("stored", m.SentAt, "%s", it.Where)
	}
	events, _ := b.TailUntil(func(events []wire.Event) bool {
		return len(events) > 0 && events[0].At.Before(m.SentAt.Add(-24*time.Hour))
	})
	for i := range events {
		e := &events[i]
		if e.MessageID() != m.ID {
			continue
		}
		where := fmt.Sprintf("event %d of %s", e.Seq, a.Agent)
		switch e.Kind {
		case wire.EventAnnounced, wire.EventInjected:
			set("announced", e.At, "%s", where)
		case wire.EventRead:
			set("read", e.At, "%s", where)
		case wire.EventAcked:
			set("acked", e.At, "%s", where)
		}
	}
	if found["read"].Evidence == nil && (t.State == mailbox.Owed || t.State == mailbox.Done) {
		set("read", time.Time{}, "it lies in %s", it.Where)
	}
	if sender != nil {
		if ack, err := sender.Get(AckID(m.ID, a)); err == nil {
			set("acked", ack.SentAt, "ack %s in the mailbox of %s", ack.ID.Short(6), m.From.Agent)
			found["acked"].Text = ack.Body
		}
		if reply := Replies(ctx, sender, m.ID, a); len(reply) > 0 {
			set("replied", reply[0].SentAt, "message %s in the mailbox of %s", reply[0].ID.Short(6), m.From.Agent)
			found["replied"].Text = reply[0].Title()
			if m.RequiresAck && found["acked"].Evidence == nil {
				set("acked", reply[0].SentAt, "the reply")
			}
		}
	}
	switch {
	case t.State == mailbox.Unread:
		row, _ := b.Store().Running(a.Agent)
		if row {
			t.Gate = fmt.Sprintf("unread; %s runs and has not taken it", a.Agent)
		} else {
			t.Gate = fmt.Sprintf("unread; no runner brings mail to %s, who reads it with atm read", a.Agent)
		}
	case t.State == mailbox.Owed && found["acked"].Evidence == nil:
		t.Gate = fmt.Sprintf("%s has not acknowledged it: atm wait --acked %s", a.Agent, m.ID.Short(6))
	}
	return t
}

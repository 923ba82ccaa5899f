package teams

import (
	"context"
	"fmt"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

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
	Gate   string        `json:"gate,omitempty"` // what the next stage waits for, and the command to do about it
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

var stages = []string{"stored", "announced", "read", "turn_started", "turn_done", "acked", "replied"}

func (r *Root) traceTo(ctx context.Context, m *wire.Message, a wire.Address, sender *mailbox.Box) Traced {
	t := Traced{To: a.String()}
	found := map[string]*Stage{}
	for _, s := range stages {
		t.Stages = append(t.Stages, Stage{Stage: s})
	}
	for i := range t.Stages {
		found[t.Stages[i].Stage] = &t.Stages[i]
	}
	set := func(stage string, at time.Time, format string, args ...any) {
		s := found[stage]
		text := fmt.Sprintf(format, args...)
		s.Evidence = &text
		s.At = moment(at)
	}
	b, err := r.Mailbox(a)
	if err != nil {
		t.Gate = fmt.Sprintf("no mailbox of %s here; a retired one keeps its mail: atm team restore %s", a, a.Agent)
		return t
	}
	team, err := r.Team(a.Team)
	if err != nil {
		t.Gate = err.Error()
		return t
	}
	it, err := b.Get(m.ID)
	if err == nil {
		t.State = it.State
		set("stored", m.SentAt, "%s", it.Where)
	}
	p, _, _ := team.Passage(b, m)
	for _, e := range []struct {
		stage string
		mark  Mark
	}{{"announced", p.Announced}, {"read", p.Read}, {"acked", p.Acked}, {"turn_started", p.Began}, {"turn_done", p.Ended}} {
		if e.mark.Is() {
			set(e.stage, e.mark.At, "event %d of %s", e.mark.Seq, a.Agent)
		}
	}
	if p.Status != "" && p.Status != reducer.Completed {
		found["turn_done"].Text = p.Status
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
		row, err := team.Glance(a.Agent)
		if err == nil {
			t.Gate = gate(row, p, time.Now())
		}
	case t.State == mailbox.Owed && found["acked"].Evidence == nil:
		t.Gate = fmt.Sprintf("%s has not acknowledged it: atm wait --acked %s", a.Agent, m.ID.Short(6))
	}
	return t
}

// gate says what keeps an unread message from its recipient, and what to do.
func gate(m Member, p *Passage, now time.Time) string {
	since := ""
	if m.Since != nil {
		since = " since " + mailbox.Span(now.Sub(*m.Since))
	}
	switch {
	case m.State == reducer.WordPerson:
		return fmt.Sprintf("unread; %s is a person, who reads it when they look", m.Name)
	case p.Failed.Is():
		return fmt.Sprintf("unread; typing it in failed (%s) and is tried again when %s has done something: atm status %s", mailbox.Escape(p.Reason), m.Name, m.Name)
	case p.Announced.Is():
		return fmt.Sprintf("unread; it was handed to %s, and counts as read when its hooks are next called: atm status %s", m.Name, m.Name)
	case m.State == reducer.WordBlocked:
		return fmt.Sprintf("unread; %s waits for an answer itself (%s)%s: atm status %s", m.Name, m.about(), since, m.Name)
	case m.State == reducer.WordBusy && m.handed() && !m.Running:
		return fmt.Sprintf("unread; %s is busy%s, and gets it in the course of this turn: atm wait --idle %s", m.Name, since, m.Name)
	case m.State == reducer.WordBusy && m.Running:
		return fmt.Sprintf("unread; %s is busy%s: atm wait --idle %s", m.Name, since, m.Name)
	case m.State == reducer.WordOff:
		return fmt.Sprintf("unread; %s is off%s, and reads it when it runs again: atm status %s", m.Name, since, m.Name)
	case m.Running:
		return fmt.Sprintf("unread; %s runs and has not taken it: atm status %s", m.Name, m.Name)
	case m.handed():
		return fmt.Sprintf("unread; %s gets it when its next turn begins: atm wait --busy %s", m.Name, m.Name)
	}
	return fmt.Sprintf("unread; no runner brings mail to %s, who reads it with atm read", m.Name)
}

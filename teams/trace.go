package teams

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// Stage is one step of a message's delivery, with the evidence for it.
type Stage struct {
	Stage    string     `json:"stage"`
	At       *time.Time `json:"at,omitempty"`
	Evidence *string    `json:"evidence"` // null: no evidence, which is not "no"
	Text     string     `json:"text,omitempty"`
}

// DeliveryTrace is how far a message has got with one recipient.
type DeliveryTrace struct {
	To     string        `json:"to"`
	State  mailbox.State `json:"state,omitempty"`
	Stages []Stage       `json:"stages"`
	Due    string        `json:"due,omitempty"`  // of the answer that is expected, until it came
	Gate   string        `json:"gate,omitempty"` // what the next stage waits for, and the command to do about it
}

// stages are the steps of a delivery, in their order.
var stages = []string{"stored", "announced", "read", "turn_started", "turn_done", "acked", "replied"}

// Trace says how far a message has got with each recipient.
func (r *Root) Trace(ctx context.Context, m *wire.Message) []DeliveryTrace {
	var out []DeliveryTrace
	for _, a := range m.To {
		t := DeliveryTrace{To: a.String()}
		for _, name := range stages {
			t.Stages = append(t.Stages, Stage{Stage: name})
		}
		r.traceTo(ctx, &t, m, a)
		out = append(out, t)
	}
	return out
}

func (t *DeliveryTrace) stage(name string) *Stage {
	for i := range t.Stages {
		if t.Stages[i].Stage == name {
			return &t.Stages[i]
		}
	}
	return nil
}

func (t *DeliveryTrace) reached(name string) bool { return t.stage(name).Evidence != nil }

func (t *DeliveryTrace) set(name string, at time.Time, text, format string, args ...any) {
	evidence := fmt.Sprintf(format, args...)
	*t.stage(name) = Stage{Stage: name, At: moment(at), Evidence: &evidence, Text: text}
}

func (r *Root) traceTo(ctx context.Context, t *DeliveryTrace, m *wire.Message, a wire.Address) {
	box, err := r.Mailbox(a)
	if err != nil {
		t.Gate = fmt.Sprintf("no mailbox of %s here; a retired one keeps its mail: atm team restore %s", a, a.Agent)
		return
	}
	team, err := r.Team(a.Team)
	if err != nil {
		t.Gate = err.Error()
		return
	}
	d := &Delivery{}
	if turns, err := team.Turns(a.Agent, m.SentAt.Add(-24*time.Hour)); err == nil {
		d = turns.Delivery(m.ID)
	}
	t.addEvents(d, a.Agent)
	t.addAnswers(ctx, r, m, a)
	if !m.DueAt.IsZero() && !t.reached("replied") {
		t.Due = "answer due " + letter.Age(time.Now(), m.DueAt)
	}
	it, err := box.Get(m.ID)
	if err != nil {
		return
	}
	t.State = it.State
	t.set("stored", m.SentAt, "", "%s", it.Where)
	if !t.reached("read") && hasRead(it) {
		t.set("read", time.Time{}, "", "it lies in %s", it.Where)
	}
	if t.State == mailbox.Unread {
		t.Gate = team.gateOf(a.Agent, it, d)
	} else if t.State == mailbox.Owed && !t.reached("acked") {
		t.Gate = fmt.Sprintf("%s has not acknowledged it: atm wait --acked %s", a.Agent, m.ID.Short(6))
	}
}

// addEvents adds what the recipient's events are evidence of.
func (t *DeliveryTrace) addEvents(d *Delivery, agent wire.Name) {
	turn, how := d.Turn, ""
	if turn == nil {
		turn = &Turn{}
	}
	if turn.WasCutShort() {
		how = turn.Status
	}
	for _, s := range []struct {
		name  string
		event EventRef
		text  string
	}{{"announced", d.Announced, ""}, {"read", d.Read, ""}, {"acked", d.Acked, ""}, {"turn_started", turn.BeganBy, ""}, {"turn_done", turn.EndedBy, how}} {
		if s.event.Exists() {
			t.set(s.name, s.event.At, s.text, "event %d of %s", s.event.Seq, agent)
		}
	}
}

// addAnswers adds what the sender's mailbox is evidence of.
func (t *DeliveryTrace) addAnswers(ctx context.Context, r *Root, m *wire.Message, a wire.Address) {
	sender, err := r.Mailbox(m.From)
	if err != nil {
		return
	}
	if ack, err := sender.Get(AckID(m.ID, a)); err == nil {
		t.set("acked", ack.SentAt, ack.Body, "ack %s in the mailbox of %s", ack.ID.Short(6), m.From.Agent)
	}
	if replies := Replies(ctx, sender, m.ID, a); len(replies) > 0 {
		first := replies[0]
		t.set("replied", first.SentAt, first.Title(), "message %s in the mailbox of %s", first.ID.Short(6), m.From.Agent)
		if m.RequiresAck && !t.reached("acked") {
			t.set("acked", first.SentAt, "", "the reply")
		}
	}
}

// gateOf says what keeps an unread message from its recipient, and what to do.
func (t *Team) gateOf(name wire.Name, it *mailbox.Item, d *Delivery) string {
	now := time.Now()
	lease := (&letter.Renderer{Now: now, Team: t.Name}).Lease(LeaseFlags(it))
	if it.Lease != nil {
		return fmt.Sprintf("%s: atm wait --acked %s", lease, it.ID.Short(6))
	}
	m, err := t.Summary(name)
	if err != nil {
		return lease
	}
	why := t.HoldReason(it.Message, name)
	if why == "" {
		since := ""
		if m.Since != nil {
			since = " since " + letter.Span(now.Sub(*m.Since))
		}
		why = m.gateFor(it.Message, d, now, since, t.RunAgain(name))
	}
	return strings.TrimPrefix(lease+"; unread; "+why, "; ")
}

// gateFor is the sentence about what keeps a message that is unread; again is the
// command that runs the member once more.
func (m *Member) gateFor(msg *wire.Message, d *Delivery, now time.Time, since, again string) string {
	n := m.Name
	switch {
	case m.State == reducer.WordPerson:
		return fmt.Sprintf("%s is a person, who reads it when they look", n)
	case m.Inject == "off":
		return fmt.Sprintf("nothing is typed into %s (inject is off), who reads it with atm read", n)
	case msg.Expired(now):
		return fmt.Sprintf("it has expired, and nothing brings it to %s any more", n)
	case m.WaitingOn != nil && m.WaitingOn.Dialog == policy.DialogTrust:
		return fmt.Sprintf("%s asks whether a directory is trusted, which only a person at its terminal answers%s: atm attach %s", n, since, n)
	case m.State == reducer.WordBlocked && m.Running:
		return fmt.Sprintf("%s waits for an answer itself (%s)%s: atm pending, then atm approve %s, or atm attach %s", n, m.about(), since, n, n)
	case m.State == reducer.WordBlocked:
		return fmt.Sprintf("%s waits for an answer itself (%s)%s: atm status %s", n, m.about(), since, n)
	case m.hold() == holdDialog:
		return fmt.Sprintf("%s waits for an answer itself (a dialog): atm pending, then atm approve %s, or atm attach %s", n, n, n)
	case m.hold() == holdDraft, m.gate == "" && d.FailedWhy == string(control.GateDraft):
		return fmt.Sprintf("somebody has begun to write in the prompt of %s, and nothing is typed over that: atm attach %s sends or clears it", n, n)
	case m.hold() == holdTyping:
		return fmt.Sprintf("a person is typing into %s; it is typed in when they pause: atm wait --busy %s", n, n)
	case m.State == reducer.WordBusy || m.gate == control.GateBusy:
		return fmt.Sprintf("%s is busy%s, and gets it when it is idle: atm wait --idle %s", n, since, n)
	case d.isOnlyAnnounced && m.Running:
		return fmt.Sprintf("%s was told of it, and has not called atm read yet: atm screen %s", n, n)
	case m.State == reducer.WordOff:
		return fmt.Sprintf("%s is off%s, and gets it when it runs again: %s", n, since, again)
	case d.Failed.Exists():
		return fmt.Sprintf("typing it in failed %s (%s): atm screen %s", letter.Age(now, d.Failed.At), letter.Clip(letter.Escape(d.FailedWhy), 80), n)
	case d.Announced.Exists():
		return fmt.Sprintf("it was handed to %s, and counts as read when its hooks are next called: atm status %s", n, n)
	case m.Running:
		return fmt.Sprintf("%s is %s%s, and has not taken it yet: atm screen %s", n, m.State, since, n)
	case m.hasHooks():
		return fmt.Sprintf("%s gets it when its next turn begins: atm wait --busy %s", n, n)
	}
	return fmt.Sprintf("no runner brings mail to %s, who reads it with atm read", n)
}

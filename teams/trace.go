package teams

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
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

// Trace says how far a message has got with each recipient.
func (r *Root) Trace(ctx context.Context, m *wire.Message) []DeliveryTrace {
	var out []DeliveryTrace
	for _, a := range m.To {
		out = append(out, r.traceTo(ctx, m, a))
	}
	return out
}

// stage is the stage of a name.
func (t *DeliveryTrace) stage(name string) *Stage {
	for i := range t.Stages {
		if t.Stages[i].Stage == name {
			return &t.Stages[i]
		}
	}
	t.Stages = append(t.Stages, Stage{Stage: name})
	return &t.Stages[len(t.Stages)-1]
}

func (t *DeliveryTrace) reached(name string) bool { return t.stage(name).Evidence != nil }

func (t *DeliveryTrace) set(name string, at time.Time, text, format string, args ...any) {
	evidence := fmt.Sprintf(format, args...)
	*t.stage(name) = Stage{Stage: name, At: moment(at), Evidence: &evidence, Text: text}
}

func (t *DeliveryTrace) setEvent(name string, e EventRef, text string, agent wire.Name) {
	if e.Exists() {
		t.set(name, e.At, text, "event %d of %s", e.Seq, agent)
	}
}

func (r *Root) traceTo(ctx context.Context, m *wire.Message, a wire.Address) DeliveryTrace {
	t := DeliveryTrace{To: a.String()}
	for _, name := range []string{"stored", "announced", "read", "turn_started", "turn_done", "acked", "replied"} {
		t.stage(name)
	}
	box, err := r.Mailbox(a)
	if err != nil {
		t.Gate = fmt.Sprintf("no mailbox of %s here; a retired one keeps its mail: atm team restore %s", a, a.Agent)
		return t
	}
	team, err := r.Team(a.Team)
	if err != nil {
		t.Gate = err.Error()
		return t
	}
	it, err := box.Get(m.ID)
	if err == nil {
		t.State = it.State
		t.set("stored", m.SentAt, "", "%s", it.Where)
	}
	d := &Delivery{}
	if turns, err := team.Turns(a.Agent, m.SentAt.Add(-24*time.Hour)); err == nil {
		d = turns.Delivery(m.ID)
	}
	t.addEvents(d, a.Agent)
	if !t.reached("read") && it != nil && hasRead(it) {
		t.set("read", time.Time{}, "", "it lies in %s", it.Where)
	}
	t.addAnswers(ctx, r, m, a)
	t.Due = team.dueOf(ctx, box, m, time.Now())
	switch {
	case it == nil:
	case t.State == mailbox.Unread:
		t.Gate = team.gateOf(a.Agent, it, d)
	case t.State == mailbox.Owed && !t.reached("acked"):
		t.Gate = fmt.Sprintf("%s has not acknowledged it: atm wait --acked %s", a.Agent, m.ID.Short(6))
	}
	return t
}

// addEvents adds what the recipient's events are evidence of.
func (t *DeliveryTrace) addEvents(d *Delivery, agent wire.Name) {
	t.setEvent("announced", d.Announced, "", agent)
	t.setEvent("read", d.Read, "", agent)
	t.setEvent("acked", d.Acked, "", agent)
	if d.Turn == nil {
		return
	}
	t.setEvent("turn_started", d.Turn.BeganBy, "", agent)
	how := ""
	if d.Turn.WasCutShort() {
		how = d.Turn.Status
	}
	t.setEvent("turn_done", d.Turn.EndedBy, how, agent)
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
	if why == "" && m.Running {
		why = m.gateOfRunner(it.Message, d, now)
	} else if why == "" {
		why = m.gateOfOther(it.Message, d, now, t.RunAgain)
	}
	return strings.TrimPrefix(lease+"; unread; "+why, "; ")
}

// sinceText is how long the member has been so: " since 4m".
func (m *Member) sinceText(now time.Time) string {
	if m.Since == nil {
		return ""
	}
	return " since " + letter.Span(now.Sub(*m.Since))
}

// gateOfOther is for a member that no runner runs. again is the command that does.
func (m *Member) gateOfOther(msg *wire.Message, d *Delivery, now time.Time, again func(wire.Name) string) string {
	name, since := m.Name, m.sinceText(now)
	switch {
	case m.State == reducer.WordPerson:
		return fmt.Sprintf("%s is a person, who reads it when they look", name)
	case msg.Expired(now):
		return fmt.Sprintf("it has expired: nothing brings it to %s any more, who may still read it", name)
	case d.Announced.Exists() && d.isOnlyAnnounced:
		return fmt.Sprintf("%s was told of it, and is off%s without having called atm read: %s", name, since, again(name))
	case d.Announced.Exists():
		return fmt.Sprintf("it was handed to %s, and counts as read when its hooks are next called: atm status %s", name, name)
	case m.State == reducer.WordBlocked:
		return fmt.Sprintf("%s waits for an answer itself (%s)%s: atm status %s", name, m.about(), since, name)
	case m.State == reducer.WordBusy && m.hasHooks():
		return fmt.Sprintf("%s is busy%s, and gets it in the course of this turn: atm wait --idle %s", name, since, name)
	case m.State == reducer.WordOff:
		return fmt.Sprintf("%s is off%s, and gets it when it runs again: %s", name, since, again(name))
	case m.hasHooks():
		return fmt.Sprintf("%s gets it when its next turn begins: atm wait --busy %s", name, name)
	}
	return fmt.Sprintf("no runner brings mail to %s, who reads it with atm read", name)
}

// gateOfRunner is for a member under a runner.
func (m *Member) gateOfRunner(msg *wire.Message, d *Delivery, now time.Time) string {
	name, since := m.Name, m.sinceText(now)
	reason := letter.Clip(letter.Escape(d.FailedWhy), 80)
	switch {
	case m.Inject == "off":
		return fmt.Sprintf("nothing is typed into %s (inject is off), who reads it with atm read", name)
	case msg.Expired(now):
		return fmt.Sprintf("it has expired, and is not typed into %s any more", name)
	case m.isSilent():
		return fmt.Sprintf("the runner of %s does not answer: atm doctor", name)
	case m.WaitingOn != nil && m.WaitingOn.Dialog == policy.DialogTrust:
		return fmt.Sprintf("%s asks whether a directory is trusted, which only a person at its terminal answers%s: atm attach %s", name, since, name)
	case m.State == reducer.WordBlocked:
		return fmt.Sprintf("%s waits for an answer itself (%s)%s: atm pending, then atm approve %s, or atm attach %s", name, m.about(), since, name, name)
	case m.hold() == holdDialog:
		return fmt.Sprintf("%s waits for an answer itself (a dialog): atm pending, then atm approve %s, or atm attach %s", name, name, name)
	case m.hold() == holdDraft, m.gate == "" && d.Failed.Exists() && d.FailedWhy == "draft":
		return fmt.Sprintf("somebody has begun to write in the prompt of %s, and nothing is typed over that: atm attach %s sends or clears it", name, name)
	case m.hold() == holdTyping:
		return fmt.Sprintf("a person is typing into %s; it is typed in when they pause: atm wait --busy %s", name, name)
	case m.State == reducer.WordBusy || m.gate == "busy":
		return fmt.Sprintf("%s is busy%s, and gets it when it is idle: atm wait --idle %s", name, since, name)
	case m.State == reducer.WordStarting:
		return fmt.Sprintf("%s is starting%s, and gets it at its first prompt: atm screen %s", name, since, name)
	case m.State == reducer.WordError:
		return fmt.Sprintf("%s stopped with an error (%s)%s: atm screen %s", name, m.about(), since, name)
	case strings.HasPrefix(d.FailedWhy, "what atm itself says"):
		return fmt.Sprintf("%s: atm read --as %s", d.FailedWhy, name)
	case d.Failed.Exists():
		return fmt.Sprintf("typing it in failed %s (%s), and is tried again: atm screen %s", letter.Age(now, d.Failed.At), reason, name)
	case d.isBeingTyped:
		return fmt.Sprintf("it is being typed into %s: atm trace %s in a moment", name, msg.ID.Short(6))
	case d.Announced.Exists() && d.isOnlyAnnounced:
		return fmt.Sprintf("%s was told of it, and has not called atm read yet: atm screen %s", name, name)
	case d.Announced.Exists():
		return fmt.Sprintf("it was handed to %s, and counts as read when its hooks are next called: atm status %s", name, name)
	case m.gate != "":
		return fmt.Sprintf("%s shows no prompt that mail could be typed into (%s): atm screen %s", name, letter.Escape(m.gate), name)
	case m.State == reducer.WordIdle:
		return fmt.Sprintf("%s is idle, and gets it in a moment: atm wait --busy %s", name, name)
	}
	return fmt.Sprintf("%s runs and has not taken it: atm screen %s", name, name)
}

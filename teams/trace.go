package teams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

// Stage is one step of a message's delivery, with the evidence for it.
type Stage struct {
	Name     string     `json:"stage"`
	At       *time.Time `json:"at"`
	Evidence *string    `json:"evidence"` // null: no evidence, which is not "no"
	Text     string     `json:"text,omitempty"`
	Host     wire.Name  `json:"host,omitempty"` // the other host where it was reached
}

// DeliveryTrace is the progress of a message at one recipient.
type DeliveryTrace struct {
	To     string        `json:"to"`
	State  mailbox.State `json:"state"`
	Stages []Stage       `json:"stages"`
	Due    string        `json:"due,omitempty"`  // when the missing answer is due
	Gate   string        `json:"gate,omitempty"` // what the next stage waits for, and a command that helps
}

// Trace returns the progress of a message at one recipient.
func (r *Root) Trace(ctx context.Context, m *wire.Message, a wire.Address) DeliveryTrace {
	return r.trace(ctx, m, a, true)
}

// HasReached reports whether there is evidence for a stage of a message at one recipient. It asks no runner.
func (r *Root) HasReached(ctx context.Context, m *wire.Message, a wire.Address, stage string) bool {
	t := r.trace(ctx, m, a, false)
	return t.Reached(stage)
}

func (r *Root) trace(ctx context.Context, m *wire.Message, a wire.Address, withGate bool) DeliveryTrace {
	t := newTrace(a)
	t.addAnswers(ctx, r, m, a)
	box, err := r.Mailbox(a)
	unknown, _ := errors.AsType[*UnknownError](err)
	switch {
	case a.Host != "":
		t.fillRemote(r, m, a)
	case err == nil:
		t.fill(r, m, box, withGate)
	case unknown != nil && unknown.Retired:
		const gate = "%s is retired; its mail is kept: atm team restore %s --team %s"
		t.Gate = fmt.Sprintf(gate, a, a.Agent, a.Team)
	case unknown != nil || errors.Is(err, ErrNoTeam):
		t.Gate = fmt.Sprintf("%s has no mailbox here: atm team", a)
	default:
		t.Gate = fmt.Sprintf("the mailbox of %s cannot be read: atm doctor", a)
	}
	if reply := t.stage("replied"); reply.At != nil && m.RequiresAck {
		t.add("acked", *reply.At, "", "the reply")
	}
	for _, name := range []string{"acked", "replied"} { // the evidence is here
		if t.Reached(name) {
			t.stage(name).Host = a.Host
		}
	}
	return t
}

// IsTurnOver reports whether the turn is over into which a recipient was handed a message, also because its runner was
// killed. Events tell nothing about people.
func (r *Root) IsTurnOver(ctx context.Context, m *wire.Message, a wire.Address) bool {
	t := r.trace(ctx, m, a, false)
	if r.IsPerson(a) || t.Reached("turn_done") || !t.Reached("turn_started") {
		return !r.IsPerson(a) && t.Reached("turn_done")
	}
	if team, err := r.Team(a.Team); err == nil && a.Host == "" {
		if running, err := team.Running(a.Agent); err != nil || running { // it may hang: do not ask it
			return false
		}
	}
	now, _ := r.Summary(a)
	return now.RunnerGone
}

// RemoteState returns the state of a message at a recipient on another host, as far as that host has reported it.
func (r *Root) RemoteState(m *wire.Message, a wire.Address) mailbox.State {
	t := newTrace(a)
	t.fillRemote(r, m, a)
	return t.State
}

func newTrace(a wire.Address) DeliveryTrace {
	t := DeliveryTrace{To: a.String()}
	for _, name := range []string{"stored", "announced", "read", "turn_started", "turn_done", "acked", "replied"} {
		t.Stages = append(t.Stages, Stage{Name: name})
	}
	return t
}

func (t *DeliveryTrace) stage(name string) *Stage {
	return &t.Stages[slices.IndexFunc(t.Stages, func(s Stage) bool { return s.Name == name })]
}

// Reached reports whether there is evidence for a stage.
func (t *DeliveryTrace) Reached(name string) bool { return t.stage(name).Evidence != nil }

// add adds evidence for a stage that has none yet.
func (t *DeliveryTrace) add(name string, at time.Time, text, format string, args ...any) {
	t.addStages([]Stage{{Name: name, At: moment(at), Evidence: new(fmt.Sprintf(format, args...)), Text: text}})
}

func (t *DeliveryTrace) addStages(stages []Stage) {
	for _, s := range stages {
		i := slices.IndexFunc(t.Stages, func(old Stage) bool { return old.Name == s.Name && old.Evidence == nil })
		if i >= 0 {
			t.Stages[i] = s
		}
	}
}

// fill adds what the recipient's events and mailbox show.
func (t *DeliveryTrace) fill(r *Root, m *wire.Message, box *mailbox.Box, withGate bool) {
	team, _ := r.Team(box.Address().Team)
	turns, _ := team.HistorySince(box.Agent(), beforeAnswers(m.ID, m.SentAt, box))
	d := turns.Delivery(m.ID)
	t.addStages(StagesOf(d, box.Agent()))
	it, err := box.Get(m.ID)
	if _, isBad := errors.AsType[*mailbox.BadError](err); isBad {
		t.State, t.Gate = "bad", fmt.Sprintf("it cannot be read there: %v; atm doctor", err)
	}
	if err != nil {
		return
	}
	t.State = it.State
	if it.State == mailbox.Withdrawn || it.SupersededBy != "" || it.Expired(time.Now()) {
		t.Due = ""
	}
	t.add("stored", m.SentAt, "", "%s", it.Dir)
	if hasRead(it) {
		t.add("read", time.Time{}, "", "it is in %s", it.Dir)
	}
	// It need not be read to be answered: an answer may be a dropped file.
	if !withGate || t.Reached("acked") || t.Reached("replied") {
		return
	}
	if t.State == mailbox.Unread {
		t.Gate = team.unreadGate(box.Agent(), it, d)
	} else if d.Turn != nil && !d.Turn.HasEnded() {
		t.Gate = team.turnGate(box.Agent())
	}
	if t.State == mailbox.Owed && t.Gate == "" {
		t.Gate = fmt.Sprintf("%s has not acknowledged it: atm wait --acked %s", box.Agent(), m.ID.Short(6))
	}
}

// StagesOf returns the stages for which the recipient's events are evidence.
func StagesOf(d *history.Delivery, agent wire.Name) (out []Stage) {
	add := func(name string, ref history.Event, text string) {
		if ref.Exists() {
			evidence := fmt.Sprintf("event %d of %s", ref.Seq, agent)
			out = append(out, Stage{Name: name, At: moment(ref.At), Evidence: &evidence, Text: text})
		}
	}
	add("announced", d.Announced, "")
	add("read", d.Read, "")
	if turn := d.Turn; turn != nil {
		outcome := ""
		if turn.WasCutShort() {
			outcome = turn.Status
		}
		add("turn_started", turn.BeganBy, "")
		add("turn_done", turn.EndedBy, outcome)
	}
	add("acked", d.Acked, "")
	return out
}

// fillRemote adds what is known about a recipient on another host: the message in the outbox, and the stages that the
// bridge has logged.
func (t *DeliveryTrace) fillRemote(r *Root, m *wire.Message, a wire.Address) {
	team, err := r.Team(a.Team)
	if err != nil {
		return
	}
	if m.From.Host == "" { // the bridge logs a stage as an event of the sender
		sender := team.Box(m.From.Agent)
		since := beforeAnswers(m.ID, m.SentAt, sender)
		events, _ := sender.Log().Tail(func(e *wire.Event) bool { return e.At.Before(since) })
		for _, e := range events {
			if e.Kind == wire.EventStage && e.Source == "bridge" && e.MessageID() == m.ID && e.Field("to") == t.To {
				at, _ := time.Parse(time.RFC3339, e.Field("reached_at"))
				t.addStages([]Stage{{e.Field("stage"), moment(at), new(e.Field("evidence")), e.Field("text"), a.Host}})
			}
		}
	}
	notice := returnNotice(team.Box(m.From.Agent), m.ID, a)
	it, err := team.Outbox(a).Get(m.ID)
	if err == nil { // the bridge has not sent it
		t.State = it.State
		if hasRead(it) { // by the bridge, which waits for the server
			t.State = mailbox.Unread
		}
		t.add("stored", m.SentAt, "", "%s", it.Dir)
	}
	switch {
	case err == nil && t.State == mailbox.Withdrawn:
	case err == nil && team.IsBridged():
		t.Gate = "the bridge runs, but the server has not accepted it yet"
	case err == nil:
		t.Gate = "the bridge is off: it goes out when `atm bridge` runs"
	case t.Reached("acked") || t.Reached("replied") || t.Reached("read") && !m.RequiresAck:
		t.State = mailbox.Done
	case t.Reached("read"):
		t.State, t.Gate = mailbox.Owed, fmt.Sprintf("%s has not acknowledged it: atm wait --acked %s", a.Agent, m.ID.Short(6))
	case t.Reached("stored"):
		t.State = mailbox.Unread
	case m.From.Host != "": // its own host knows more
	case notice != nil:
		t.Gate = fmt.Sprintf("it was returned: atm show %s", notice.ID.Short(6))
	case errors.Is(err, mailbox.ErrNotFound):
		t.Gate = fmt.Sprintf("it was sent; host %s has reported nothing yet", a.Host)
	default:
		t.Gate = fmt.Sprintf("atm cannot tell whether it was sent: %v", err)
	}
}

// returned is the payload of a notice that a message was not delivered to several recipients.
type returned struct {
	Recipients []string `json:"recipients"`
}

// ReturnNotice begins a notice to the sender of a message that these recipients, of one host, are not there.
func ReturnNotice(id wire.ID, unknown []wire.Address) *wire.Message {
	if len(unknown) == 1 {
		return &wire.Message{ID: wire.Derive("returned", id, unknown[0])}
	}
	var r returned
	for _, a := range unknown {
		r.Recipients = append(r.Recipients, a.String())
	}
	payload, _ := json.Marshal(r)
	return &wire.Message{ID: returnedBy(id, unknown[0].Host), Payload: payload}
}

func returnedBy(id wire.ID, host wire.Name) wire.ID {
	return wire.Derive("returned by "+string(host), id, wire.Address{})
}

// returnNotice finds the notice that a message was not delivered to a recipient, or returns nil.
func returnNotice(sender *mailbox.Box, id wire.ID, a wire.Address) *wire.Message {
	isFromHost := func(m *wire.Message) bool { return m.From.Host == a.Host && IsNoticeFrom(m.From)(m) }
	if notice, err := sender.GetDerived(wire.Derive("returned", id, a), isFromHost); err == nil {
		return notice.Message
	}
	notice, err := sender.GetDerived(returnedBy(id, a.Host), isFromHost)
	var r returned
	if err != nil || json.Unmarshal(notice.Payload, &r) != nil || !slices.Contains(r.Recipients, a.String()) {
		return nil
	}
	return notice.Message
}

func (t *DeliveryTrace) addAnswers(ctx context.Context, r *Root, m *wire.Message, a wire.Address) {
	replies := r.repliesOf(ctx, m, a)
	if !m.DueAt.IsZero() && !r.IsAnswered(ctx, m, a) {
		t.Due = "answer " + (&letter.Renderer{Now: time.Now()}).Due(m, false)
	}
	where := "in the mailbox of " + string(m.From.Agent)
	if m.From.Host != "" {
		where = "sent to " + m.From.String()
	}
	if ack, err := r.AckOf(m, a); err == nil {
		t.add("acked", ack.SentAt, ack.Body, "ack %s %s", ack.ID.Short(6), where)
	}
	if len(replies) > 0 {
		first := replies[0]
		t.add("replied", first.SentAt, first.Title(), "message %s %s", first.ID.Short(6), where)
	}
}

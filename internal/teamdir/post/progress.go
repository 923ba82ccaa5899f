package post

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

// Progress is how far a message got at one recipient: by that one's mailbox and events, also in a linked root, by the answers
// to it, or, of another host, by what the bridge has reported. At makes it, and Trace with its stages.
type Progress struct {
	To     string          `json:"to"`
	State  wire.State      `json:"state"` // of its copy there; "": not known; "bad": it cannot be read
	Stages []history.Stage `json:"stages"`
	Due    string          `json:"due,omitempty"` // when the missing answer is due

	Item     *wire.Item        `json:"-"` // in its inbox, or in the outbox of its host
	Delivery *history.Delivery `json:"-"` // by its events, after Trace; nil: it has no mailbox here
	Err      error             `json:"-"` // why there is no Item
	Returned *wire.Message     `json:"-"` // the notice that it is not there

	message  *wire.Message
	at       wire.Address
	answers  *Answers
	reported []history.Stage // what another host has reported
}

// The outcomes of a message that nobody will do. The others are those of acks: wire.Outcomes.
const (
	OutcomeWithdrawn = "withdrawn"
	OutcomeRetired   = "retired" // its recipient
)

// At returns the progress of one of the messages at one recipient: where its copy is, and how it was answered. It asks no runner.
func (answers *Answers) At(m *wire.Message, a wire.Address) *Progress {
	p := &Progress{To: a.String(), message: m, at: a, answers: answers}
	for _, name := range []string{"stored", "announced", "read", "turn_started", "turn_done", "acked", "replied"} {
		p.Stages = append(p.Stages, history.Stage{Name: name})
	}
	p.look()
	return p
}

// look finds the message's copy.
func (p *Progress) look() {
	r := p.answers.root
	if r.IsRemote(p.at) {
		p.lookRemote()
		return
	}
	box, err := r.Mailbox(p.at)
	if err == nil {
		p.Item, err = box.Get(p.message.ID)
	}
	_, isBad := errors.AsType[*maildir.BadError](err)
	switch p.Err = err; {
	case err == nil:
		p.State = p.Item.State
	case isBad:
		p.State = "bad"
	}
}

// Trace is At with the stages that the message has reached there.
func (answers *Answers) Trace(m *wire.Message, a wire.Address) *Progress {
	r := answers.root
	var log *history.Delivery
	if box, err := r.Mailbox(a); err == nil && !r.IsRemote(a) {
		if team, err := r.TeamOf(a); err == nil { // before its copy, which may move on
			log = answers.past.turnsOf(team, box, search.BeforeAnswers(m.ID, m.SentAt, box)).Delivery(m.ID)
		}
	}
	p := answers.At(m, a)
	p.addAnswers()
	p.addStages(p.reported)
	if p.Delivery = log; log != nil {
		p.addStages(StagesOf(log, a.Agent))
	}
	if p.Item != nil {
		p.add("stored", m.SentAt, "", "%s", filepath.Dir(p.Item.File))
		if p.Item.IsRead() && !r.IsRemote(a) {
			p.add("read", time.Time{}, "", "it is in %s", filepath.Dir(p.Item.File))
		}
	}
	if reply := p.Stage("replied"); !reply.At.IsZero() && m.RequiresAck {
		p.add("acked", reply.At, "", "the reply")
	}
	for i := range p.Stages { // the evidence is here
		if isAnswer := slices.Contains([]string{"acked", "replied", "outcome"}, p.Stages[i].Name); isAnswer && r.IsRemote(a) && p.Stages[i].Evidence != "" {
			p.Stages[i].Host = a.Host
		}
	}
	return p
}

// Ack returns the recipient's last ack of the message, which counts; nil: there is none.
func (p *Progress) Ack() *wire.Item {
	ack, _ := p.answers.Ack(p.message, p.at)
	return ack
}

// Outcome says what came of the message, and by whom: done, blocked or declined, as its ack says, OutcomeWithdrawn or
// OutcomeRetired; "": nothing yet.
func (p *Progress) Outcome() (outcome string, by wire.Address) {
	ack := p.Ack()
	switch {
	case ack != nil && ack.Outcome() != "":
		return ack.Outcome(), ack.From
	case errors.Is(p.Err, maildir.ErrNoMailbox):
		return OutcomeRetired, p.at
	case p.State == wire.Withdrawn:
		return OutcomeWithdrawn, p.at
	}
	return "", p.at
}

// Word says in a word what the recipient has done with the message: withdrawn, answered (one with a due time), taken, acked,
// read, unread, later, bad or no evidence.
func (p *Progress) Word() string {
	m := p.message
	switch {
	case p.State == wire.Withdrawn:
	case !m.DueAt.IsZero() && p.answers.IsAnswered(m, p.at):
		return "answered"
	case p.Item != nil && p.Item.Lease != nil:
		return "taken"
	case p.Ack() != nil, m.RequiresAck && p.State == wire.Done:
		return "acked"
	case p.State == wire.Owed || p.State == wire.Done:
		return "read"
	}
	return cmp.Or(string(p.State), "no evidence")
}

// OwesAck reports whether the recipient has not acknowledged a message that asks for it.
func (p *Progress) OwesAck() bool {
	return p.message.RequiresAck && p.State != wire.Withdrawn && p.State != wire.Done && p.Ack() == nil
}

// IsTurnOver reports, after Trace, whether the turn is over into which the recipient was handed the message, also because its
// runner was killed. Events tell nothing about people.
func (p *Progress) IsTurnOver() bool {
	r := p.answers.root
	if IsPerson(r, p.at) || p.Reached("turn_done") || !p.Reached("turn_started") {
		return !IsPerson(r, p.at) && p.Reached("turn_done")
	}
	if team, err := r.TeamOf(p.at); err == nil && !r.IsRemote(p.at) {
		if running, err := team.Running(p.at.Agent); err != nil || running { // it may hang: do not ask it
			return false
		}
	}
	return presence.At(context.Background(), r, p.at)[p.at].RunnerGone
}

// addAnswers adds how a recipient has answered.
func (p *Progress) addAnswers() {
	answers, m, a := p.answers, p.message, p.at
	replies := answers.Replies(m, a).Counted
	isOver := p.State == wire.Withdrawn || p.Item != nil && p.Item.Expired(time.Now())
	if !m.DueAt.IsZero() && !isOver && !answers.IsAnswered(m, a) {
		p.Due = "answer " + (&letter.Renderer{Now: time.Now()}).Due(m, false)
	}
	where := "in the mailbox of " + string(m.From.Agent)
	if m.From.Host != "" {
		where = "sent to " + m.From.String()
	}
	if acks, err := answers.Acks(m, a); err == nil {
		first, last := acks[0], acks[len(acks)-1]
		evidence := func(ack *wire.Item) string { return fmt.Sprintf("ack %s %s", ack.ID.Short(6), where) }
		text := first.Body
		if first.Outcome() != "" {
			text = "" // which is about the outcome
		}
		p.add("acked", first.SentAt, text, "%s", evidence(first))
		if outcome := last.Outcome(); outcome != "" {
			p.Stages = append(p.Stages, history.Stage{Name: "outcome", At: last.SentAt, Evidence: evidence(last), Outcome: outcome, Text: last.Body})
		}
	}
	if len(replies) > 0 {
		first := replies[0]
		p.add("replied", first.SentAt, first.Title(), "message %s %s", first.ID.Short(6), where)
	}
}

// past is what recipients did since a message was sent, for one who looks again and again: then only what is new is read.
type past map[wire.Address]*history.History

// turnsOf returns what a recipient did since a time.
func (p past) turnsOf(team *teamdir.Team, box *maildir.Box, since time.Time) *history.History {
	turns := p[box.Address()]
	last, err := box.Log().LastSeq()
	if turns == nil || err != nil || last < turns.Seq() { // the last: another log took its place
		turns, _ = team.HistorySince(box.Agent(), since)
		p[box.Address()] = turns
	} else if last > turns.Seq() {
		events := box.Log().Follow(turns.Seq())
		defer events.Close()
		for e, err := events.Next(); err == nil; e, err = events.Next() {
			turns.Apply(&e)
		}
	}
	return turns
}

// Stage returns a stage by its name.
func (p *Progress) Stage(name string) *history.Stage {
	return &p.Stages[slices.IndexFunc(p.Stages, func(s history.Stage) bool { return s.Name == name })]
}

// Reached reports whether there is evidence for a stage.
func (p *Progress) Reached(name string) bool { return p.Stage(name).Evidence != "" }

// add adds evidence for a stage that has none yet.
func (p *Progress) add(name string, at time.Time, text, format string, args ...any) {
	p.addStages([]history.Stage{{Name: name, At: at, Evidence: fmt.Sprintf(format, args...), Text: text}})
}

func (p *Progress) addStages(stages []history.Stage) {
	for _, s := range stages {
		i := slices.IndexFunc(p.Stages, func(old history.Stage) bool { return old.Name == s.Name && old.Evidence == "" })
		if i >= 0 {
			p.Stages[i] = s
		}
	}
}

// StagesOf returns the stages for which the recipient's events are evidence.
func StagesOf(d *history.Delivery, agent wire.Name) (out []history.Stage) {
	add := func(name string, ref history.Event, text string) {
		if ref.Exists() {
			out = append(out, history.Stage{Name: name, At: ref.At.UTC(), Evidence: fmt.Sprintf("event %d of %s", ref.Seq, agent), Text: text})
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

// lookRemote finds what is known about a recipient on another host: the message in the outbox, and the stages that the bridge
// has logged.
func (p *Progress) lookRemote() {
	m, a := p.message, p.at
	team, err := p.answers.root.Team(a.Team)
	if err != nil {
		p.Err = err
		return
	}
	reached := map[string]bool{}
	if m.From.Host == "" { // the bridge logs a stage as an event of the sender
		sender := team.Box(m.From.Agent)
		since := search.BeforeAnswers(m.ID, m.SentAt, sender)
		events, _ := sender.Log().Tail(func(e *wire.Event) bool { return e.At.Before(since) })
		for _, e := range events {
			if e.Kind == wire.EventStage && e.Source == wire.SourceBridge && e.MessageID() == m.ID && e.Field("to") == p.To {
				at, _ := time.Parse(time.RFC3339, e.Field("reached_at"))
				p.reported = append(p.reported, history.Stage{Name: e.Field("stage"), At: at, Evidence: e.Field("evidence"), Text: e.Field("text"), Host: a.Host})
				reached[e.Field("stage")] = true
			}
		}
	}
	p.Returned = returnNotice(team.Box(m.From.Agent), m.ID, a)
	p.Item, p.Err = team.Store.Outbox(a).Get(m.ID)
	isAnswered := reached["acked"] || p.Ack() != nil || len(p.answers.Replies(m, a).Counted) > 0
	switch {
	case p.Err == nil: // the bridge has not sent it
		p.State = p.Item.State
		if p.Item.IsRead() { // by the bridge, which waits for the server
			p.State = wire.Unread
		}
	case isAnswered, reached["read"] && !m.RequiresAck:
		p.State = wire.Done
	case reached["read"]:
		p.State = wire.Owed
	case reached["stored"]:
		p.State = wire.Unread
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
func returnNotice(sender *maildir.Box, id wire.ID, a wire.Address) *wire.Message {
	isFromHost := func(m *wire.Message) bool {
		return m.Type == wire.TypeNotice && m.From.Host == a.Host && !m.IsDropped()
	}
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

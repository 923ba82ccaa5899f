// Package progress knows how far a message got at a recipient: by that one's mailbox and events, also in a linked root, or, of
// another host, by what the bridge has reported.
package progress

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/search"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

// Stage is one step of a message's delivery, with the evidence for it.
type Stage struct {
	Name     string     `json:"stage"`
	At       *time.Time `json:"at"`
	Evidence *string    `json:"evidence"`          // null: no evidence, which is not "no"
	Outcome  string     `json:"outcome,omitempty"` // of the stage outcome: done, blocked or declined
	Text     string     `json:"text,omitempty"`
	Host     wire.Name  `json:"host,omitempty"` // the other host where it was reached
}

// Trace is the progress of a message at one recipient. Package post adds how it was answered.
type Trace struct {
	To     string     `json:"to"`
	State  wire.State `json:"state"`
	Stages []Stage    `json:"stages"`
	Due    string     `json:"due,omitempty"` // when the missing answer is due

	Item     *maildir.Item     `json:"-"` // in its inbox, or in the outbox of its host
	Delivery *history.Delivery `json:"-"` // by its events; nil: it has no mailbox here
	Err      error             `json:"-"` // why there is no Item
	Returned *wire.Message     `json:"-"` // the notice that it is not there
}

// RemoteState returns the state of a message at a recipient on another host, as far as that host has reported it.
func RemoteState(r *teamdir.Root, m *wire.Message, a wire.Address) wire.State {
	t := New(a)
	t.fillRemote(r, m, a)
	return t.State
}

// Of returns the progress of a message as far as it is known where the message is. It asks no runner.
func Of(r *teamdir.Root, m *wire.Message, a wire.Address, past Past) Trace {
	t := New(a)
	t.Look(r, m, a, past)
	return t
}

// Past is what recipients did since a message was sent, for one who looks again and again: then only what is new is read.
type Past map[wire.Address]*history.History

// turnsOf returns what a recipient did since a time.
func (p Past) turnsOf(team *teamdir.Team, box *maildir.Box, since time.Time) *history.History {
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

// Look adds what is known where the message is, unless there is evidence already. It asks no runner.
func (t *Trace) Look(r *teamdir.Root, m *wire.Message, a wire.Address, past Past) {
	if r.IsRemote(a) {
		t.fillRemote(r, m, a)
	} else if box, err := r.Mailbox(a); err != nil {
		t.Err = err
	} else {
		t.fill(r, m, box, past)
	}
}

// New returns the progress of a message of which nothing is known.
func New(a wire.Address) Trace {
	t := Trace{To: a.String()}
	for _, name := range []string{"stored", "announced", "read", "turn_started", "turn_done", "acked", "replied"} {
		t.Stages = append(t.Stages, Stage{Name: name})
	}
	return t
}

// Stage returns a stage by its name.
func (t *Trace) Stage(name string) *Stage {
	return &t.Stages[slices.IndexFunc(t.Stages, func(s Stage) bool { return s.Name == name })]
}

// Reached reports whether there is evidence for a stage.
func (t *Trace) Reached(name string) bool { return t.Stage(name).Evidence != nil }

// Add adds evidence for a stage that has none yet.
func (t *Trace) Add(name string, at time.Time, text, format string, args ...any) {
	t.addStages([]Stage{{Name: name, At: presence.TimeOrNil(at), Evidence: new(fmt.Sprintf(format, args...)), Text: text}})
}

func (t *Trace) addStages(stages []Stage) {
	for _, s := range stages {
		i := slices.IndexFunc(t.Stages, func(old Stage) bool { return old.Name == s.Name && old.Evidence == nil })
		if i >= 0 {
			t.Stages[i] = s
		}
	}
}

// fill adds what the recipient's events and mailbox show.
func (t *Trace) fill(r *teamdir.Root, m *wire.Message, box *maildir.Box, past Past) {
	team, err := r.TeamOf(box.Address())
	if err != nil {
		t.Err = err
		return
	}
	t.Delivery = past.turnsOf(team, box, search.BeforeAnswers(m.ID, m.SentAt, box)).Delivery(m.ID)
	t.addStages(StagesOf(t.Delivery, box.Agent()))
	it, err := box.Get(m.ID)
	if t.Item, t.Err = it, err; err != nil {
		if _, isBad := errors.AsType[*maildir.BadError](err); isBad {
			t.State = "bad"
		}
		return
	}
	t.State = it.State
	if it.State == wire.Withdrawn || it.Expired(time.Now()) {
		t.Due = ""
	}
	t.Add("stored", m.SentAt, "", "%s", it.Dir)
	if it.IsRead() {
		t.Add("read", time.Time{}, "", "it is in %s", it.Dir)
	}
}

// StagesOf returns the stages for which the recipient's events are evidence.
func StagesOf(d *history.Delivery, agent wire.Name) (out []Stage) {
	add := func(name string, ref history.Event, text string) {
		if ref.Exists() {
			evidence := fmt.Sprintf("event %d of %s", ref.Seq, agent)
			out = append(out, Stage{Name: name, At: presence.TimeOrNil(ref.At), Evidence: &evidence, Text: text})
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
func (t *Trace) fillRemote(r *teamdir.Root, m *wire.Message, a wire.Address) {
	team, err := r.Team(a.Team)
	if err != nil {
		return
	}
	if m.From.Host == "" { // the bridge logs a stage as an event of the sender
		sender := team.Box(m.From.Agent)
		since := search.BeforeAnswers(m.ID, m.SentAt, sender)
		events, _ := sender.Log().Tail(func(e *wire.Event) bool { return e.At.Before(since) })
		for _, e := range events {
			if e.Kind == wire.EventStage && e.Source == wire.SourceBridge && e.MessageID() == m.ID && e.Field("to") == t.To {
				at, _ := time.Parse(time.RFC3339, e.Field("reached_at"))
				t.addStages([]Stage{{Name: e.Field("stage"), At: presence.TimeOrNil(at), Evidence: new(e.Field("evidence")), Text: e.Field("text"), Host: a.Host}})
			}
		}
	}
	t.Returned = returnNotice(team.Box(m.From.Agent), m.ID, a)
	it, err := team.Store.Outbox(a).Get(m.ID)
	t.Item, t.Err = it, err
	switch {
	case err == nil: // the bridge has not sent it
		t.State = it.State
		if it.IsRead() { // by the bridge, which waits for the server
			t.State = wire.Unread
		}
		t.Add("stored", m.SentAt, "", "%s", it.Dir)
	case t.Reached("acked") || t.Reached("replied") || t.Reached("read") && !m.RequiresAck:
		t.State = wire.Done
	case t.Reached("read"):
		t.State = wire.Owed
	case t.Reached("stored"):
		t.State = wire.Unread
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

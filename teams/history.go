package teams

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// PastTurn is one turn of an agent's, as its events tell. What no event has
// said is empty.
type PastTurn struct {
	ID       string        `json:"turn_id"`
	Session  string        `json:"session,omitempty"`
	Began    *time.Time    `json:"began,omitempty"`
	Ended    *time.Time    `json:"ended,omitempty"` // nil: it is open, or its end was lost
	Duration time.Duration `json:"-"`               // 0: not known
	Prompt   string        `json:"prompt"`
	Response string        `json:"response"`
	Status   string        `json:"status"` // completed, interrupted, failed; open; "": over, nobody said how
	Error    string        `json:"error,omitempty"`
	Messages []wire.ID     `json:"messages,omitempty"` // that were handed into it
}

// TurnOpen is the status of a turn that goes on.
const TurnOpen = "open"

// MarshalJSON writes the duration as whole milliseconds.
func (p PastTurn) MarshalJSON() ([]byte, error) {
	type plain PastTurn
	return json.Marshal(struct {
		plain
		MS int64 `json:"duration_ms,omitempty"`
	}{plain(p), p.Duration.Milliseconds()})
}

// History are a member's newest turns, at most limit (0: all that the log
// holds), the oldest first.
func (t *Team) History(name wire.Name, limit int) ([]PastTurn, error) {
	events, err := t.Box(name).Log().Tail(func(events []wire.Event) bool {
		n := 0
		for i := range events {
			if events[i].Kind == wire.TurnStarted || events[i].Kind == "turn_completed" {
				n++
			}
		}
		// A beginning and an end each, and some whose beginning lies further back.
		return limit > 0 && n > 2*limit+8
	})
	var h history
	for i := range events {
		h.step(&events[i])
	}
	turns := h.turns
	if limit > 0 && len(turns) > limit {
		turns = turns[len(turns)-limit:]
	}
	return turns, err
}

// history follows an agent's turns through its events.
type history struct {
	state reducer.State
	turns []PastTurn           // by when they were heard of first
	early map[string][]wire.ID // handed into turns that are not heard of yet
}

func (h *history) step(e *wire.Event) {
	before := slices.Clone(h.state.Turns)
	h.state.Apply(reducer.Input{Now: e.At, Event: e})
	for i := range h.state.Turns {
		now := &h.state.Turns[i]
		was := turnOf(before, now.Session)
		if was == nil && now.Session != "" {
			was = turnOf(before, "") // named by this event
		}
		h.follow(e, now, was)
	}
	switch e.Kind {
	case wire.EventInjected, wire.EventAnnounced, wire.EventRead:
		h.hand(e)
	}
}

// hand takes in that a message was handed over: into the turn that the event
// names, which may begin with what comes, else into one that is open.
func (h *history) hand(e *wire.Event) {
	id := e.MessageID()
	switch t := h.about(e, h.state.Turn().Session); {
	case t == nil && e.TurnID != "":
		if h.early == nil {
			h.early = map[string][]wire.ID{}
		}
		h.early[e.TurnID] = append(h.early[e.TurnID], id)
	case t == nil || t.Status != TurnOpen && e.TurnID == "" || slices.Contains(t.Messages, id):
	default:
		t.Messages = append(t.Messages, id)
	}
}

// follow takes in what an event has done to one session's turn.
func (h *history) follow(e *wire.Event, now, was *reducer.Turn) {
	if now.ID == "" {
		return
	}
	open := now.Status == reducer.TurnBusy
	t := h.find(now.Session, now.ID)
	if t == nil && was != nil && was.ID != now.ID && was.IsGenerated && (open && was.Began.Equal(now.Began) || !open && was.Status == reducer.TurnBusy) {
		if t = h.find(was.Session, was.ID); t != nil { // it has got its name
			t.ID = now.ID
		}
	}
	last := now.Last
	ended := last != nil && last.ID == now.ID
	if t == nil {
		if !open && !ended || was != nil && was.ID == now.ID {
			return // of before what is looked at
		}
		h.turns = append(h.turns, PastTurn{ID: now.ID, Messages: h.early[now.ID]})
		delete(h.early, now.ID)
		t = &h.turns[len(h.turns)-1]
	}
	t.Session = now.Session
	if open {
		if t.Began == nil {
			t.Began = moment(now.Began)
		}
		t.Status, t.Ended, t.Duration, t.Error = TurnOpen, nil, 0, ""
	} else {
		if t.Status == TurnOpen {
			t.Status, t.Ended = "", moment(e.At)
		}
		if ended {
			t.Status, t.Ended, t.Error = last.Status, moment(last.At), last.Error
			t.Duration = last.Duration()
		}
		if t.Duration == 0 && t.Began != nil && t.Ended != nil {
			t.Duration = max(0, t.Ended.Sub(*t.Began))
		}
	}
	h.hear(e, t, now)
	if was != nil && was.ID != now.ID {
		// What another turn follows is over, though nobody said so.
		if old := h.find(was.Session, was.ID); old != nil && old.Status == TurnOpen {
			old.Status = ""
		}
	}
}

// hear takes in what an event says that was typed, or answered.
func (h *history) hear(e *wire.Event, t *PastTurn, now *reducer.Turn) {
	body := e.Body()
	if id := body.Text("turn_id"); e.TurnID != "" && e.TurnID != now.ID || id != "" && e.TurnID == "" && id != now.ID {
		return
	}
	if s := body.Text("session"); e.Session != "" && e.Session != now.Session || e.Session == "" && s != "" && s != now.Session {
		return
	}
	if e.Session == "" && now.Session != h.state.Turn().Session {
		return
	}
	switch e.Kind {
	case wire.TurnStarted:
		if t.Prompt == "" {
			t.Prompt = body.Text("prompt")
		}
	case "turn_completed", "turn_complete":
		if s := Answer(e); s != "" {
			t.Response = s
		}
	}
}

// about is the turn that an event is about: the one that it names, else the
// newest of a session.
func (h *history) about(e *wire.Event, session string) *PastTurn {
	if e.Session != "" {
		session = e.Session
	}
	for i := len(h.turns) - 1; i >= 0; i-- {
		t := &h.turns[i]
		if e.TurnID != "" && t.ID == e.TurnID || e.TurnID == "" && t.Session == session {
			return t
		}
	}
	return nil
}

func (h *history) find(session, id string) *PastTurn {
	for i := len(h.turns) - 1; i >= 0; i-- {
		if t := &h.turns[i]; t.ID == id && (t.Session == session || t.Session == "") {
			return t
		}
	}
	return nil
}

// Answer is what the end of a turn says was answered in it, "" where it does
// not say.
func Answer(e *wire.Event) string {
	return e.Body().Text("response", "last_assistant_message", "last-assistant-message", "prompt_response")
}

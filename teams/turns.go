package teams

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// Turn is one turn of an agent, as its events tell. What no event has said is empty.
type Turn struct {
	ID         string     `json:"turn_id"`
	Session    string     `json:"session,omitempty"`
	Began      *time.Time `json:"began,omitempty"`
	Ended      *time.Time `json:"ended,omitempty"` // nil: it is open, or its end was lost
	Prompt     string     `json:"prompt"`
	Response   string     `json:"response"`
	Status     string     `json:"status"` // completed, interrupted, failed, cancelled, awaiting_input; open; "": over, nothing said how
	Error      string     `json:"error,omitempty"`
	Messages   []wire.ID  `json:"messages,omitempty"` // that were handed into it
	Tools      []ToolCall `json:"tool_calls,omitempty"`
	DurationMS int64      `json:"duration_ms,omitempty"` // 0: not known

	BeganBy, EndedBy EventRef `json:"-"` // the events that are the evidence
}

// ToolCall is a tool that was called in a turn.
type ToolCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Title     string          `json:"title,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	At        time.Time       `json:"timestamp"`
}

// TurnOpen is the status of a turn that goes on.
const TurnOpen = "open"

const maxTools = 1000

// EventRef names an event that is evidence of something.
type EventRef struct {
	Seq uint64 // 0: there was none
	At  time.Time
}

// Exists reports whether there was such an event.
func (r EventRef) Exists() bool { return r.Seq > 0 }

// Duration is how long the turn took; 0: not known.
func (t Turn) Duration() time.Duration { return time.Duration(t.DurationMS) * time.Millisecond }

// HasEnded reports whether the turn is over.
func (t *Turn) HasEnded() bool { return t != nil && t.EndedBy.Exists() }

// WasCutShort reports whether the turn ended otherwise than by its completion.
func (t *Turn) WasCutShort() bool {
	return t.HasEnded() && t.Status != "" && t.Status != reducer.Completed && t.Status != reducer.Awaiting
}

// Turns folds an agent's events, in order, into its turns and into what became of
// each message: trace, history, ask and wait read it. Not for concurrent use.
type Turns struct {
	list       []*Turn          // in the order in which they became known
	current    map[uint64]*Turn // those that the state holds, by their reducer.Turn.TurnSeq
	deliveries map[wire.ID]*Delivery
	unplaced   []*Delivery // handed over, and their turn is not known yet
	state      reducer.State
}

// Turns folds a member's events since a time. More can be applied from the event after Seq on.
func (t *Team) Turns(name wire.Name, since time.Time) (*Turns, error) {
	return t.turns(name, func(e *wire.Event) bool { return e.At.Before(since) })
}

func (t *Team) turns(name wire.Name, enough func(*wire.Event) bool) (*Turns, error) {
	events, err := t.Box(name).Log().Tail(enough)
	return turnsOf(events), err
}

func turnsOf(events []wire.Event) *Turns {
	ts := &Turns{}
	for i := range events {
		ts.Apply(&events[i])
	}
	return ts
}

// History lists a member's newest turns, at most limit (0: all that the log holds), the oldest first.
func (t *Team) History(name wire.Name, limit int) ([]Turn, error) {
	n := 0
	ts, err := t.turns(name, func(e *wire.Event) bool {
		if e.Kind == wire.TurnStarted || e.Kind == wire.TurnCompleted {
			n++
		}
		return limit > 0 && n > 2*limit+8 // a beginning and an end each, and some that began further back
	})
	out := []Turn{}
	for _, turn := range ts.list {
		out = append(out, *turn)
	}
	if limit > 0 {
		out = out[max(0, len(out)-limit):]
	}
	return out, err
}

// Seq is the number of the newest event that was applied.
func (ts *Turns) Seq() uint64 { return ts.state.Seq }

// Delivery is what the events tell of a message. It is updated as they are applied.
func (ts *Turns) Delivery(id wire.ID) *Delivery {
	if ts.deliveries == nil {
		ts.deliveries = map[wire.ID]*Delivery{}
	}
	if ts.deliveries[id] == nil {
		ts.deliveries[id] = &Delivery{ID: id}
	}
	return ts.deliveries[id]
}

// Apply takes in the next event.
func (ts *Turns) Apply(e *wire.Event) {
	ts.state.Apply(reducer.Input{Now: e.At, Event: e})
	ts.updateTurns(e)
	b := e.Body()
	if turn := ts.turnOf(b); turn != nil {
		turn.Response = cmp.Or(session.AnswerOf(e), session.JoinDelta(turn.Response, e))
		switch e.Kind {
		case wire.TurnStarted:
			turn.Prompt = cmp.Or(turn.Prompt, b.Text("prompt"))
		case "tool_call_start", "tool_call":
			id, arguments := b.Text("tool_call_id"), b.Raw("arguments")
			turn.noteCall(ToolCall{id, b.Text("tool"), b.Text("title"), arguments, nil, e.At})
		case "tool_call_end", "tool_call_update":
			turn.noteResult(b.Text("tool_call_id"), b.Raw("result"))
		case wire.TurnCompleted, "turn_complete":
			if turn.HasEnded() && turn.Status == "" {
				turn.endLate(e)
			}
			var calls []struct { // the older ACP may tell of all calls now
				ID        string          `json:"id"`
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
				Result    json.RawMessage `json:"result"`
			}
			wire.Unmarshal(b.Raw("tool_calls"), &calls)
			for _, c := range calls {
				turn.noteCall(ToolCall{c.ID, c.Name, "", c.Arguments, c.Result, e.At})
			}
		}
	}
	var about *Delivery
	if slices.Contains(deliveryKinds, e.Kind) {
		about = ts.Delivery(e.MessageID())
		about.apply(e)
		if about.Turn == nil && about.isHanded && !slices.Contains(ts.unplaced, about) {
			ts.unplaced = append(ts.unplaced, about)
		}
	}
	for _, d := range ts.unplaced {
		ts.place(d, e, d == about)
	}
	ts.unplaced = slices.DeleteFunc(ts.unplaced, func(d *Delivery) bool { return d.Turn != nil || !d.isHanded })
}

func (t *Turn) noteCall(c ToolCall) {
	if !t.noteResult(c.ID, c.Result) && len(t.Tools) < maxTools {
		t.Tools = append(t.Tools, c)
	}
}

// noteResult notes what a call of the turn came to, nil: not known; and reports whether there is such a call.
func (t *Turn) noteResult(id string, result json.RawMessage) (isKnown bool) {
	i := slices.IndexFunc(t.Tools, func(c ToolCall) bool { return c.ID == id && id != "" })
	if i >= 0 && result != nil {
		t.Tools[i].Result = result
	}
	return i >= 0
}

func (ts *Turns) updateTurns(e *wire.Event) {
	known := map[uint64]*Turn{}
	for i := range ts.state.Turns {
		now := &ts.state.Turns[i]
		turn := ts.current[now.TurnSeq]
		if turn == nil && now.TurnSeq > 0 && (now.IsOpen() || now.End() != nil) {
			turn = &Turn{}
			ts.list = append(ts.list, turn)
		}
		if turn != nil {
			known[now.TurnSeq] = turn
			turn.update(e, now)
		}
	}
	for seq, turn := range ts.current {
		if known[seq] != nil || turn.HasEnded() {
			continue
		}
		// Another turn follows, or another program: some session may say how it ended.
		turn.EndedBy, turn.Status = EventRef{e.Seq, e.At}, ""
		for _, t := range ts.state.Turns {
			if t.Last != nil && t.Last.ID == turn.ID {
				turn.end(e, t.Last)
			}
		}
	}
	ts.current = known
}

func (t *Turn) update(e *wire.Event, now *reducer.Turn) {
	t.ID, t.Session = now.ID, now.Session
	if !now.IsOpen() {
		t.end(e, now.End())
		return
	}
	if !t.BeganBy.Exists() {
		t.BeganBy, t.Began = EventRef{e.Seq, now.Began}, moment(now.Began)
	}
	// Also where it goes on after something said that it was over.
	t.Status, t.Error, t.Ended, t.EndedBy, t.DurationMS = TurnOpen, "", nil, EventRef{}, 0
}

// end notes the end of a turn. last is nil while nothing says how it ended.
func (t *Turn) end(e *wire.Event, last *reducer.Last) {
	if !t.EndedBy.Exists() {
		t.EndedBy, t.Ended, t.Status = EventRef{e.Seq, e.At}, moment(e.At), ""
	}
	if last != nil {
		t.Status, t.Error, t.Ended, t.DurationMS = last.Status, last.Error, moment(last.At), last.DurationMS
	}
	if t.DurationMS == 0 && t.Began != nil && t.Ended != nil {
		t.DurationMS = max(0, t.Ended.Sub(*t.Began).Milliseconds())
	}
}

// endLate notes the end of a turn that is told when another one is current: no state changes by that.
func (t *Turn) endLate(e *wire.Event) {
	var alone reducer.State
	alone.Apply(reducer.Input{Now: e.At, Event: e})
	if last := alone.Turn().Last; last != nil {
		t.EndedBy = EventRef{}
		t.end(e, last)
	}
}

// turnOf is the turn that an event names, else the newest one of its session.
func (ts *Turns) turnOf(b wire.Body) *Turn {
	id, in := b.Text("turn_id"), b.Text("session")
	if id == "" && in == "" {
		in = ts.state.Turn().Session
	}
	for _, turn := range slices.Backward(ts.list) {
		isInSession := turn.Session == in || id != "" && (in == "" || turn.Session == "")
		if isInSession && (id == "" || turn.ID == id) {
			return turn
		}
	}
	return nil
}

// place notes the open turn into which a message went that was handed over: the one that was named with it, else
// the one of its session; where neither was named the turn that is shown, or the next one that begins. Or it
// notes that none will come. isAbout: the event is about the message.
func (ts *Turns) place(d *Delivery, e *wire.Event, isAbout bool) {
	shown := ts.state.Turn().TurnSeq
	for _, now := range slices.Backward(ts.state.Turns) {
		turn := ts.current[now.TurnSeq]
		if turn == nil || !now.IsOpen() {
			continue
		}
		isShown := isAbout && now.TurnSeq == shown || turn.BeganBy.Seq == e.Seq
		if d.session == "" && d.turnID == "" && isShown || d.wasFor(turn) {
			d.Turn, d.session = turn, turn.Session
			if !slices.Contains(turn.Messages, d.ID) {
				turn.Messages = append(turn.Messages, d.ID)
			}
			return
		}
	}
	switch {
	case e.Kind == "spawned" || e.Kind == "exited":
		if d.Announced.Exists() {
			d.hasProgramEnded, d.isHanded = true, false
		}
	case e.Kind == wire.EventRead && isAbout && !d.Announced.Exists() && d.turnID == "":
		d.isHanded = d.isBeingTyped // read between two turns, it belongs to none
	}
}

// wasFor reports whether the message was handed over for a turn or its session by name.
func (d *Delivery) wasFor(turn *Turn) bool {
	return (d.session != "" || d.turnID != "") && (d.session == "" || d.session == turn.Session) &&
		(d.turnID == "" || d.turnID == turn.ID)
}

// Delivery is how far a message has got with its recipient, as the recipient's events tell: Turns makes it.
type Delivery struct {
	ID wire.ID

	Announced, Read, Acked EventRef
	Failed                 EventRef // the last time it could not be typed in
	FailedWhy              string
	Turn                   *Turn // into which it was handed; nil: none is known

	hasProgramEnded bool // the one that it was handed to, before a turn began
	isHanded        bool
	isBeingTyped    bool
	isOnlyAnnounced bool   // by a line that says atm read
	turnID          string // of the turn that it was handed into; "": not said
	session         string // of that; "": not said
}

var deliveryKinds = []string{
	wire.EventAnnounced, wire.EventRead, wire.EventAcked, wire.EventAgain,
	wire.EventInjecting, wire.EventInjected, wire.EventInjectionFailed,
}

// WasCutShort reports whether nobody will answer the message any more: its turn ended
// otherwise than by its completion, or none began before the program ended.
func (d *Delivery) WasCutShort() bool { return d.hasProgramEnded || d.Turn.WasCutShort() }

// LostRunner reports whether the turn that a message was handed into is open, and its runner was killed.
func (t *Team) LostRunner(name wire.Name, d *Delivery) bool {
	if !d.isHanded || d.Turn.HasEnded() {
		return false
	}
	m, err := t.Summary(name)
	return err == nil && m.RunnerGone
}

// reset forgets how the message was handed over: it is unread once more.
func (d *Delivery) reset() { *d = Delivery{ID: d.ID, Acked: d.Acked} }

func (d *Delivery) apply(e *wire.Event) {
	here := EventRef{e.Seq, e.At}
	isHandedAnew := e.Kind == wire.EventInjecting || e.Kind == wire.EventAnnounced || e.Kind == wire.EventRead && d.Read.Exists()
	if isHandedAnew && d.WasCutShort() {
		d.reset() // another turn counts
	}
	switch e.Kind {
	case wire.EventAgain:
		d.reset()
	case wire.EventInjecting:
		d.isHanded, d.isBeingTyped = true, true // its turn may begin before it is known to be in
	case wire.EventAnnounced, wire.EventInjected:
		d.Announced, d.Failed, d.hasProgramEnded = here, EventRef{}, false
		d.isHanded, d.isBeingTyped = true, false
		d.isOnlyAnnounced = e.Kind == wire.EventInjected && e.Field("as") != ""
		if e.Kind == wire.EventInjected && !d.isOnlyAnnounced {
			d.Read = here // what is typed in whole counts as read with that
		}
	case wire.EventRead:
		d.Read, d.isHanded = here, true
	case wire.EventAcked:
		d.Acked = here
		return
	case wire.EventInjectionFailed:
		d.Failed, d.FailedWhy = here, cmp.Or(e.Field("reason"), e.Field("outcome"))
		d.isHanded, d.isBeingTyped = d.Announced.Exists() || d.Turn != nil, false
		return
	}
	if d.Turn == nil {
		d.session, d.turnID = cmp.Or(e.Session, d.session), cmp.Or(d.turnID, e.TurnID)
	}
}

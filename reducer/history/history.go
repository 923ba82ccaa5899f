// Package history folds an agent's events into its turns, as people look back at them, and into what became of each
// message that was handed to it. A turn says where in the log it is: what was said in it is read from there when somebody
// looks (Turn.Content). What is true now is package reducer's, which it follows.
//
//	history.go   the events, in order, into turns
//	content.go   what was said and done in a turn
//	delivery.go  what became of a message
//	acp.go       the session as a client of the older Agent Client Protocol keeps it
package history

import (
	"slices"
	"time"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Turn is one turn of an agent, as far as its events describe it.
type Turn struct {
	ID         string     `json:"turn_id"`
	Session    string     `json:"session,omitempty"`
	Began      *time.Time `json:"began,omitempty"`
	Ended      *time.Time `json:"ended,omitempty"` // nil: it is open, or its end was lost
	Status     string     `json:"status"`          // Open; completed, interrupted, failed, cancelled, awaiting_input; "": ended, unknown how
	Error      string     `json:"error,omitempty"`
	Messages   []wire.ID  `json:"messages,omitempty"`    // the messages that were handed into it
	DurationMS int64      `json:"duration_ms,omitempty"` // 0: unknown

	Usage *reducer.Figures `json:"usage,omitempty"` // what was told in it; nil: nothing

	From, To         uint64 `json:"-"` // the events in the log that tell of it, among which are those of others
	BeganBy, EndedBy Event  `json:"-"` // the evidence
	IsSeen           bool   `json:"-"` // its end is what a screen shows, not what the program tells

	names []string // ids that it had before
}

// Open is the status of a turn that has not ended.
const Open = "open"

// Event refers to an event that is evidence of something.
type Event struct {
	Seq uint64 // 0: there is none
	At  time.Time
}

// Exists reports whether there is such an event.
func (r Event) Exists() bool { return r.Seq > 0 }

// Duration is how long the turn took; 0: unknown.
func (t Turn) Duration() time.Duration { return time.Duration(t.DurationMS) * time.Millisecond }

// HasEnded reports whether t is a turn that has ended; t may be nil.
func (t *Turn) HasEnded() bool { return t != nil && t.EndedBy.Exists() }

// WasCutShort reports whether the turn ended without being completed.
func (t *Turn) WasCutShort() bool {
	return t.HasEnded() && t.Status != "" && t.Status != reducer.Completed && t.Status != reducer.Awaiting
}

// History is what an agent's events, in order, say of its turns and of the delivery of each message. The zero value is
// before the first event. Not for concurrent use.
type History struct {
	list       []*Turn          // in the order in which they became known
	bySeq      map[uint64]*Turn // the turns in state, by their reducer.Turn.Seq
	deliveries map[wire.ID]*Delivery
	waiting    []*Delivery // received for a turn that has not begun yet
	typing     []*Delivery // being typed, and no turn has begun since
	handed     []*Delivery // those without a turn, or that were, since a program began or ended
	state      reducer.State
}

// Of folds events, in order.
func Of(events []wire.Event) *History {
	h := &History{}
	for i := range events {
		h.Apply(&events[i])
	}
	return h
}

// Turns are the turns, oldest first: the newest limit, or with 0 all.
func (h *History) Turns(limit int) []Turn {
	out := []Turn{} // in JSON none is [], not null
	for i := range h.list {
		if limit == 0 || i >= len(h.list)-limit {
			out = append(out, *h.list[i])
		}
	}
	return out
}

// State is the agent's state after the newest applied event. It belongs to the History.
func (h *History) State() *reducer.State { return &h.state }

// Seq is the sequence number of the newest applied event.
func (h *History) Seq() uint64 { return h.state.Seq }

// Apply applies the next event.
func (h *History) Apply(e *wire.Event) {
	used := h.state.Usage
	h.state.Apply(e)
	h.updateTurns(e)
	if h.state.Usage != used {
		h.addUsage(e, used)
	}
	if e.Kind == wire.SessionStart {
		h.addLoaded(e)
	}
	if slices.Contains(contentKinds, e.Kind) { // to look for the turn of each event would take long
		if turn := h.turnOf(e.Body()); turn != nil {
			turn.To = e.Seq
			if e.Kind == wire.TurnCompleted && turn.Status == "" {
				turn.endLate(e)
			}
		}
	}
	h.updateDeliveries(e)
}

// addUsage adds to a turn what an event tells that it has used. before is what was told until then.
func (h *History) addUsage(e *wire.Event, before *reducer.Usage) {
	more := h.state.Used()
	if before != nil {
		more = more.Minus(before.Figures)
	}
	turn := h.turnOf(e.Body())
	if turn == nil || more == (reducer.Figures{}) {
		return
	}
	if turn.Usage != nil {
		more = more.Plus(*turn.Usage)
	}
	turn.Usage = &more
}

// addLoaded adds the turns of a session that was loaded, as the older ACP records them: those that are not known. How they
// ended it does not say.
func (h *History) addLoaded(e *wire.Event) {
	for _, t := range loadedTurns(e) {
		isKnown := func(other *Turn) bool { return other.ID == t.ID && other.Session == e.Session }
		if slices.ContainsFunc(h.list, isKnown) {
			continue
		}
		at := timeOr(t.Timestamp, e.At)
		loaded := &Turn{ID: t.ID, Session: e.Session, Began: moment(at), Ended: moment(at), From: e.Seq, To: e.Seq}
		loaded.BeganBy, loaded.EndedBy = Event{e.Seq, at}, Event{e.Seq, at}
		h.list = append(h.list, loaded)
	}
}

// updateTurns follows the turns in the reducer's state after an event.
func (h *History) updateTurns(e *wire.Event) {
	bySeq := map[uint64]*Turn{}
	for current := range h.state.Sessions() {
		turn := h.bySeq[current.Turn.Seq]
		if turn == nil && current.Turn.Seq > 0 && (current.Turn.IsOpen() || current.End() != nil) {
			turn = &Turn{From: e.Seq, To: e.Seq}
			h.list = append(h.list, turn)
		}
		if turn != nil {
			bySeq[current.Turn.Seq] = turn
			if turn.update(e, current) {
				h.placeWaiting(turn, turn.BeganBy.Seq == e.Seq)
			}
		}
	}
	for seq, turn := range h.bySeq {
		if bySeq[seq] != nil || turn.HasEnded() {
			continue
		}
		// Another turn or program has replaced it in the state. A session may still know how it ended.
		turn.EndedBy, turn.Status = Event{e.Seq, e.At}, ""
		for s := range h.state.Sessions() {
			if s.Last != nil && s.Last.ID == turn.ID {
				turn.end(e, s.Last)
			}
		}
	}
	h.bySeq = bySeq
}

// Is reports whether the turn has that id, or had it before a hook gave it another one.
func (t *Turn) Is(id string) bool { return t.ID == id || slices.Contains(t.names, id) }

// update reports whether the turn has begun, or got its name, with the event.
func (t *Turn) update(e *wire.Event, current *reducer.Session) (isNew bool) {
	isNew = t.ID != current.Turn.ID || t.Session != current.ID
	if t.ID != "" && t.ID != current.Turn.ID {
		t.names = append(t.names, t.ID)
	}
	t.ID, t.Session = current.Turn.ID, current.ID
	if !current.Turn.IsOpen() {
		t.end(e, current.End())
		return isNew
	}
	if !t.BeganBy.Exists() {
		t.BeganBy, t.Began = Event{e.Seq, current.Turn.Began}, moment(current.Turn.Began)
	}
	// An event may reopen a turn that had ended.
	t.Status, t.Error, t.Ended, t.EndedBy, t.DurationMS = Open, "", nil, Event{}, 0
	return isNew
}

// end ends the turn; last is nil while it is unknown how.
func (t *Turn) end(e *wire.Event, last *reducer.Last) {
	if !t.EndedBy.Exists() {
		t.EndedBy, t.Ended, t.Status, t.IsSeen = Event{e.Seq, e.At}, moment(e.At), "", e.Kind == wire.TurnCompleted && e.Source == wire.SourcePTY
	}
	if last != nil {
		t.Status, t.Error, t.Ended, t.DurationMS = last.Status, last.Error, moment(last.At), last.DurationMS
	}
	if t.DurationMS == 0 && t.Began != nil && t.Ended != nil {
		t.DurationMS = max(0, t.Ended.Sub(*t.Began).Milliseconds())
	}
}

// endLate ends the turn by an event that came when another turn was current, and so did not change the state.
func (t *Turn) endLate(e *wire.Event) {
	var s reducer.State
	s.Apply(e)
	if last := s.Session().Last; last != nil {
		t.EndedBy = Event{}
		t.end(e, last)
	}
}

// turnOf returns the turn that an event names, else the newest one of its session.
func (h *History) turnOf(b wire.Body) *Turn {
	id, sessionID := b.Text("turn_id"), b.Text("session")
	if id == "" && sessionID == "" {
		sessionID = h.state.Session().ID
	}
	for _, turn := range slices.Backward(h.list) {
		isInSession := turn.Session == sessionID || id != "" && (sessionID == "" || turn.Session == "")
		if isInSession && (id == "" || turn.ID == id) {
			return turn
		}
	}
	return nil
}

// moment is t, nil without a time.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

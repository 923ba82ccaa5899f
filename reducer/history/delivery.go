package history

import (
	"cmp"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Stage is a step of a message's delivery, with the evidence for it: stored, announced, read, turn_started, turn_done, acked,
// replied, or outcome, what the last ack says of the work.
type Stage struct {
	Name     string    `json:"stage"`
	At       time.Time `json:"at"`                // zero, in JSON null: not known
	Evidence string    `json:"evidence"`          // "", in JSON null: there is none, which is not "no"
	Outcome  string    `json:"outcome,omitempty"` // of the stage outcome: done, blocked or declined
	Text     string    `json:"text,omitempty"`    // of the ack or the reply; how the turn ended, if it was cut short
	Host     wire.Name `json:"host,omitempty"`    // the other host where it was reached
}

// MarshalJSON writes the stage.
func (s Stage) MarshalJSON() ([]byte, error) {
	out := struct {
		Name     string     `json:"stage"`
		At       *time.Time `json:"at"`
		Evidence *string    `json:"evidence"`
		Outcome  string     `json:"outcome,omitempty"`
		Text     string     `json:"text,omitempty"`
		Host     wire.Name  `json:"host,omitempty"`
	}{Name: s.Name, Outcome: s.Outcome, Text: s.Text, Host: s.Host}
	if !s.At.IsZero() {
		out.At = new(s.At.UTC())
	}
	if s.Evidence != "" {
		out.Evidence = &s.Evidence
	}
	return wire.Marshal(out)
}

// Answer is the answer to a question: a reply, or what the turn said into which the question went.
type Answer struct {
	ID      wire.ID       // of the question; "": it was not sent
	From    wire.Address  // who has answered
	Status  string        // replied, or how the turn ended: completed, interrupted, failed; "": there is none yet
	Text    string        // of the reply, or of the turn; "": not known
	Turn    string        // the turn's id; "": not known
	Took    time.Duration // since the question was sent
	Message *wire.Message // the reply; nil: the turn ended without one
}

// Delivery is the delivery of a message to one recipient, as far as the recipient's events show it. History updates it.
type Delivery struct {
	ID wire.ID

	Announced, Read, Acked Event
	Failed                 Event // when typing it in last failed
	FailedWhy              string
	Turn                   *Turn // the one whose prompt it was in, or into which it was put: known once it is received; nil: none yet

	IsHanded        bool // to its program, as far as the events say
	IsOnlyAnnounced bool // by a typed line that asks to call atm read

	hasProgramEnded bool // after the handover and before a turn began
	isBeingTyped    bool
	isReceived      bool
	into            *Turn   // the one into which a hook's answer put it, or that began while it was typed
	session, turnID string  // where it was received; "": that is not said
	placed          []*Turn // all turns that list it
}

var deliveryKinds = []string{
	wire.EventAnnounced, wire.EventRead, wire.EventAcked, wire.EventUnread,
	wire.EventInjecting, wire.EventInjected, wire.EventInjectionFailed,
}

// Delivery returns the delivery of a message. Later events change it.
func (h *History) Delivery(id wire.ID) *Delivery {
	if h.deliveries == nil {
		h.deliveries = map[wire.ID]*Delivery{}
	}
	if h.deliveries[id] == nil {
		h.deliveries[id] = &Delivery{ID: id}
	}
	return h.deliveries[id]
}

// WasCutShort reports whether the message will not be answered: its turn was cut short, or none began before the
// program ended.
func (d *Delivery) WasCutShort() bool { return d.hasProgramEnded || d.Turn.WasCutShort() }

// isWaiting reports whether the message was received for a turn that has not begun yet: its prompt is told before that.
func (d *Delivery) isWaiting() bool { return d.isReceived && d.Turn == nil }

// updateDeliveries applies an event to the message that it is about. It gives up those for which no turn will come.
func (h *History) updateDeliveries(e *wire.Event) {
	if slices.Contains(deliveryKinds, e.Kind) {
		h.apply(h.Delivery(e.MessageID()), e)
	}
	if e.Kind == wire.Spawned || e.Kind == wire.Exited {
		for _, d := range h.handed {
			if d.IsHanded && d.Turn == nil && d.Announced.Exists() {
				d.hasProgramEnded, d.IsHanded, d.isReceived, d.into = true, false, false, nil
			}
		}
		h.handed, h.waiting, h.typing = nil, nil, nil
	}
}

// apply applies an event to the message that it is about. Whatever it was handed over for, it has a turn only when it was
// received: a busy program may keep it for its next one.
func (h *History) apply(d *Delivery, e *wire.Event) {
	d.apply(e)
	switch {
	case e.Kind == wire.EventAnnounced && e.TurnID != "":
		d.into = h.turnNamed(e.Session, e.TurnID)
	case d.isWaiting():
		turn, own := h.turnNamed(d.session, d.turnID), e.Kind == wire.EventInjected && e.TurnID != ""
		if turn == nil || d.into != nil && !own { // its runner's name for the turn may be out of use
			turn = d.into
		}
		if turn != nil {
			d.place(turn)
		}
	}
	if e.Kind == wire.EventRead && d.Turn == nil && e.Session == "" && e.TurnID == "" { // it was read between two turns
		d.IsHanded, d.isReceived = d.isBeingTyped, false
	}
	if d.isWaiting() {
		h.waiting = append(h.waiting, d)
	}
	if d.isBeingTyped {
		h.typing = append(h.typing, d)
	}
	if d.IsHanded && d.Turn == nil {
		h.handed = append(h.handed, d)
	}
}

// recentTurns is how many turns are looked through for one that an event names: it has just ended, if it is not open.
const recentTurns = 32

// turnNamed returns the newest turn with that id and session, as far as these are known, or without an id the open one; nil:
// there is none.
func (h *History) turnNamed(session, id string) *Turn {
	if id != "" {
		for _, turn := range slices.Backward(h.list[max(0, len(h.list)-recentTurns):]) {
			if turn.isNamed(session, id) {
				return turn
			}
		}
		return nil
	}
	for s := range h.state.Sessions() { // the shown one first
		if turn := h.bySeq[s.Turn.Seq]; turn != nil && s.Turn.IsOpen() && turn.isNamed(session, "") {
			return turn
		}
	}
	return nil
}

// placeWaiting puts the messages that were received for a turn into it, when it begins or gets its name. What is being typed
// when one begins may be received when that is over.
func (h *History) placeWaiting(turn *Turn, begins bool) {
	for _, d := range h.typing {
		if begins && d.isBeingTyped {
			d.into = turn
		}
	}
	if begins {
		h.typing = nil
	}
	h.waiting = slices.DeleteFunc(h.waiting, func(d *Delivery) bool {
		if d.isWaiting() && turn.isNamed(d.session, d.turnID) {
			d.place(turn)
		}
		return !d.isWaiting()
	})
}

func (d *Delivery) place(turn *Turn) {
	d.Turn = turn
	if !slices.Contains(d.placed, turn) {
		d.placed, turn.Messages = append(d.placed, turn), append(turn.Messages, d.ID)
	}
}

// isNamed reports whether the turn has that id and session, as far as these are known.
func (t *Turn) isNamed(session, id string) bool {
	return (session == "" || t.Session == "" || session == t.Session) && (id == "" || id == t.ID)
}

// Reset forgets how the message was handed over, after which it is unread again.
func (d *Delivery) Reset() { *d = Delivery{ID: d.ID, Acked: d.Acked, placed: d.placed} }

func (d *Delivery) apply(e *wire.Event) {
	ref := Event{e.Seq, e.At}
	isHandedAgain := e.Kind == wire.EventInjecting || e.Kind == wire.EventAnnounced || e.Kind == wire.EventRead && d.Read.Exists()
	if isHandedAgain && d.WasCutShort() {
		d.Reset() // into another turn
	}
	switch e.Kind {
	case wire.EventUnread:
		d.Reset()
	case wire.EventInjecting:
		d.IsHanded, d.isBeingTyped, d.into = true, true, nil
	case wire.EventAnnounced:
		d.Announced, d.Failed, d.hasProgramEnded = ref, Event{}, false
		d.IsHanded, d.isBeingTyped, d.into = true, false, nil
	case wire.EventInjected:
		d.Announced, d.Failed, d.hasProgramEnded = ref, Event{}, false
		d.IsHanded, d.isBeingTyped = true, false
		d.IsOnlyAnnounced = e.Field("as") != ""
		if !d.IsOnlyAnnounced {
			d.Read = ref // the whole message was typed in
		}
		d.receive(e)
	case wire.EventRead:
		d.Read, d.IsHanded, d.hasProgramEnded = ref, true, false
		d.receive(e)
	case wire.EventAcked:
		d.Acked = ref
	case wire.EventInjectionFailed:
		d.Failed, d.FailedWhy = ref, cmp.Or(e.Field(wire.FieldReason), e.Field("outcome"))
		d.IsHanded, d.isBeingTyped, d.into = d.Announced.Exists() || d.Turn != nil, false, nil
	}
}

// receive notes where the message was received, unless its turn is known.
func (d *Delivery) receive(e *wire.Event) {
	if d.Turn == nil {
		d.isReceived, d.session, d.turnID = true, e.Session, e.TurnID
	}
}

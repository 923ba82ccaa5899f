package history

import (
	"cmp"
	"slices"

	"github.com/agentteammail/atm/wire"
)

// Delivery is the delivery of a message to one recipient, as far as the recipient's events show it. History updates it.
type Delivery struct {
	ID wire.ID

	Announced, Read, Acked Event
	Failed                 Event // when typing it in last failed
	FailedWhy              string
	Turn                   *Turn // the turn that it was handed into; nil: unknown

	IsHanded        bool // to its program, as far as the events say
	IsOnlyAnnounced bool // by a typed line that asks to call atm read

	hasProgramEnded bool // after the handover and before a turn began
	isBeingTyped    bool
	turnID          string // the turn that it was handed over for; "": unknown
	session         string // the session that it was handed over to; "": unknown
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

func (h *History) updateDeliveries(e *wire.Event) {
	var about *Delivery
	if slices.Contains(deliveryKinds, e.Kind) {
		about = h.Delivery(e.MessageID())
		about.apply(e)
		if about.Turn == nil && about.IsHanded {
			h.unplaced = append(h.unplaced, about)
		}
	}
	for _, d := range h.unplaced {
		h.place(d, e, d == about)
	}
	h.unplaced = slices.DeleteFunc(h.unplaced, func(d *Delivery) bool { return d.Turn != nil || !d.IsHanded })
}

// place finds the open turn that a message was handed into: the one of the named turn id and session, or if neither was
// named the current or the next one. It gives up if no turn will come. isAbout: e is about the message.
func (h *History) place(d *Delivery, e *wire.Event, isAbout bool) {
	for _, current := range slices.Backward(h.state.Sessions) {
		turn := h.bySeq[current.Turn.Seq]
		if turn == nil || !current.Turn.IsOpen() {
			continue
		}
		isCurrent := isAbout && current.Turn.Seq == h.state.Session().Turn.Seq || turn.BeganBy.Seq == e.Seq
		if d.session == "" && d.turnID == "" && isCurrent || d.isFor(turn) {
			d.Turn, d.session = turn, turn.Session
			if !slices.Contains(turn.Messages, d.ID) {
				turn.Messages = append(turn.Messages, d.ID)
			}
			return
		}
	}
	if d.Announced.Exists() && (e.Kind == "spawned" || e.Kind == "exited") {
		d.hasProgramEnded, d.IsHanded = true, false
	}
	if isAbout && e.Kind == wire.EventRead && !d.Announced.Exists() && d.turnID == "" {
		d.IsHanded = d.isBeingTyped // it was read between two turns
	}
}

// isFor reports whether the message was handed over for this turn, by its id or its session.
func (d *Delivery) isFor(turn *Turn) bool {
	isNamed := d.session != "" || d.turnID != ""
	isOther := d.session != "" && d.session != turn.Session || d.turnID != "" && d.turnID != turn.ID
	return isNamed && !isOther
}

// Reset forgets how the message was handed over, after which it is unread again.
func (d *Delivery) Reset() { *d = Delivery{ID: d.ID, Acked: d.Acked} }

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
		d.IsHanded, d.isBeingTyped = true, true // the turn may begin before the runner sees that the text is in
	case wire.EventAnnounced, wire.EventInjected:
		d.Announced, d.Failed, d.hasProgramEnded = ref, Event{}, false
		d.IsHanded, d.isBeingTyped = true, false
		d.IsOnlyAnnounced = e.Kind == wire.EventInjected && e.Field("as") != ""
		if e.Kind == wire.EventInjected && !d.IsOnlyAnnounced {
			d.Read = ref // the whole message was typed in
		}
	case wire.EventRead:
		d.Read, d.IsHanded = ref, true
	case wire.EventAcked:
		d.Acked = ref
		return
	case wire.EventInjectionFailed:
		d.Failed, d.FailedWhy = ref, cmp.Or(e.Field("reason"), e.Field("outcome"))
		d.IsHanded, d.isBeingTyped = d.Announced.Exists() || d.Turn != nil, false
		return
	}
	if d.Turn == nil {
		d.session, d.turnID = cmp.Or(e.Session, d.session), cmp.Or(d.turnID, e.TurnID)
	}
}

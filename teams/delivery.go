package teams

import (
	"cmp"
	"slices"

	"github.com/agentteammail/atm/wire"
)

// Delivery is the delivery of a message to one recipient, as far as the recipient's events show it. Turns updates it.
type Delivery struct {
	ID wire.ID

	Announced, Read, Acked EventRef
	Failed                 EventRef // when typing it in last failed
	FailedWhy              string
	Turn                   *Turn // the turn that it was handed into; nil: unknown

	hasProgramEnded bool // after the handover and before a turn began
	isHanded        bool
	isBeingTyped    bool
	isOnlyAnnounced bool   // by a typed line that asks to call atm read
	turnID          string // the turn that it was handed over for; "": unknown
	session         string // the session that it was handed over to; "": unknown
}

var deliveryKinds = []string{
	wire.EventAnnounced, wire.EventRead, wire.EventAcked, wire.EventUnread,
	wire.EventInjecting, wire.EventInjected, wire.EventInjectionFailed,
}

// Delivery returns the delivery of a message. Later events change it.
func (ts *Turns) Delivery(id wire.ID) *Delivery {
	if ts.deliveries == nil {
		ts.deliveries = map[wire.ID]*Delivery{}
	}
	if ts.deliveries[id] == nil {
		ts.deliveries[id] = &Delivery{ID: id}
	}
	return ts.deliveries[id]
}

// wasCutShort reports whether the message will not be answered: its turn was cut short, or none began before the
// program ended.
func (d *Delivery) wasCutShort() bool { return d.hasProgramEnded || d.Turn.wasCutShort() }

func (ts *Turns) updateDeliveries(e *wire.Event) {
	var about *Delivery
	if slices.Contains(deliveryKinds, e.Kind) {
		about = ts.Delivery(e.MessageID())
		about.apply(e)
		if about.Turn == nil && about.isHanded {
			ts.unplaced = append(ts.unplaced, about)
		}
	}
	for _, d := range ts.unplaced {
		ts.place(d, e, d == about)
	}
	ts.unplaced = slices.DeleteFunc(ts.unplaced, func(d *Delivery) bool { return d.Turn != nil || !d.isHanded })
}

// place finds the open turn that a message was handed into: the one of the named turn id and session, or if neither was
// named the current or the next one. It gives up if no turn will come. isAbout: e is about the message.
func (ts *Turns) place(d *Delivery, e *wire.Event, isAbout bool) {
	for _, current := range slices.Backward(ts.state.Turns) {
		turn := ts.bySeq[current.TurnSeq]
		if turn == nil || !current.IsOpen() {
			continue
		}
		isCurrent := isAbout && current.TurnSeq == ts.state.Turn().TurnSeq || turn.BeganBy.Seq == e.Seq
		if d.session == "" && d.turnID == "" && isCurrent || d.isFor(turn) {
			d.Turn, d.session = turn, turn.Session
			if !slices.Contains(turn.Messages, d.ID) {
				turn.Messages = append(turn.Messages, d.ID)
			}
			return
		}
	}
	if d.Announced.Exists() && (e.Kind == "spawned" || e.Kind == "exited") {
		d.hasProgramEnded, d.isHanded = true, false
	}
	if isAbout && e.Kind == wire.EventRead && !d.Announced.Exists() && d.turnID == "" {
		d.isHanded = d.isBeingTyped // it was read between two turns
	}
}

// isFor reports whether the message was handed over for this turn, by its id or its session.
func (d *Delivery) isFor(turn *Turn) bool {
	isNamed := d.session != "" || d.turnID != ""
	isOther := d.session != "" && d.session != turn.Session || d.turnID != "" && d.turnID != turn.ID
	return isNamed && !isOther
}

// reset forgets how the message was handed over, after which it is unread again.
func (d *Delivery) reset() { *d = Delivery{ID: d.ID, Acked: d.Acked} }

func (d *Delivery) apply(e *wire.Event) {
	ref := EventRef{e.Seq, e.At}
	isHandedAgain := e.Kind == wire.EventInjecting || e.Kind == wire.EventAnnounced || e.Kind == wire.EventRead && d.Read.Exists()
	if isHandedAgain && d.wasCutShort() {
		d.reset() // into another turn
	}
	switch e.Kind {
	case wire.EventUnread:
		d.reset()
	case wire.EventInjecting:
		d.isHanded, d.isBeingTyped = true, true // the turn may begin before the runner sees that the text is in
	case wire.EventAnnounced, wire.EventInjected:
		d.Announced, d.Failed, d.hasProgramEnded = ref, EventRef{}, false
		d.isHanded, d.isBeingTyped = true, false
		d.isOnlyAnnounced = e.Kind == wire.EventInjected && e.Field("as") != ""
		if e.Kind == wire.EventInjected && !d.isOnlyAnnounced {
			d.Read = ref // the whole message was typed in
		}
	case wire.EventRead:
		d.Read, d.isHanded = ref, true
	case wire.EventAcked:
		d.Acked = ref
		return
	case wire.EventInjectionFailed:
		d.Failed, d.FailedWhy = ref, cmp.Or(e.Field("reason"), e.Field("outcome"))
		d.isHanded, d.isBeingTyped = d.Announced.Exists() || d.Turn != nil, false
		return
	}
	if d.Turn == nil {
		d.session, d.turnID = cmp.Or(e.Session, d.session), cmp.Or(d.turnID, e.TurnID)
	}
}

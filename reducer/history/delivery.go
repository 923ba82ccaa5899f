package history

import (
	"cmp"
	"iter"
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
	handover
	placed []*Turn // all turns that list it
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

// handover is for which turn a message was handed over: the one with this id and of this session, if these are known. Without
// both it is the current or the next one.
type handover struct{ session, turnID string }

func (d *Delivery) isWaiting() bool { return d.IsHanded && d.Turn == nil }

// updateDeliveries applies an event to the message that it is about, and finds the turns of those whose turn begins with it or
// gets its name. It gives up those for which no turn will come. A message that waits costs other events nothing.
func (h *History) updateDeliveries(e *wire.Event) {
	if slices.Contains(deliveryKinds, e.Kind) {
		h.apply(h.Delivery(e.MessageID()), e)
	}
	if len(h.waiting) > 0 {
		for turn := range h.openTurns() {
			of := handover{turn.Session, turn.ID}
			for _, k := range []handover{of, {of.session, ""}, {"", of.turnID}, {}} {
				if k != (handover{}) || turn.BeganBy.Seq == e.Seq {
					h.placeWaiting(k, turn)
				}
			}
			if turn.BeganBy.Seq == e.Seq {
				for k := range h.waiting {
					if h.isUnreported(k, turn) {
						h.placeWaiting(k, turn)
					}
				}
			}
		}
	}
	if e.Kind == wire.Spawned || e.Kind == wire.Exited {
		for _, d := range h.announced {
			if d.isWaiting() && d.Announced.Exists() {
				d.hasProgramEnded, d.IsHanded = true, false
			}
		}
		h.announced = nil
	}
}

// apply applies an event to the message that it is about. If the message was handed over, its turn is an open one, or comes
// later.
func (h *History) apply(d *Delivery, e *wire.Event) {
	d.apply(e)
	for turn := range h.openTurns() {
		isNext := turn == h.bySeq[h.state.Session().Turn.Seq] || turn.BeganBy.Seq == e.Seq
		if d.isWaiting() && (d.handover == handover{} && isNext || d.isFor(turn) || isNext && h.isUnreported(d.handover, turn)) {
			d.place(turn)
		}
	}
	if e.Kind == wire.EventRead && !d.Announced.Exists() && d.turnID == "" && d.Turn == nil {
		d.IsHanded = d.isBeingTyped // it was read between two turns
	}
	if d.isWaiting() {
		if h.waiting == nil {
			h.waiting = map[handover][]*Delivery{}
		}
		h.waiting[d.handover] = append(h.waiting[d.handover], d)
		h.announced = append(h.announced, d)
	}
}

// isUnreported reports whether a turn that only a screen reports may be of a session of which nobody reports anything: that
// of a program without hooks.
func (h *History) isUnreported(k handover, turn *Turn) bool {
	return k.session != "" && k.turnID == "" && turn.Session == "" && h.state.SessionOf(k.session) == nil
}

// openTurns are the turns of the sessions in the state that have not ended, that of the newest session first.
func (h *History) openTurns() iter.Seq[*Turn] {
	return func(yield func(*Turn) bool) {
		for _, s := range slices.Backward(h.state.Sessions) {
			if turn := h.bySeq[s.Turn.Seq]; turn != nil && s.Turn.IsOpen() && !yield(turn) {
				return
			}
		}
	}
}

// placeWaiting puts the messages that were handed over for a turn into it. Some in the list wait no longer, or for another one.
func (h *History) placeWaiting(k handover, turn *Turn) {
	for _, d := range h.waiting[k] {
		if d.isWaiting() && d.handover == k {
			d.place(turn)
		}
	}
	delete(h.waiting, k)
}

func (d *Delivery) place(turn *Turn) {
	d.Turn, d.session = turn, turn.Session
	if !slices.Contains(d.placed, turn) {
		d.placed, turn.Messages = append(d.placed, turn), append(turn.Messages, d.ID)
	}
}

// displace takes a message out of a turn that it was placed in by mistake.
func (d *Delivery) displace() {
	turn := d.Turn
	isThis := func(id wire.ID) bool { return id == d.ID }
	turn.Messages = slices.DeleteFunc(turn.Messages, isThis)
	d.placed = slices.DeleteFunc(d.placed, func(t *Turn) bool { return t == turn })
	d.Turn, d.session = nil, ""
}

// isFor reports whether the message was handed over for this turn, by its id or its session.
func (d *Delivery) isFor(turn *Turn) bool {
	isOther := d.session != "" && d.session != turn.Session || d.turnID != "" && d.turnID != turn.ID
	return d.handover != handover{} && !isOther
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
		d.IsHanded, d.isBeingTyped = true, true // the turn may begin before the runner sees that the text is in
		if d.Turn == nil {
			d.handover = handover{} // what a session was given before was in vain
		}
	case wire.EventAnnounced, wire.EventInjected:
		d.Announced, d.Failed, d.hasProgramEnded = ref, Event{}, false
		d.IsHanded, d.isBeingTyped = true, false
		d.IsOnlyAnnounced = e.Kind == wire.EventInjected && e.Field("as") != ""
		if d.Turn != nil && d.turnID == "" && e.TurnID != "" && d.Turn.ID != e.TurnID { // it was placed when its typing began
			d.displace()
		}
		if e.Kind == wire.EventInjected && !d.IsOnlyAnnounced {
			d.Read = ref // the whole message was typed in
		}
	case wire.EventRead:
		d.Read, d.IsHanded = ref, true
	case wire.EventAcked:
		d.Acked = ref
		return
	case wire.EventInjectionFailed:
		d.Failed, d.FailedWhy = ref, cmp.Or(e.Field(wire.FieldReason), e.Field("outcome"))
		d.IsHanded, d.isBeingTyped = d.Announced.Exists() || d.Turn != nil, false
		return
	}
	if d.Turn == nil {
		d.session, d.turnID = cmp.Or(e.Session, d.session), cmp.Or(d.turnID, e.TurnID)
	}
}

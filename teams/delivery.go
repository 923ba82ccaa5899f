package teams

import (
	"cmp"
	"slices"

	"github.com/agentteammail/atm/wire"
)

// Delivery is how far a message has got with its recipient, as the recipient's events
// tell: Turns makes it.
type Delivery struct {
	ID wire.ID

	Announced, Read, Acked EventRef
	Failed                 EventRef // the last time it could not be typed in
	FailedWhy              string
	ProgramEnded           EventRef // what it was handed to ended before a turn began
	Turn                   *Turn    // into which it was handed; nil: none is known

	isHanded        bool
	isBeingTyped    bool
	isOnlyAnnounced bool   // by a line that says atm read
	turnID          string // of the turn that it was handed into; "": not said
	session         string // of that; "": not said
}

// isDeliveryEvent reports whether events of a kind tell how far a message has got.
func isDeliveryEvent(kind string) bool {
	switch kind {
	case wire.EventAnnounced, wire.EventRead, wire.EventAcked, wire.EventAgain,
		wire.EventInjecting, wire.EventInjected, wire.EventInjectionFailed:
		return true
	}
	return false
}

func (d *Delivery) isAbout(e *wire.Event) bool {
	return isDeliveryEvent(e.Kind) && e.MessageID() == d.ID
}

// WasCutShort reports whether nobody will answer the message any more: its turn ended
// otherwise than by its completion, or none began before the program ended.
func (d *Delivery) WasCutShort() bool { return d.ProgramEnded.Exists() || d.Turn.WasCutShort() }

// reset forgets how the message was handed over: it is unread once more.
func (d *Delivery) reset() { *d = Delivery{ID: d.ID, Acked: d.Acked} }

// apply takes in an event about the message.
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
		d.Announced, d.Failed, d.ProgramEnded = here, EventRef{}, EventRef{}
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

// place notes the turn into which a message went that was handed over, where the event
// shows it, or that none will come.
func (d *Delivery) place(e *wire.Event, turn *Turn) {
	switch {
	case turn != nil:
		d.Turn, d.session = turn, turn.Session
		if !slices.Contains(turn.Messages, d.ID) {
			turn.Messages = append(turn.Messages, d.ID)
		}
	case e.Kind == "spawned" || e.Kind == "exited":
		if d.Announced.Exists() {
			d.ProgramEnded, d.isHanded = EventRef{e.Seq, e.At}, false
		}
	case e.Kind == wire.EventRead && d.isAbout(e) && !d.Announced.Exists() && d.turnID == "":
		d.isHanded = d.isBeingTyped // read between two turns, it belongs to none
	}
}

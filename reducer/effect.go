package reducer

import (
	"time"

	"github.com/agentteammail/atm/wire"
)

// Do is what a runner is to do.
type Do string

// The effects. Each is named once for the same thing, until something changes:
// the agent's word, or a failure that was reported. None that types (deliver,
// interrupt, remind) is named while the agent asks something or nothing is known
// of it.
//
// Deliver is for as long as the agent is idle. What the runner has not begun to
// type by then (the event injecting) it forgets, and it is named again at the
// next idle. What it has begun is its own until it says how that went (injected,
// injection_failed).
const (
	DeliverNow    Do = "deliver"         // hand these messages over, now, together, in this order
	DeliverAtIdle Do = "deliver_at_idle" // held until the turn is over
	Announce      Do = "announce"        // tell whoever looks at the agent that mail waits behind a dialog; no event
	Interrupt     Do = "interrupt"       // end the turn: this is urgent
	Ask           Do = "ask"             // put the permission request or question to the rules and people
	Remind        Do = "remind"          // an answer is overdue: say so to the agent
	Escalate      Do = "escalate"        // an answer is overdue: say so to the lead
)

// Effect is one thing to be done, by the runner and nobody else.
type Effect struct {
	Do  Do
	IDs []wire.ID // the messages, for all but Ask

	// Waiting is what to ask, whole, where a State keeps it cut. It comes again,
	// with the same Since, when more is known of the same dialog.
	Waiting *Waiting
}

// decide is the table of what waits in the inbox against the agent's word.
func (m *mail) decide(word Word, now time.Time) (effects []Effect) {
	if len(m.letters) == 0 {
		return nil
	}
	ids := map[Do][]wire.ID{}
	for i := range m.letters {
		l := &m.letters[i]
		if isDue := !l.Due.IsZero() && !now.Before(l.Due); isDue {
			if !l.isEscalated {
				l.isEscalated = true
				ids[Escalate] = append(ids[Escalate], l.ID)
			}
			if word == WordIdle && l.Read && !l.Never && !l.isReminded && m.changes >= l.remindAt {
				l.isReminded = true
				ids[Remind] = append(ids[Remind], l.ID)
			}
		}
		if do := l.effectOf(word, m.changes); do != "" {
			ids[do] = append(ids[do], l.ID)
			l.named, l.namedAt, l.hasFailed = do, m.changes, false
			l.hasInterrupted = l.hasInterrupted || do == Interrupt
		}
	}
	for _, do := range []Do{Escalate, Interrupt, DeliverNow, Remind, DeliverAtIdle, Announce} {
		if len(ids[do]) > 0 {
			effects = append(effects, Effect{Do: do, IDs: ids[do]})
		}
	}
	return effects
}

// effectOf is what is to be done about an unread message now; "" when nothing is,
// or it was named before. While the agent is starting, off, in error or unknown
// the message waits: nothing says that handing it over is safe.
func (l *letter) effectOf(word Word, changes int) Do {
	if l.Read || l.Never || l.isBeingTyped || !l.offered.IsZero() || !l.Held.IsZero() {
		return ""
	}
	isChanged := l.namedAt != changes
	var do Do
	switch {
	case l.hasFailed && !isChanged:
		// Once more, but only when the agent has done something since.
	case word == WordIdle:
		do = DeliverNow
	case word == WordBusy && l.Urgent && !l.hasInterrupted:
		do = Interrupt
	case word == WordBusy && (l.named != Interrupt || isChanged):
		do = DeliverAtIdle
	case word == WordBlocked:
		do = Announce
	}
	if do == l.named && !(do == DeliverNow && isChanged) {
		return ""
	}
	return do
}

package reducer

import (
	"time"

	"github.com/agentteammail/atm/wire"
)

// Do is what a runner is to do.
type Do string

// The effects. Each is named once for the same thing, until the agent's word changes. None that types
// (deliver, interrupt, remind) is named while the agent asks something or nothing is known of it.
//
// Deliver is for as long as the agent is idle. What the runner has not begun to type by then (the event
// injecting) it forgets, and it is named again at the next idle. What it has begun is its own until it
// says how that went (injected, injection_failed).
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

	// Waiting is what to ask, whole, where a State keeps it cut. It comes again, with the same Since,
	// when more is known of the same dialog.
	Waiting *Waiting
}

// decide is the table of what waits in the inbox against the agent's word.
func (m *mail) decide(word Word, now time.Time) (effects []Effect) {
	ids := map[Do][]wire.ID{}
	for i := range m.letters {
		l := &m.letters[i]
		if hasPassed(l.Due, now) {
			if !l.isEscalated {
				l.isEscalated = true
				ids[Escalate] = append(ids[Escalate], l.ID)
			}
			if word == WordIdle && l.Read && !l.Never && !l.isReminded && m.changes >= l.remindAt {
				l.isReminded = true
				ids[Remind] = append(ids[Remind], l.ID)
			}
		}
		if do := l.effectOf(word); do != "" && l.namedAt != m.changes+1 && (do != l.named || do == DeliverNow) {
			l.named, l.namedAt, l.hasInterrupted = do, m.changes+1, l.hasInterrupted || do == Interrupt
			ids[do] = append(ids[do], l.ID)
		}
	}
	for _, do := range []Do{Escalate, Interrupt, DeliverNow, Remind, DeliverAtIdle, Announce} {
		if len(ids[do]) > 0 {
			effects = append(effects, Effect{Do: do, IDs: ids[do]})
		}
	}
	return effects
}

// effectOf is what is to be done about an unread message now. While the agent is starting, off, in
// error or unknown the message waits: nothing says that handing it over is safe.
func (l *letter) effectOf(word Word) Do {
	switch {
	case l.Read || l.Never || l.isBeingTyped || !l.offered.IsZero() || !l.Held.IsZero():
	case word == WordIdle:
		return DeliverNow
	case word == WordBusy && l.Urgent && !l.hasInterrupted:
		return Interrupt
	case word == WordBusy:
		return DeliverAtIdle
	case word == WordBlocked:
		return Announce
	}
	return ""
}

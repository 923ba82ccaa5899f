package reducer

import (
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Do is what a runner is to do.
type Do string

// The effects. Each is named once for the same thing, until something changes:
// the agent's state, or a failure that was reported.
const (
	DeliverNow    Do = "deliver"         // hand these messages over, now, together, in this order
	DeliverAtIdle Do = "deliver_at_idle" // held until the turn is over
	Announce      Do = "announce"        // tell whoever looks at the agent that mail waits behind a dialog
	Interrupt     Do = "interrupt"       // end the turn: this is urgent
	Ask           Do = "ask"             // put the permission request or question to the rules and people
	Remind        Do = "remind"          // an answer is overdue: say so to the agent
	Escalate      Do = "escalate"        // an answer is overdue: say so to the lead
)

// Effect is one thing to be done, by the runner and nobody else.
type Effect struct {
	Do      Do
	IDs     []wire.ID // the messages, for all but Ask
	Waiting *Waiting  // for Ask
}

// Mail is what the reducer knows of a message in the inbox.
type Mail struct {
	ID      wire.ID
	Urgent  bool
	Expires time.Time // not handed over from then on; zero: never
	Due     time.Time // an answer is expected by then; zero: none
	Never   bool      // superseded, or another reason not to hand it over
	Read    bool      // no longer unread; only its answer is expected
}

// mail is what a State holds of the inbox: the directory's truth as the runner
// has told it, and what has been named already. It is no part of a snapshot.
type mail struct {
	waiting []letter // in order of arrival
	changes int      // of the agent's word
}

type letter struct {
	Mail
	told     Do  // the last effect but reminders that named it
	at       int // changes then
	failed   bool
	reminded bool
	raised   bool
}

func (m mail) clone() mail {
	m.waiting = slices.Clone(m.waiting)
	return m
}

func (m *mail) changed() { m.changes++ }

// Next is when a tick of the clock is wanted next: something is due then. Zero:
// nothing is.
func (s *State) Next() time.Time {
	var next time.Time
	for _, l := range s.mail.waiting {
		if !l.Due.IsZero() && !l.raised && (next.IsZero() || l.Due.Before(next)) {
			next = l.Due
		}
	}
	return next
}

// step takes in what an input says about mail, and names what is to be done.
func (m *mail) step(s *State, in Input, out []Effect) []Effect {
	if in.Event != nil && in.Event.Agent == s.Agent {
		switch in.Event.Kind {
		case wire.EventInjected:
			m.taken(in.Event.MessageID())
		case wire.EventInjectionFailed:
			m.each(in.Event.MessageID(), func(l *letter) { l.failed = true })
		case wire.EventWithdrawn:
			m.settled(in.Event.MessageID())
		}
	}
	if a := in.Arrived; a != nil {
		if known := m.each(a.ID, func(l *letter) {
			if l.Read && !a.Read { // put back
				l.told, l.failed, l.reminded = "", false, false
			}
			l.Mail = *a
		}); !known {
			m.waiting = append(m.waiting, letter{Mail: *a})
		}
	}
	m.taken(in.Taken)
	m.settled(in.Settled)
	if len(m.waiting) == 0 {
		return out
	}
	return m.decide(s.Turn().Word(), in.Now, out)
}

func (m *mail) each(id wire.ID, f func(*letter)) (found bool) {
	for i := range m.waiting {
		if id != "" && m.waiting[i].ID == id {
			f(&m.waiting[i])
			found = true
		}
	}
	return found
}

func (m *mail) taken(id wire.ID) {
	m.each(id, func(l *letter) { l.Read = true })
	m.waiting = slices.DeleteFunc(m.waiting, func(l letter) bool { return l.Read && l.Due.IsZero() })
}

func (m *mail) settled(id wire.ID) {
	m.each(id, func(l *letter) { l.Due = time.Time{} })
	m.waiting = slices.DeleteFunc(m.waiting, func(l letter) bool { return l.ID == id && l.Read })
}

// decide is the table of what waits against what the agent does.
func (m *mail) decide(word Word, now time.Time, out []Effect) []Effect {
	var hand, hold, announce, interrupt, remind, escalate []wire.ID
	for i := range m.waiting {
		l := &m.waiting[i]
		if !l.Due.IsZero() && !now.Before(l.Due) {
			if !l.raised {
				l.raised = true
				escalate = append(escalate, l.ID)
			}
			if word == WordIdle && l.Read && !l.reminded {
				l.reminded = true
				remind = append(remind, l.ID)
			}
		}
		if l.Read || l.Never || !l.Expires.IsZero() && !now.Before(l.Expires) {
			continue
		}
		if l.told == DeliverNow {
			// In the runner's hands; after a failure once more, but only when
			// the agent has done something since.
			if !l.failed || l.at == m.changes {
				continue
			}
			l.told, l.failed = "", false
		}
		tell := func(d Do, to *[]wire.ID) {
			if l.told != d || d == DeliverNow {
				l.told, l.at = d, m.changes
				*to = append(*to, l.ID)
			}
		}
		switch word {
		case WordIdle:
			tell(DeliverNow, &hand)
		case WordBusy:
			if l.Urgent && l.told != Interrupt {
				tell(Interrupt, &interrupt)
			} else if !l.Urgent {
				tell(DeliverAtIdle, &hold)
			}
		case WordBlocked:
			tell(Announce, &announce)
		case WordStarting, WordError, WordOff, WordUnknown:
			// It waits: the directory keeps it, and nothing is known that
			// would make handing it over safe.
		}
	}
	for _, e := range []Effect{
		{Do: Escalate, IDs: escalate}, {Do: Interrupt, IDs: interrupt}, {Do: DeliverNow, IDs: hand},
		{Do: Remind, IDs: remind}, {Do: DeliverAtIdle, IDs: hold}, {Do: Announce, IDs: announce},
	} {
		if len(e.IDs) > 0 {
			out = append(out, e)
		}
	}
	return out
}

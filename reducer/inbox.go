package reducer

import (
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// EffectKind is the kind of an effect.
type EffectKind string

// The effects. Those that type something are never returned while the agent asks something or is in an unknown state.
const (
	// Deliver: hand these messages over now, together and in this order, while the agent is idle. What the runner has not
	// begun to type by then (injecting) it forgets: the next idle names it again. What it has begun is its own until it
	// reports the outcome (injected, injection_failed).
	Deliver   EffectKind = "deliver"
	Interrupt EffectKind = "interrupt" // end the turn: these are urgent; once for each message
	Overdue   EffectKind = "overdue"   // answers are overdue: tell the lead, and remind the agent if it is idle
)

// Effect is one thing that the runner, and nobody else, has to do.
type Effect struct {
	Do  EffectKind
	IDs []wire.ID // of messages
}

// Mail is what the reducer knows of a message in the inbox.
type Mail struct {
	ID           wire.ID
	Urgent       bool
	ExpiresAt    time.Time // not handed over from then on; zero: never
	DueAt        time.Time // an answer is expected by then; zero: none
	IsSuppressed bool      // superseded, or for another reason not to be typed or reminded of
	IsRead       bool      // read; only its answer is expected
	LeasedUntil  time.Time // until when somebody holds it under a lease, as far as is known; zero: nobody does
}

// MaxMail is how many messages a State holds. Beyond that it accepts only urgent ones and those with a due time. The
// caller reports the rest again when HasRoom says so.
const MaxMail = 1024

// offerTimeout is how long a message that a hook handed over may stay unread before it counts as not handed over.
const offerTimeout = 10 * time.Minute

// message is a message that the runner has reported, and which effects were returned for it.
type message struct {
	Mail
	offered time.Time // when a hook handed it over; zero: none did
	session string    // of that hook

	isNamed        bool // Deliver has named it since the agent's word last changed
	isJustRead     bool // it was read since then
	isBeingTyped   bool
	hasInterrupted bool
	isEscalated    bool // Overdue has named it
	isReminded     bool // Overdue has named it while the agent was idle
}

// decide is the table of messages against the agent's word. Only idle and busy say that handing mail over is safe.
func (s *State) decide(now time.Time) []Effect {
	word := s.handoverWord()
	var overdue, interrupt, deliver []wire.ID
	for i := range s.inbox {
		m := &s.inbox[i]
		mayRemind := word == WordIdle && m.IsRead && !m.IsSuppressed && !m.isJustRead && !m.isReminded
		if hasPassed(m.DueAt, now) && (mayRemind || !m.isEscalated) {
			m.isEscalated, m.isReminded = true, mayRemind
			overdue = append(overdue, m.ID)
		}
		isHeld := m.isBeingTyped || !m.offered.IsZero() || !m.LeasedUntil.IsZero()
		switch {
		case m.IsRead || m.IsSuppressed || isHeld:
		case word == WordIdle && !m.isNamed:
			m.isNamed = true
			deliver = append(deliver, m.ID)
		case word == WordBusy && m.Urgent && !m.hasInterrupted:
			m.hasInterrupted = true
			interrupt = append(interrupt, m.ID)
		}
	}
	effects := []Effect{{Overdue, overdue}, {Interrupt, interrupt}, {Deliver, deliver}}
	return slices.DeleteFunc(effects, func(e Effect) bool { return len(e.IDs) == 0 })
}

// HasRoom reports whether the State accepts every message; see MaxMail.
func (s *State) HasRoom() bool { return len(s.inbox) < MaxMail }

// MayHandOver reports whether a message that an effect named has not expired or been superseded since.
func (s *State) MayHandOver(id wire.ID, now time.Time) bool {
	m := s.findMail(id)
	return m != nil && !m.IsSuppressed && !hasPassed(m.ExpiresAt, now)
}

// wordChanged lets Deliver name every message once more, and Overdue what was read before.
func (s *State) wordChanged() {
	for i := range s.inbox {
		s.inbox[i].isNamed, s.inbox[i].isJustRead = false, false
	}
}

func (s *State) applyToInbox(e *wire.Event, now time.Time) {
	for i := range s.inbox {
		m := &s.inbox[i]
		m.isBeingTyped = m.isBeingTyped && e.Kind != "exited"
		if e.Kind == "exited" || e.Kind == "session_end" && m.session == e.Session {
			m.endOffer()
		}
	}
	m := s.findMail(e.MessageID())
	if m == nil {
		return
	}
	switch e.Kind {
	case wire.EventInjecting, wire.EventInjectionFailed:
		m.isBeingTyped = e.Kind == wire.EventInjecting
	case wire.EventInjected, wire.EventRead:
		s.markRead(m)
	case wire.EventAcked:
		if e.Field("by") != "" { // the holder of a lease has finished it
			s.removeMail(m.ID)
		} else {
			s.markRead(m) // an ack is no answer
		}
	case wire.EventWithdrawn:
		s.removeMail(m.ID)
	case wire.EventReturned:
		m.endLease()
	case wire.EventAnnounced:
		if e.Source == "hook" {
			m.offered, m.session = now, e.Session
		}
	}
}

// putMail adds a message, or replaces what is known of it.
func (s *State) putMail(mail Mail, now time.Time) {
	m := s.findMail(mail.ID)
	switch {
	case hasPassed(mail.ExpiresAt, now):
	case m != nil:
		if m.IsRead || m.IsSuppressed { // it was put back, or the message that superseded it was withdrawn
			m.isNamed, m.hasInterrupted = false, false
		}
		if mail.LeasedUntil.IsZero() && !m.LeasedUntil.IsZero() {
			m.endLease()
		}
		m.Mail = mail
	case len(s.inbox) < MaxMail || mail.Urgent || !mail.DueAt.IsZero():
		s.inbox = append(s.inbox, message{Mail: mail})
	}
}

func hasPassed(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

func (s *State) findMail(id wire.ID) *message {
	if i := slices.IndexFunc(s.inbox, func(m message) bool { return m.ID == id }); i >= 0 {
		return &s.inbox[i]
	}
	return nil
}

// markRead keeps a read message only while an answer is expected.
func (s *State) markRead(m *message) {
	if m.DueAt.IsZero() {
		s.removeMail(m.ID)
		return
	}
	m.isJustRead = m.isJustRead || !m.IsRead
	m.IsRead, m.isBeingTyped, m.offered = true, false, time.Time{}
}

func (s *State) removeMail(id wire.ID) {
	s.inbox = slices.DeleteFunc(s.inbox, func(m message) bool { return m.ID == id })
}

// endOffer makes a message that a hook handed over, and that nobody read, deliverable again.
func (m *message) endOffer() {
	if !m.offered.IsZero() {
		m.offered, m.isNamed = time.Time{}, false
	}
}

func (m *message) endLease() { m.LeasedUntil, m.isNamed = time.Time{}, false }

// expireMail ends offers, leases and messages whose time is over.
func (s *State) expireMail(now time.Time) {
	for i := range s.inbox {
		m := &s.inbox[i]
		if now.Sub(m.offered).Abs() >= offerTimeout {
			m.endOffer()
		}
		if hasPassed(m.LeasedUntil, now) {
			m.endLease()
		}
	}
	s.inbox = slices.DeleteFunc(s.inbox, func(m message) bool { return hasPassed(m.ExpiresAt, now) && !m.isBeingTyped })
}

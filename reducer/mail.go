package reducer

import (
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Do is what a runner is to do.
type Do string

// The effects. None that types is named while the agent asks something, or while nothing is known of it.
const (
	// Deliver hands these messages over, now, together, in this order, as long as the agent is idle. What the runner
	// has not begun to type by then (the event injecting) it forgets, and it is named again at the next idle. What it
	// has begun is its own until it says how that went (injected, injection_failed).
	Deliver   Do = "deliver"
	Interrupt Do = "interrupt" // end the turn, since these are urgent; once for each
	Overdue   Do = "overdue"   // answers are overdue: tell the lead, and remind the agent if it is idle
)

// Effect is one thing to be done, by the runner and nobody else.
type Effect struct {
	Do  Do
	IDs []wire.ID // the messages
}

// Mail is what the reducer knows of a message in the inbox.
type Mail struct {
	ID      wire.ID
	Urgent  bool
	Expires time.Time // not handed over from then on; zero: never
	Due     time.Time // an answer is expected by then; zero: none
	Never   bool      // superseded, or another reason not to type it or to remind of it
	Read    bool      // no longer unread; only its answer is expected
	Held    time.Time // somebody holds it under a lease, until then as far as is known; zero: nobody
}

// MaxMail is how many messages a State holds, beyond which it takes in only urgent ones and those with
// a due time. Whoever tells of the rest when there is room again (HasRoom) misses none.
const MaxMail = 1024

// offerFor is how long after a hook handed a message over, without a word that it was read, it counts
// as not handed over.
const offerFor = 10 * time.Minute

// mail is what a State holds of the inbox: the directory's truth as the runner has told it, and which
// effects were named. It is no part of a snapshot.
type mail struct {
	letters []letter // in order of arrival
	changes int      // how often the word of the agent has changed
}

type letter struct {
	Mail
	deliveredAt int       // it was named in Deliver when the word had changed so often, plus one; 0: not yet
	remindAt    int       // the number of changes from which the agent may be reminded of it
	offered     time.Time // a hook handed it over then; zero: none did
	session     string    // of that hook

	isBeingTyped   bool
	hasInterrupted bool
	isEscalated    bool // its answer was named as overdue
	isReminded     bool // and again when the agent was idle
}

// decide is the table of what waits in the inbox against the agent's word. While the agent is starting,
// off, in error or unknown mail waits: nothing says that handing it over is safe.
func (m *mail) decide(word Word, now time.Time) (effects []Effect) {
	var overdue, interrupt, deliver []wire.ID
	for i := range m.letters {
		l := &m.letters[i]
		remind := word == WordIdle && l.Read && !l.Never && !l.isReminded && m.changes >= l.remindAt
		if hasPassed(l.Due, now) && (remind || !l.isEscalated) {
			l.isEscalated, l.isReminded = true, l.isReminded || remind
			overdue = append(overdue, l.ID)
		}
		switch {
		case l.Read || l.Never || l.isBeingTyped || !l.offered.IsZero() || !l.Held.IsZero():
		case word == WordIdle && l.deliveredAt != m.changes+1:
			l.deliveredAt = m.changes + 1
			deliver = append(deliver, l.ID)
		case word == WordBusy && l.Urgent && !l.hasInterrupted:
			l.hasInterrupted = true
			interrupt = append(interrupt, l.ID)
		}
	}
	for _, e := range []Effect{{Overdue, overdue}, {Interrupt, interrupt}, {Deliver, deliver}} {
		if len(e.IDs) > 0 {
			effects = append(effects, e)
		}
	}
	return effects
}

// HasRoom reports whether a State has room for more messages.
func (s *State) HasRoom() bool { return len(s.mail.letters) < MaxMail }

// MayHandOver reports whether a message that an effect has named may still be handed over: it has not
// expired meanwhile, and nothing replaces it.
func (s *State) MayHandOver(id wire.ID, now time.Time) bool {
	l := s.mail.find(id)
	return l != nil && !l.Never && !hasPassed(l.Expires, now)
}

// NextTick is when a tick of the clock is wanted next: something is due then, or to be offered again. Zero: nothing is.
func (s *State) NextTick() (next time.Time) {
	wantAt := func(t time.Time, isWanted bool) {
		if isWanted && !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, l := range s.mail.letters {
		wantAt(l.Due, !l.isEscalated)
		wantAt(l.Held, !l.Read)
		wantAt(l.offered.Add(offerFor), !l.Read && !l.offered.IsZero())
	}
	return next
}

func (m *mail) applyEvent(e *wire.Event, now time.Time) {
	switch e.Kind {
	case "spawned", "exited", "restarting":
		for i := range m.letters {
			m.letters[i].isBeingTyped = false // else into what is no more
			m.letters[i].endOffer()
		}
	case "session_end":
		for i := range m.letters {
			if l := &m.letters[i]; e.Session == "" || l.session == "" || l.session == e.Session {
				l.endOffer()
			}
		}
	}
	l := m.find(e.MessageID())
	if l == nil {
		return
	}
	switch e.Kind {
	case wire.EventInjecting:
		l.isBeingTyped = true
	case wire.EventInjectionFailed:
		l.isBeingTyped = false
	case wire.EventInjected, wire.EventRead:
		m.markRead(l)
	case wire.EventAcked:
		if e.Field("by") != "" {
			m.remove(l.ID) // who held it under a lease has finished it
		} else {
			m.markRead(l) // an ack is no answer
		}
	case wire.EventWithdrawn:
		m.remove(l.ID)
	case wire.EventReturned:
		l.endLease()
	case wire.EventAnnounced:
		if e.Source == "hook" {
			l.offered, l.session = now, e.Session
		}
	}
}

// add takes in a message that arrived, or what is known of it now.
func (m *mail) add(a Mail, now time.Time) {
	l := m.find(a.ID)
	switch {
	case a.ID == "" || hasPassed(a.Expires, now):
	case l != nil && l.Read && !a.Read: // it was put back
		*l = letter{Mail: a, isEscalated: l.isEscalated, isReminded: l.isReminded}
	case l != nil:
		if l.Never { // what replaced it may be withdrawn
			l.deliveredAt = 0
		}
		l.Mail = a
	case len(m.letters) < MaxMail || a.Urgent || !a.Due.IsZero():
		m.letters = append(m.letters, letter{Mail: a})
	}
}

func hasPassed(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

func (m *mail) find(id wire.ID) *letter {
	if i := slices.IndexFunc(m.letters, func(l letter) bool { return l.ID == id }); i >= 0 {
		return &m.letters[i]
	}
	return nil
}

// markRead notes that a message is no longer unread. It stays while an answer is expected.
func (m *mail) markRead(l *letter) {
	if l.Due.IsZero() {
		m.remove(l.ID)
		return
	}
	if !l.Read {
		l.remindAt = m.changes + 1
	}
	l.Read, l.isBeingTyped, l.offered = true, false, time.Time{}
}

func (m *mail) remove(id wire.ID) {
	m.letters = slices.DeleteFunc(m.letters, func(l letter) bool { return l.ID == id })
}

// endOffer offers anew what a hook has handed over and nobody read.
func (l *letter) endOffer() {
	if !l.offered.IsZero() {
		l.offered, l.deliveredAt = time.Time{}, 0
	}
}

func (l *letter) endLease() { l.Held, l.deliveredAt = time.Time{}, 0 }

// expire ends what the clock ends: the wait for a hook's session to read, leases as far as they are
// known, and messages, which nobody is to get any more.
func (m *mail) expire(now time.Time) {
	for i := range m.letters {
		l := &m.letters[i]
		if now.Sub(l.offered).Abs() >= offerFor {
			l.endOffer()
		}
		if hasPassed(l.Held, now) {
			l.endLease()
		}
	}
	m.letters = slices.DeleteFunc(m.letters, func(l letter) bool { return hasPassed(l.Expires, now) && !l.isBeingTyped })
}

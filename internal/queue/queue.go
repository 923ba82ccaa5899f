// Package queue decides what a runner does about its agent's unread mail: which messages to hand over now, for which to
// end the turn, and which answers are overdue. It is pure: no clock, no file, no goroutine.
//
//   - The mailbox owns the mail. A Queue is told of the messages in it, and knows of each only what it decides by.
//   - Mail is handed over while the agent is idle, and urgent mail ends a turn once. While it asks something, or nobody
//     knows what it does, nothing happens.
//   - What somebody else has taken is held: a lease, what was given beside the prompt, a text that is being typed.
//   - A message is named once until the agent's word changes. If it could not be typed it is named again then.
package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// To is what a runner has to do now, for messages by their ids, in order of arrival.
type To struct {
	Remind    []wire.ID // answers are overdue: tell the lead, and remind the agent if it is idle
	Silent    []wire.ID // nothing tells that the program has these, which it was given: take them back
	Interrupt []wire.ID // end the turn: these are urgent; once for each message

	// Deliver: hand these over together, while the agent is idle. What the runner has not begun to type by then
	// (injecting) it forgets: the next idle names it again. What it has begun is its own until it reports the outcome
	// (injected, injection_failed).
	Deliver []wire.ID
}

// Message is what a Queue knows of a message in the inbox.
type Message struct {
	ID          wire.ID
	Urgent      bool
	ExpiresAt   time.Time // not handed over from then on; zero: never
	DueAt       time.Time // an answer is expected by then; zero: none
	IsRead      bool      // read; only its answer is expected
	LeasedUntil time.Time // until when somebody holds it under a lease, as far as is known; zero: nobody does
	AtPrompt    bool      // it is given at the prompt only, in words of its own
	IsAside     bool      // it starts no turn: it is handed over with other mail
}

// Max is how many messages a Queue holds. Beyond that it accepts only urgent ones and those with a due time. The caller
// reports the rest again when HasRoom says so.
const Max = 1024

// Queue is the mail that a runner has been told of. The zero value is empty. Not for concurrent use.
type Queue struct {
	// Patience is how long the agent may be idle before what it was given beside its prompt counts as lost; 0: that of package
	// delivery.
	Patience time.Duration

	list  []message // in order of arrival
	word  reducer.Word
	since time.Time // when that has begun
}

// message is a message, and what was returned for it.
type message struct {
	Message
	offered time.Time // when it was given beside the prompt; zero: it was not
	session string    // to that

	isNamed        bool // Deliver has named it since the agent's word last changed
	isJustRead     bool // it was read since then
	isBeingTyped   bool
	hasInterrupted bool
	isEscalated    bool // Remind has named it
	isReminded     bool // Remind has named it while the agent was idle
}

// Next returns what to do now that the word of the agent's session is this one.
func (q *Queue) Next(word reducer.Word, now time.Time) (to To) {
	if word != q.word {
		q.word, q.since = word, now
		for i := range q.list {
			q.list[i].isNamed, q.list[i].isJustRead = false, false
		}
	}
	to.Silent = q.expire(now)
	for i := range q.list {
		m := &q.list[i]
		mayRemind := word == reducer.WordIdle && m.IsRead && !m.isJustRead && !m.isReminded
		if hasPassed(m.DueAt, now) && (mayRemind || !m.isEscalated) {
			m.isEscalated, m.isReminded = true, mayRemind
			to.Remind = append(to.Remind, m.ID)
		}
		switch {
		case !m.isFree():
		case word == reducer.WordIdle && !m.isNamed && (!m.IsAside || q.startsTurn()):
			m.isNamed = true
			to.Deliver = append(to.Deliver, m.ID)
		case word == reducer.WordBusy && m.Urgent && !m.hasInterrupted:
			m.hasInterrupted = true
			to.Interrupt = append(to.Interrupt, m.ID)
		}
	}
	return to
}

// startsTurn reports whether there is mail for which an idle agent begins a turn.
func (q *Queue) startsTurn() bool {
	return slices.ContainsFunc(q.list, func(m message) bool { return m.isFree() && !m.IsAside })
}

// Free returns the unread messages that nobody else has, in order of arrival.
func (q *Queue) Free() (free []Message) {
	for i := range q.list {
		if q.list[i].isFree() {
			free = append(free, q.list[i].Message)
		}
	}
	return free
}

// Hold notes that somebody else has a free message, as far as is known until then.
func (q *Queue) Hold(id wire.ID, until time.Time) {
	if m := q.find(id); m != nil && m.isFree() {
		m.LeasedUntil = until
	}
}

// IsAtPrompt reports whether a message is given at the prompt only.
func (q *Queue) IsAtPrompt(id wire.ID) bool {
	m := q.find(id)
	return m != nil && m.AtPrompt
}

func (m *message) isFree() bool {
	return !m.IsRead && !m.isBeingTyped && m.offered.IsZero() && m.LeasedUntil.IsZero()
}

// HasRoom reports whether the Queue accepts every message; see Max.
func (q *Queue) HasRoom() bool { return len(q.list) < Max }

// MayHandOver reports whether a message that Next named has not expired or been superseded since.
func (q *Queue) MayHandOver(id wire.ID, now time.Time) bool {
	m := q.find(id)
	return m != nil && !hasPassed(m.ExpiresAt, now)
}

// Apply applies an event of the agent that is not a repeat.
func (q *Queue) Apply(e *wire.Event, now time.Time) {
	for i := range q.list {
		m := &q.list[i]
		m.isBeingTyped = m.isBeingTyped && e.Kind != wire.Exited
		if e.Kind == wire.Exited || e.Kind == wire.SessionEnd && m.session == e.Session {
			m.endOffer()
		}
	}
	m := q.find(e.MessageID())
	if m == nil {
		return
	}
	switch e.Kind {
	case wire.EventInjecting, wire.EventInjectionFailed:
		m.isBeingTyped = e.Kind == wire.EventInjecting
	case wire.EventInjected, wire.EventRead:
		q.markRead(m)
	case wire.EventAcked:
		if e.Field(wire.FieldBy) != "" { // the holder of a lease has finished it
			q.Remove(m.ID)
		} else {
			q.markRead(m) // an ack is no answer
		}
	case wire.EventWithdrawn:
		q.Remove(m.ID)
	case wire.EventReturned:
		m.endLease()
	case wire.EventAnnounced:
		if e.Source == wire.SourceHook {
			m.offered, m.session = now, e.Session
		}
	}
}

// Put adds a message that is in the inbox, or replaces what is known of it.
func (q *Queue) Put(msg Message, now time.Time) {
	m := q.find(msg.ID)
	switch {
	case hasPassed(msg.ExpiresAt, now):
	case m != nil:
		if m.IsRead { // it was put back
			m.isNamed, m.hasInterrupted = false, false
		}
		if msg.LeasedUntil.IsZero() && !m.LeasedUntil.IsZero() {
			m.endLease()
		}
		m.Message = msg
	case q.HasRoom() || msg.Urgent || !msg.DueAt.IsZero():
		q.list = append(q.list, message{Message: msg})
	}
}

// Remove removes a message that was answered or withdrawn, or must not be handed over.
func (q *Queue) Remove(id wire.ID) {
	q.list = slices.DeleteFunc(q.list, func(m message) bool { return m.ID == id })
}

func hasPassed(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

func (q *Queue) find(id wire.ID) *message {
	if i := slices.IndexFunc(q.list, func(m message) bool { return m.ID == id }); i >= 0 {
		return &q.list[i]
	}
	return nil
}

// markRead keeps a read message only while an answer is expected.
func (q *Queue) markRead(m *message) {
	if m.DueAt.IsZero() {
		q.Remove(m.ID)
		return
	}
	m.isJustRead = m.isJustRead || !m.IsRead
	m.IsRead, m.isBeingTyped, m.offered = true, false, time.Time{}
}

// endOffer makes a message that was given beside the prompt, and that nobody read, deliverable again.
func (m *message) endOffer() {
	if !m.offered.IsZero() {
		m.offered, m.isNamed = time.Time{}, false
	}
}

func (m *message) endLease() { m.LeasedUntil, m.isNamed = time.Time{}, false }

// expire ends offers, leases and messages whose time is over, and returns the offers.
func (q *Queue) expire(now time.Time) (silent []wire.ID) {
	isOver := func(since time.Time) bool { return now.Sub(since).Abs() >= cmp.Or(q.Patience, delivery.Patience) }
	for i := range q.list {
		m := &q.list[i]
		if q.word == reducer.WordIdle && isOver(q.since) && !m.offered.IsZero() && isOver(m.offered) {
			m.endOffer()
			silent = append(silent, m.ID)
		}
		if hasPassed(m.LeasedUntil, now) {
			m.endLease()
		}
	}
	q.list = slices.DeleteFunc(q.list, func(m message) bool { return hasPassed(m.ExpiresAt, now) && !m.isBeingTyped })
	return silent
}

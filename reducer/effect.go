package reducer

import (
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Do is what a runner is to do.
type Do string

// The effects. Each is named once for the same thing, until something changes:
// the agent's state, or a failure that was reported. None that types (deliver,
// interrupt, remind) is named while the agent asks something or nothing is
// known of it.
//
// Deliver is for as long as the agent is idle: what the runner has not begun to
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

// Mail is what the reducer knows of a message in the inbox.
type Mail struct {
	ID      wire.ID
	Urgent  bool
	Expires time.Time // not handed over from then on; zero: never
	Due     time.Time // an answer is expected by then; zero: none
	Never   bool      // superseded, or another reason not to type it or to remind of it
	Read    bool      // no longer unread; only its answer is expected
	Held    time.Time // in somebody's hands under a lease, until then as far as is known; zero: in nobody's
}

// MaxMail is how many messages a State holds. Of more the urgent ones, those
// with a due time and then the ones told of first are kept: who tells of the
// rest when some were taken (Room) misses none.
const MaxMail = 1024

// offeredAgain is how long after a hook handed a message over, without a word
// that it was taken, it counts as not handed over.
const offeredAgain = 10 * time.Minute

// mail is what a State holds of the inbox: the directory's truth as the runner
// has told it, and what has been named already. It is no part of a snapshot.
type mail struct {
	waiting []letter // in order of arrival
	changes int      // of the agent's word
}

type letter struct {
	Mail
	told        Do  // the last effect but reminders that named it
	at          int // changes then
	typing      bool
	failed      bool
	announced   time.Time // through a hook
	by          string    // its session
	interrupted bool
	readAt      int  // changes when it was read; one has to follow before a reminder
	readHere    bool // and not before it was told of
	reminded    bool
	raised      bool
}

func (m mail) clone() mail {
	m.waiting = slices.Clone(m.waiting)
	return m
}

// Room reports whether a State has room for more messages.
func (s *State) Room() bool { return len(s.mail.waiting) < MaxMail }

// Next is when a tick of the clock is wanted next: something is due then, or to
// be offered again. Zero: nothing is.
func (s *State) Next() time.Time {
	var next time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for i := range s.mail.waiting {
		l := &s.mail.waiting[i]
		if !l.raised {
			sooner(l.Due)
		}
		if !l.Read {
			sooner(l.Held)
		}
		if !s.Room() && !l.typing {
			sooner(l.Expires)
		}
		if !l.Read && !l.announced.IsZero() {
			sooner(l.announced.Add(offeredAgain))
		}
	}
	return next
}

// step takes in what an input says about mail, and names what is to be done.
func (m *mail) step(word Word, in Input, out []Effect) []Effect {
	if in.Event != nil && len(m.waiting) > 0 {
		m.event(in.Event, in.Now)
	}
	if in.Arrived != nil && in.Arrived.ID != "" {
		m.arrived(in.Arrived, in.Now)
	}
	m.taken(in.Taken)
	m.settled(in.Settled)
	m.expire(in.Now)
	if len(m.waiting) == 0 {
		return out
	}
	return m.decide(word, in.Now, out)
}

func (m *mail) event(e *wire.Event, now time.Time) {
	id := func(f func(*letter)) {
		if l := m.find(e.MessageID()); l != nil {
			f(l)
		}
	}
	switch e.Kind {
	case wire.EventInjecting:
		id(func(l *letter) { l.typing, l.failed = true, false })
	case wire.EventInjectionFailed:
		id(func(l *letter) { l.typing, l.failed = false, true })
	case wire.EventInjected, wire.EventRead:
		m.taken(e.MessageID())
	case wire.EventAcked:
		if e.Field("by") != "" { // who held it under a lease has finished it
			m.settled(e.MessageID())
		} else { // that it has it, which is no answer
			m.taken(e.MessageID())
		}
	case wire.EventWithdrawn, wire.EventAside:
		m.settled(e.MessageID())
	case wire.EventTaken:
		id(func(l *letter) {
			if d, err := time.ParseDuration(e.Field("lease")); err == nil && d > 0 {
				l.Held = now.Add(d)
			}
		})
	case wire.EventReturned:
		id(func(l *letter) { l.Held, l.told = time.Time{}, "" })
	case wire.EventAnnounced:
		if e.Source == "hook" {
			if !e.At.IsZero() {
				now = e.At
			}
			id(func(l *letter) { l.announced, l.by = now, e.Session })
		}
	case "session_end":
		m.again(func(l *letter) bool { return e.Session == "" || l.by == "" || l.by == e.Session })
	case "spawned", "exited", "restarting":
		m.again(func(l *letter) bool {
			l.typing = false // into what is no more
			return true
		})
	}
}

// again offers anew what a hook has handed over and nobody took.
func (m *mail) again(which func(*letter) bool) {
	for i := range m.waiting {
		if l := &m.waiting[i]; which(l) && !l.announced.IsZero() {
			l.announced, l.told = time.Time{}, ""
		}
	}
}

// over reports whether nothing is to be done about a message any more.
func (a *Mail) over(now time.Time) bool { return !a.Expires.IsZero() && !now.Before(a.Expires) }

// expire forgets what has expired: it is not handed over any more, and nobody
// waits for its answer.
func (m *mail) expire(now time.Time) {
	gone := func(l letter) bool { return l.over(now) && !l.typing }
	if slices.ContainsFunc(m.waiting, gone) {
		m.waiting = slices.DeleteFunc(m.waiting, gone)
	}
}

func (m *mail) arrived(a *Mail, now time.Time) {
	if a.over(now) {
		return
	}
	if l := m.find(a.ID); l != nil {
		if l.Read && !a.Read { // put back
			*l = letter{raised: l.raised, reminded: l.reminded}
		}
		l.Mail = *a
		return
	}
	if len(m.waiting) >= MaxMail {
		last := -1
		for i := range m.waiting {
			if l := &m.waiting[i]; !l.Urgent && l.Due.IsZero() {
				last = i
			}
		}
		if last < 0 || !a.Urgent && a.Due.IsZero() {
			return
		}
		m.waiting = slices.Delete(m.waiting, last, last+1)
	}
	m.waiting = append(m.waiting, letter{Mail: *a})
}

func (m *mail) find(id wire.ID) *letter {
	for i := range m.waiting {
		if m.waiting[i].ID == id {
			return &m.waiting[i]
		}
	}
	return nil
}

func (m *mail) taken(id wire.ID) {
	if l := m.find(id); l != nil {
		if !l.Read {
			l.readAt, l.readHere = m.changes, true
		}
		l.Read, l.typing, l.announced = true, false, time.Time{}
		if l.Due.IsZero() {
			m.settled(id)
		}
	}
}

func (m *mail) settled(id wire.ID) {
	if id != "" {
		m.waiting = slices.DeleteFunc(m.waiting, func(l letter) bool { return l.ID == id })
	}
}

// decide is the table of what waits against what the agent does.
func (m *mail) decide(word Word, now time.Time, out []Effect) []Effect {
	var hand, hold, announce, interrupt, remind, escalate []wire.ID
	for i := range m.waiting {
		l := &m.waiting[i]
		held := l.held(now)
		if !l.Due.IsZero() && !now.Before(l.Due) {
			if !l.raised {
				l.raised = true
				escalate = append(escalate, l.ID)
			}
			if word == WordIdle && l.Read && !l.Never && !l.reminded && !(l.readHere && l.readAt == m.changes) {
				l.reminded = true
				remind = append(remind, l.ID)
			}
		}
		if l.Read || l.Never || l.typing || l.with(now) || held {
			continue
		}
		changed := l.at != m.changes
		tell := func(d Do, to *[]wire.ID) {
			if l.told != d || d == DeliverNow && changed {
				l.told, l.at, l.failed = d, m.changes, false
				*to = append(*to, l.ID)
			}
		}
		switch {
		case l.failed && !changed:
			// Once more, but only when the agent has done something since.
		case word == WordIdle:
			tell(DeliverNow, &hand)
		case word == WordBusy && l.Urgent && !l.interrupted:
			l.interrupted = true
			tell(Interrupt, &interrupt)
		case word == WordBusy && (l.told != Interrupt || changed):
			tell(DeliverAtIdle, &hold)
		case word == WordBlocked:
			tell(Announce, &announce)
		}
		// Starting, error, off, unknown: it waits. The directory keeps it, and
		// nothing is known that would make handing it over safe.
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

// held reports whether somebody holds the message under a lease. One that has
// run out, as far as is known, makes it anybody's: who then finds it renewed
// says so (Mail.Held).
func (l *letter) held(now time.Time) bool {
	if l.Held.IsZero() {
		return false
	}
	if now.Before(l.Held) {
		return true
	}
	l.Held, l.told = time.Time{}, ""
	return false
}

// with reports whether a hook has handed the message over and it may still be
// taken.
func (l *letter) with(now time.Time) bool {
	if l.announced.IsZero() {
		return false
	}
	if d := now.Sub(l.announced); -offeredAgain < d && d < offeredAgain {
		return true
	}
	l.announced, l.told = time.Time{}, ""
	return false
}

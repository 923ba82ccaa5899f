package teams

import (
	"slices"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Passage is a message's way through its recipient's events: into which turn
// it was handed, and how that ended. Feed it the recipient's events in order
// (Step); it is not for concurrent use.
type Passage struct {
	ID wire.ID

	Announced, Read, Acked Mark
	Failed                 Mark   // the last time it could not be typed in
	Outcome, Reason        string // of that
	Turn                   string // it was handed into; "": not known to be
	Began, Ended           Mark
	Status                 string // of the turn, once it ended
	Gone                   Mark   // the program that it was handed to ended before a turn began

	state   reducer.State
	opened  map[string]Mark // the turns that are open, by session
	handed  bool
	typing  bool   // somebody types it
	pointed bool   // it was announced by a line that says atm read, not handed over
	session string // into which it was handed; "": it was not said, until the turn has begun
}

// Mark is an event that is evidence of something: which, and when.
type Mark struct {
	Seq uint64
	At  time.Time
}

// Is reports whether there was one.
func (m Mark) Is() bool { return m.Seq > 0 }

// CutShort reports whether whoever it was handed to will never answer it: its
// turn ended otherwise than by its completion, or none began before the program
// ended.
func (p *Passage) CutShort() bool {
	return p.Gone.Is() || p.Ended.Is() && p.Status != "" && p.Status != reducer.Completed
}

// Again forgets how it was handed over: it is unread once more.
func (p *Passage) Again() {
	*p = Passage{ID: p.ID, Acked: p.Acked, state: p.state, opened: p.opened}
}

// Step takes in the next event. A turn is its session's: what another session
// of the agent's says begins and ends none of it.
func (p *Passage) Step(e *wire.Event) {
	before := slices.Clone(p.state.Turns)
	p.state.Apply(reducer.Input{Now: e.At, Event: e})
	p.open(e, before)
	about := e.MessageID() == p.ID
	if about {
		p.hand(e)
	}
	if !p.handed {
		return
	}
	if !p.Began.Is() {
		if p.Announced.Is() && (e.Kind == "spawned" || e.Kind == "exited") {
			p.Gone = Mark{e.Seq, e.At}
		}
		if about && p.Turn == "" && e.TurnID != "" {
			p.Turn = e.TurnID // which may begin with what comes
		}
		p.begin(e, about)
		if e.Kind == wire.EventRead && about && !p.Began.Is() && !p.Announced.Is() && p.Turn == "" {
			p.handed = p.typing // read between two turns, it belongs to none
		}
		return
	}
	now, was := turnOf(p.state.Turns, p.session), turnOf(before, p.session)
	switch {
	case now == nil && was != nil && was.Session == "": // its session has a name now
		p.session = e.Session
		now = turnOf(p.state.Turns, p.session)
	case now == nil: // forgotten
		return
	}
	if now == nil {
		return
	}
	open := now.Status == reducer.TurnBusy
	if was != nil && was.ID == p.Turn && now.ID != p.Turn && now.ID != "" && (open && now.Began.Equal(was.Began) || !open && was.IsGenerated && was.Status == reducer.TurnBusy) {
		p.Turn = now.ID // one that began without a name has got it
	}
	switch on := open && now.ID == p.Turn; {
	case on:
		p.Ended, p.Status = Mark{}, "" // also where it goes on after it was called over
	case !p.Ended.Is():
		p.Ended = Mark{e.Seq, e.At}
		if l := now.Last; l != nil && l.ID == p.Turn {
			p.Status = l.Status
		}
	}
}

// open notes which turns the event has begun.
func (p *Passage) open(e *wire.Event, before []reducer.Turn) {
	for i := range p.state.Turns {
		t := &p.state.Turns[i]
		if t.Status != reducer.TurnBusy {
			delete(p.opened, t.Session)
			continue
		}
		was := turnOf(before, t.Session)
		if was == nil && t.Session != "" { // named by this event, perhaps
			was = turnOf(before, "")
		}
		if was != nil && was.Status == reducer.TurnBusy && (was.ID == t.ID || was.Began.Equal(t.Began)) {
			if was.Session != t.Session {
				p.opened[t.Session] = p.opened[was.Session]
			}
			continue
		}
		if p.opened == nil {
			p.opened = map[string]Mark{}
		}
		p.opened[t.Session] = Mark{e.Seq, t.Began}
	}
}

// hand takes in an event about the message itself.
func (p *Passage) hand(e *wire.Event) {
	here := Mark{e.Seq, e.At}
	anew := e.Kind == wire.EventInjecting || e.Kind == wire.EventAnnounced || e.Kind == wire.EventRead && p.Read.Is()
	if anew && p.CutShort() || e.Kind == wire.EventAgain {
		p.Again() // it was put back: another turn counts
	}
	switch e.Kind {
	case wire.EventAnnounced, wire.EventInjected:
		p.Announced, p.handed, p.typing, p.Failed, p.Gone = here, true, false, Mark{}, Mark{}
		p.pointed = e.Kind == wire.EventInjected && e.Field("as") != ""
		if e.Kind == wire.EventInjected && !p.pointed {
			p.Read = here // what is typed in whole is moved with that
		}
	case wire.EventInjecting:
		p.handed, p.typing = true, true // its turn may begin before it is known to be in
	case wire.EventRead:
		p.Read, p.handed = here, true
	case wire.EventAcked:
		p.Acked = here
		return
	case wire.EventInjectionFailed:
		p.Failed, p.handed, p.typing = here, p.Announced.Is() || p.Began.Is(), false
		p.Outcome, p.Reason = e.Field("outcome"), e.Field("reason")
		if p.Reason == "" {
			p.Reason = p.Outcome
		}
		return
	}
	if e.Session != "" && !p.Began.Is() {
		p.session = e.Session
	}
}

// begin finds the turn into which the message went: the open one of its
// session, or the next. Where no session was named it is that of the session
// that is shown, or the next of any.
func (p *Passage) begin(e *wire.Event, about bool) {
	for i := len(p.state.Turns) - 1; i >= 0; i-- {
		t := &p.state.Turns[i]
		mark, open := p.opened[t.Session]
		switch {
		case !open, p.Turn != "" && p.Turn != t.ID:
		case p.session != "" && p.session != t.Session:
		case p.session == "" && p.Turn == "" && mark.Seq != e.Seq && !(about && i == len(p.state.Turns)-1):
		default:
			p.Turn, p.Began, p.session = t.ID, mark, t.Session
			return
		}
	}
}

// turnOf is the turn of a session, nil where there is none.
func turnOf(turns []reducer.Turn, session string) *reducer.Turn {
	for i := range turns {
		if turns[i].Session == session {
			return &turns[i]
		}
	}
	return nil
}

// Passage follows a message through a mailbox's events so far. More may be
// stepped from the event after the one it returns.
func (t *Team) Passage(box *mailbox.Box, m *wire.Message) (*Passage, uint64, error) {
	p := &Passage{ID: m.ID}
	last := uint64(0)
	events, err := box.Log().Tail(func(events []wire.Event) bool {
		return len(events) > 0 && events[0].At.Before(m.SentAt.Add(-24*time.Hour))
	})
	for i := range events {
		p.Step(&events[i])
		last = events[i].Seq
	}
	return p, last, err
}

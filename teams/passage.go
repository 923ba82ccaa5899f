package teams

import (
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
	Failed                 Mark // the last time it could not be typed in
	Reason                 string
	Turn                   string // it was handed into; "": not known to be
	Began, Ended           Mark
	Status                 string // of the turn, once it ended

	state  reducer.State
	opened Mark // the turn that is open
	handed bool
}

// Mark is an event that is evidence of something: which, and when.
type Mark struct {
	Seq uint64
	At  time.Time
}

// Is reports whether there was one.
func (m Mark) Is() bool { return m.Seq > 0 }

// Step takes in the next event.
func (p *Passage) Step(e *wire.Event) {
	was, wasOpen := p.state.Open("")
	began := p.state.Turn().Began
	p.state.Apply(reducer.Input{Now: e.At, Event: e})
	id, open := p.state.Open("")
	here := Mark{e.Seq, e.At}
	if open && (!wasOpen || id != was && !p.state.Turn().Began.Equal(began)) {
		p.opened = Mark{e.Seq, p.state.Turn().Began}
	}
	about := e.MessageID() == p.ID
	if about {
		switch e.Kind {
		case wire.EventAnnounced, wire.EventInjected:
			p.Announced, p.handed, p.Failed = here, true, Mark{}
		case wire.EventInjecting:
			p.handed = true // its turn may begin before it is known to be in
		case wire.EventRead:
			p.Read, p.handed = here, true
		case wire.EventAcked:
			p.Acked = here
		case wire.EventInjectionFailed:
			p.Failed, p.handed = here, p.Announced.Is() || p.Read.Is()
			p.Reason = e.Field("reason")
			if p.Reason == "" {
				p.Reason = e.Field("outcome")
			}
		}
	}
	if p.Ended.Is() || !p.handed {
		return
	}
	switch {
	case p.Turn != "" && p.Turn == was && open && id != was && p.state.Turn().Began.Equal(began):
		p.Turn = id // a turn that began without a name has got one
	case p.Turn == "" && about && e.TurnID != "" && (!open || id != e.TurnID):
		p.Turn = e.TurnID // it begins with what comes
	}
	switch {
	case open && (p.Turn == "" || p.Turn == id):
		if !p.Began.Is() {
			p.Turn, p.Began = id, p.opened
		}
	case p.Began.Is():
		p.Ended = here
		// (One that began without a name may get it with its end.)
		if l := p.state.Turn().Last; l != nil && (l.ID == p.Turn || wasOpen && was == p.Turn && l.At.Equal(e.At)) {
			p.Status = l.Status
		}
	case !open && wasOpen && was == p.Turn:
		p.Ended = here
	}
}

// Passage follows a message through a mailbox's events so far. More may be
// stepped from the event after the one it returns.
func (t *Team) Passage(box *mailbox.Box, m *wire.Message) (*Passage, uint64, error) {
	p := &Passage{ID: m.ID}
	last := uint64(0)
	events, err := box.TailUntil(func(events []wire.Event) bool {
		return len(events) > 0 && events[0].At.Before(m.SentAt.Add(-24*time.Hour))
	})
	for i := range events {
		p.Step(&events[i])
		last = events[i].Seq
	}
	return p, last, err
}

package reducer

import (
	"fmt"
	"time"
)

// Presence says whether an agent's program is there.
type Presence string

// The presences. Unknown is unknown: no evidence is none of absence.
const (
	Online          Presence = "online"
	Offline         Presence = "offline"
	PresenceUnknown Presence = "unknown"
)

// freshFor is how long an event is evidence that its agent is online.
const freshFor = 5 * time.Minute

// Evidence is what is known beside the events.
type Evidence struct {
	Now    time.Time
	Held   bool // the runner's lock is held
	Silent bool // and its socket did not answer
	Person bool // the roster says that it is a person
}

// View is what is true of an agent now, for a member's row.
type View struct {
	Word       Word
	Detail     string
	Since      time.Time // of the word; zero: no event said it
	Presence   Presence
	PresenceAt time.Time // of the evidence; zero: there is none
	Turn       Turn
	PID        int64 // of what runs; 0: not known to
}

// Look combines the fold with what is known beside it.
func (s *State) Look(ev Evidence) View {
	t := *s.Turn()
	v := View{Word: t.Word(), Detail: t.Detail, Since: t.Since, Turn: t, Presence: PresenceUnknown, PresenceAt: s.Heard}
	running := s.Run != nil && !s.Run.Over
	switch {
	case ev.Held:
		v.Presence, v.PresenceAt = Online, ev.Now
		if running {
			v.PID = s.Run.PID
		}
	case !s.Gone.IsZero():
		v.Presence, v.PresenceAt = Offline, s.Gone
	case !s.Heard.IsZero() && ev.Now.Sub(s.Heard) < freshFor:
		if !running { // else what its runner left may or may not still run
			v.Presence = Online
		}
	case running:
		v.Presence = Offline // its runner is gone without a word
	}
	switch {
	case ev.Person:
		v.Word, v.Detail, v.Since = WordPerson, "", time.Time{}
	case v.Presence == Offline && v.Word != WordOff:
		v.Word, v.Detail, v.Since = WordOff, "its runner is gone", v.PresenceAt
	case ev.Silent:
		v.Detail = "not answering"
	case v.Word == WordOff && v.Presence == Online && ev.Held:
		v.Word, v.Since = WordStarting, ev.Now // between two processes
	case v.Word == WordIdle && v.Detail == "" && t.Last != nil && t.Last.Status != Completed:
		v.Detail = fmt.Sprintf("last turn %s", t.Last.Status)
		if t.Last.Status == Failed && s.LastError != "" {
			v.Detail += ": " + clip(s.LastError, 80)
		}
	}
	return v
}

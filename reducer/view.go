package reducer

import "time"

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

// Details of an agent whose runner is there and does not answer, and of one whose program somebody ended.
const (
	NotAnswering = "not answering"
	stopped      = "stopped"
)

// Evidence is what is known beside the events.
type Evidence struct {
	Now      time.Time
	Held     bool   // the runner's lock is held
	Silent   bool   // and its socket did not answer
	Run      string // the run of that runner, as it has noted it; "": not known
	Person   bool   // the roster says that it is a person
	Stopping bool   // the runner says that it stops the program
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
	RunnerGone bool  // its runner was killed, and no event tells when
}

// Evaluate combines the fold with what is known beside it.
func (s *State) Evaluate(ev Evidence) View {
	t, isRunning := *s.Turn(), s.Run != nil && !s.Run.HasExited
	hasOther := isRunning && s.Run.Sessions > 1
	if hasOther && !ev.Held {
		t = s.Turns[len(s.Turns)-1] // what was open before was the killed runner's
	}
	v := View{Word: t.Word(), Detail: t.Detail, Since: t.Since, Turn: t}
	// The lock is let go only with the runner's life, and the terminal goes with it.
	hasLeft := isRunning && s.Run.IsLocked && !hasOther && !ev.Held
	v.Presence, v.PresenceAt = s.presence(ev, hasLeft)
	if ev.Held && isRunning {
		v.PID = s.Run.PID
	}
	switch {
	case ev.Person:
		v.Word, v.Detail, v.Since = WordPerson, "", time.Time{}
	case ev.Held && v.Word == WordOff:
		s.viewEnded(&v, ev)
	case ev.Held && ev.Silent:
		v.Detail = NotAnswering
	case hasLeft && v.Word != WordOff && v.Word != WordError:
		v.Word, v.Detail, v.Since, v.RunnerGone = WordOff, "runner gone", time.Time{}, true
	case v.Word == WordIdle && v.Detail == "":
		v.Detail = t.Last.trouble()
	}
	return v
}

func (s *State) presence(ev Evidence, hasLeft bool) (Presence, time.Time) {
	isFresh := !s.Heard.IsZero() && ev.Now.Sub(s.Heard).Abs() < freshFor
	switch {
	case ev.Held:
		return Online, ev.Now
	case !s.Gone.IsZero(): // that somebody reads its mail does not bring it back
		return Offline, s.Gone
	case hasLeft:
		return Offline, s.Heard
	case isFresh:
		return Online, s.Heard
	}
	return PresenceUnknown, s.Heard
}

// viewEnded is the view of a program that has ended while its runner is there.
func (s *State) viewEnded(v *View, ev Evidence) {
	wasStopped := s.Run != nil && s.Run.WasStopped && s.Run.ID == ev.Run
	switch {
	case ev.Stopping || wasStopped:
		v.Detail = stopped // and its runner is about to end
	case ev.Silent:
		v.Word, v.Detail, v.Since = WordUnknown, NotAnswering, time.Time{}
	default:
		v.Word, v.Detail, v.Since = WordStarting, "", s.Gone // between two programs
	}
}

// trouble is what was wrong with the last turn, "" for nothing.
func (l *Last) trouble() string {
	switch {
	case l == nil || l.Status == Completed || l.WasStopped:
		return ""
	case l.Error != "":
		return "last turn " + l.Status + ": " + l.Error
	}
	return "last turn " + l.Status
}

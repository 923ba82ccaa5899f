package reducer

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Presence says whether an agent's program is there.
type Presence string

// The presences. No evidence of presence is none of absence.
const (
	Online          Presence = "online"
	Offline         Presence = "offline"
	PresenceUnknown Presence = "unknown"
)

// freshFor is how long an event is evidence that its agent is online.
const freshFor = 5 * time.Minute

// NotAnswering is the detail, or the end of it, of an agent whose runner is there but does not answer.
const NotAnswering = "not answering"

// stopped is the detail of an agent whose program was stopped on request.
const stopped = "stopped"

// Evidence is what is known beside the events.
type Evidence struct {
	Now            time.Time
	IsRunnerLocked bool   // the runner's lock is held
	IsNotAnswering bool   // the lock is held, but the runner's socket did not answer
	RunID          string // the id of that runner's run; "": not known
	IsPerson       bool   // team.toml says that it is a person
	IsStopping     bool   // the runner says that it is stopping the program
}

// View is what is true of an agent now, as a team's listing shows it. It shares nothing with the State.
type View struct {
	Word       Word
	Detail     string
	Since      time.Time // of the word; zero: no event said it
	Until      time.Time // when its usage limit ends; zero: it is at none, or nobody says
	Presence   Presence
	PresenceAt time.Time // of the evidence; zero: there is none
	Session    Session   // the one that is shown
	PID        int64     // of the running program; 0: none is known
	RunnerGone bool      // its runner was killed; no event says when
}

// Evaluate combines the fold with what is known beside it.
func (s *State) Evaluate(ev Evidence) View {
	isRunning := s.isRun()
	hasOtherSession := isRunning && s.Run.Sessions > 1
	ses := *s.Session()
	switch {
	case hasOtherSession && !ev.IsRunnerLocked:
		ses = s.newest() // the earlier sessions were the killed runner's
	case ses.Activity == Error && !isRunning && s.Read.After(ses.Since): // somebody does its work since its start failed
		ses.Activity, ses.Detail, ses.Since = Unknown, "", s.OffSince
		if !s.OffSince.IsZero() {
			ses.Activity = Exited
		}
	case ses.Activity == Limited && !ses.Until.IsZero() && !ev.Now.Before(ses.Until):
		since := ses.Until
		ses.setActivity(Idle, "")
		ses.Since = since
	}
	if since, waits := s.waitsOnChannel(&ses); waits {
		ses.Activity, ses.Detail = s.Asked[0].activity()
		ses.Since = since
	}
	v := View{Word: ses.Word(), Detail: ses.Detail, Since: ses.Since, Until: ses.Until, Session: ses.clone()}
	// A runner releases its lock only when it ends, and its terminal ends with it.
	isRunnerGone := isRunning && s.Run.IsLocked && !hasOtherSession && !ev.IsRunnerLocked
	v.Presence, v.PresenceAt = s.presence(ev, isRunnerGone)
	if ev.IsRunnerLocked && isRunning {
		v.PID = s.Run.PID
	}
	switch {
	case ev.IsPerson:
		v.Word, v.Detail, v.Since = WordPerson, "", time.Time{}
	case ev.IsRunnerLocked:
		s.withRunner(&v, ev)
	case isRunnerGone && v.Word != WordOff && v.Word != WordError:
		v.Word, v.Detail, v.Since, v.RunnerGone = WordOff, "runner gone", time.Time{}, true
	}
	if isIdle := v.Word == WordIdle && v.Detail == ""; isIdle && s.worksElsewhere() {
		v.Detail = "another session works"
	} else if isIdle {
		v.Detail = ses.Last.problem()
	}
	return v
}

// newest returns the session that was heard from last.
func (s *State) newest() (newest Session) {
	for ses := range s.Sessions() {
		if ses.LastSeq >= newest.LastSeq {
			newest = *ses
		}
	}
	return newest
}

// clone returns a copy that stays as it is when the state goes on.
func (ses Session) clone() Session {
	ses.Requests = slices.Clone(ses.Requests)
	for i := range ses.Requests {
		ses.Requests[i].Options = bytes.Clone(ses.Requests[i].Options)
	}
	if ses.Last != nil {
		ses.Last = new(*ses.Last)
	}
	ses.EndedTurns = slices.Clone(ses.EndedTurns)
	ses.Calls, ses.EndedCalls = slices.Clone(ses.Calls), slices.Clone(ses.EndedCalls)
	return ses
}

// withRunner changes a view by what is known of the runner, which holds its lock.
func (s *State) withRunner(v *View, ev Evidence) {
	hasEnded := v.Word == WordOff // the program, but not its runner
	wasStopped := ev.IsStopping || s.Run != nil && s.Run.WasStopped && s.Run.ID == ev.RunID
	switch {
	case hasEnded && wasStopped:
		v.Detail = stopped // the runner is about to end
	case hasEnded && ev.IsNotAnswering:
		v.Word, v.Detail, v.Since = WordUnknown, NotAnswering, time.Time{}
	case hasEnded:
		v.Word, v.Detail, v.Since = WordStarting, "", s.OffSince // between two programs
	case ev.IsNotAnswering:
		v.Detail = strings.TrimPrefix(v.Detail+"; "+NotAnswering, "; ")
	}
}

func (s *State) presence(ev Evidence, isRunnerGone bool) (Presence, time.Time) {
	switch {
	case ev.IsRunnerLocked:
		return Online, ev.Now
	case !s.OffSince.IsZero(): // reading its mail does not bring it back
		return Offline, s.OffSince
	case isRunnerGone:
		return Offline, s.HeardAt
	case !s.HeardAt.IsZero() && ev.Now.Sub(s.HeardAt).Abs() < freshFor:
		return Online, s.HeardAt
	}
	return PresenceUnknown, s.HeardAt
}

// problem says what was wrong with the last turn, "" for nothing.
func (l *Last) problem() string {
	switch {
	case l == nil || l.WasStopped:
		return ""
	case l.Background > 0:
		return fmt.Sprint(l.Background, " in the background")
	case l.Status == Completed:
		return ""
	}
	if l.Error == "" {
		return "last turn " + l.Status
	}
	return "last turn " + l.Status + ": " + l.Error
}

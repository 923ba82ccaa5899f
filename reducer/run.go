package reducer

import (
	"slices"
	"strconv"
	"time"

	"github.com/agentteammail/atm/wire"
)

// Run is a process that a runner started for the agent, or is about to start again.
type Run struct {
	ID         string    `json:"run,omitempty"`    // the runner's
	PID        int64     `json:"pid,omitempty"`    // 0 also in the pause before a restart
	Started    time.Time `json:"started,omitzero"` // as reported, else the time of the report
	HasExited  bool      `json:"has_exited,omitempty"`
	WasStopped bool      `json:"was_stopped,omitempty"` // on request
	IsLocked   bool      `json:"is_locked,omitempty"`   // its runner holds a lock as long as it lives
	Sessions   int       `json:"sessions,omitempty"`    // begun since it started; only the first is surely its own

	// Conversation is the session with which its program would go on: the first that it began, or what followed that;
	// "": nobody has told which. A later session may be that of a program that it runs.
	Conversation string `json:"conversation,omitempty"`
}

// noteConversation notes the session that an event names if it is the program's own.
func (r *Run) noteConversation(e *event, isFirst bool) {
	isStart := e.kind == wire.SessionStart
	isNext := isStart && e.Text("source") == "clear"
	isFirst = isFirst && r.Sessions == 1
	isTurn := e.kind == wire.TurnStarted
	isUnknown := (isStart || isTurn) && r.Conversation == ""
	if e.session != "" && (isNext || isFirst || isUnknown) {
		r.Conversation = e.session
	}
}

// resumes reports whether a program runs that goes on with a session.
func (r *Run) resumes(session string) bool {
	return r != nil && !r.HasExited && r.Conversation == session
}

// endAllSessions ends all sessions with the program that a runner started, but those that began since the start of the
// next one (zero: there is none). status is how an open turn ended.
func (s *State) endAllSessions(e *event, detail, status string, next time.Time) {
	for i := range s.Sessions {
		ses := &s.Sessions[i]
		if ses.beganSince(next) {
			continue
		}
		ses.StartedAt = time.Time{} // it is not the next one's, even if the clock is set back
		if ses.Activity != Exited {
			ses.cutOff(e, status)
			ses.setActivity(Exited, detail)
			ses.HasStart, ses.Since, ses.Source = false, e.at, e.restsOn()
		}
	}
}

// beganSince reports whether the session began after a program had started then; zero: no program has.
func (ses *Session) beganSince(started time.Time) bool {
	return !started.IsZero() && !ses.StartedAt.Before(started)
}

// startProgram ends the sessions of earlier programs and begins an unnamed one, unless the program, which started then,
// has told of a session before its runner told of it. Zero: it has not started yet, or nobody says when.
func (s *State) startProgram(e *event, detail string, started time.Time) {
	shown := s.Session()
	s.endAllSessions(e, "", Failed, started)
	if i := s.findUnnamed(); i >= 0 {
		for _, id := range s.Sessions[i].EndedTurns {
			s.PastTurns = remember(s.PastTurns, id, maxEnded)
		}
	}
	if !s.takeSessions(started) {
		s.saveSession(e, newSession(e, shown, Starting, detail), "")
	}
}

// takeSessions notes the sessions that have begun since the program started as its own, and reports whether there are any.
func (s *State) takeSessions(started time.Time) bool {
	var first *Session // of those that go on
	n := 0
	for i := range s.Sessions {
		ses := &s.Sessions[i]
		if !ses.beganSince(started) {
			continue
		}
		n++
		if ses.IsReplaced {
			continue
		}
		if s.Run.Sessions++; first == nil || ses.FirstSeq < first.FirstSeq {
			first = ses
		}
	}
	if n == 0 {
		return false
	}
	if s.Run.Sessions = max(s.Run.Sessions, 1); first != nil {
		s.Run.Conversation = first.ID
	}
	s.Asked = slices.DeleteFunc(slices.Clone(s.Asked), func(w Waiting) bool { return w.Since.Before(started) })
	return true
}

// runnerKnowsBetter reports whether an event about the program of a live run does not come from its runner.
func (s *State) runnerKnowsBetter(e *event) bool {
	isRunners := e.source == wire.SourcePTY || e.source == wire.SourceACP
	return !isRunners && s.Run != nil && s.Run.IsLocked && !s.Run.HasExited
}

func (s *State) applySpawned(e *event) {
	r := &Run{
		ID: shortID(e.Text("run")), Started: e.at, IsLocked: e.source == wire.SourcePTY || e.source == wire.SourceACP,
		Conversation: shortID(e.Text("resumed")),
	}
	if pid, ok := e.Uint("pid"); ok && pid < 1<<31 {
		r.PID = int64(pid)
	}
	var started time.Time
	if started.UnmarshalText([]byte(e.Text("started"))) == nil { // which accepts only what a snapshot can hold
		r.Started = started
	}
	if s.Run.isSameAs(r.PID, started) {
		return // a repeat
	}
	if s.Run = r; r.Conversation == "" {
		s.Limit = nil // it has nothing to go on with
	}
	s.startProgram(e, "", started)
}

// isSameAs reports whether a report of a process that started then (zero: not known) is about this one.
func (r *Run) isSameAs(pid int64, started time.Time) bool {
	if r == nil || pid == 0 || r.PID != pid {
		return false
	}
	return r.Started.Equal(started) || started.IsZero() && !r.HasExited
}

func (s *State) applyRestarting(e *event) {
	if s.Run != nil {
		s.Run.HasExited, s.Run.PID = false, 0
	}
	detail := "restarting"
	if n, ok := e.Uint("attempt"); ok {
		detail = "restart " + strconv.FormatUint(n, 10)
	}
	s.startProgram(e, detail, time.Time{})
}

func (s *State) applyExited(e *event) {
	if s.Run == nil {
		s.Run = &Run{Started: e.at}
	}
	pid, ok := e.Uint("pid")
	isOther := ok && s.Run.PID != 0 && int64(pid) != s.Run.PID
	isLive := slices.ContainsFunc(s.Sessions, func(ses Session) bool { return ses.Activity != Exited })
	if isOther || s.Run.HasExited && !isLive {
		return // of an earlier process, or a repeat
	}
	reason := e.Text(wire.FieldReason)
	isWanted := reason != "" // a crash has none
	s.Run.HasExited, s.Run.WasStopped = true, isWanted && reason != "asked to restart"
	if len(s.Sessions) == 0 {
		s.saveSession(e, newSession(e, s.Session(), Unknown, ""), "")
	}
	detail, status := exitOf(e)
	switch {
	case s.Run.WasStopped:
		detail, status, s.Limit = stopped, Interrupted, nil
	case isWanted:
		detail, status = "", Interrupted
	}
	s.endAllSessions(e, detail, status, time.Time{})
	for i := range s.Sessions {
		ses := &s.Sessions[i]
		if s.Run.WasStopped { // also if the session's end came first
			ses.Detail = stopped
		}
		if isWanted && ses.Last != nil && ses.Last.IsCutOff {
			last := *ses.Last
			last.WasStopped = true
			ses.Last = &last
		}
	}
}

// exitOf says how a program exited, and how that ended its turn.
func exitOf(e *event) (detail, status string) {
	code, err := strconv.Atoi(string(e.Raw("code")))
	switch signal := wire.Clip(e.Text("signal"), maxID); {
	case signal != "" || err != nil:
		return signal, Failed
	case code == 0:
		return "", Interrupted // it ended by itself
	}
	return "exit " + strconv.Itoa(code), Failed
}

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

// isRun reports whether a runner runs the program, as far as events tell.
func (s *State) isRun() bool { return s.Run != nil && !s.Run.HasExited }

// endProgram ends all sessions. status is how an open turn ended.
func (s *State) endProgram(e *event, detail, status string) {
	s.Others = slices.Clone(s.Others)
	for i := range s.Others {
		s.Others[i].end(e, "", status)
	}
	if s.isKnown() {
		s.Shown.end(e, detail, status)
	}
}

// end ends the session with its program.
func (ses *Session) end(e *event, detail, status string) {
	if ses.Activity != Exited {
		ses.cutOff(e, status)
		ses.setActivity(Exited, detail)
		ses.HasStart, ses.Since, ses.Source = false, e.at, e.restsOn()
	}
	ses.StartedAt = time.Time{}
}

// startProgram ends the sessions of earlier programs and begins an unnamed one.
func (s *State) startProgram(e *event, detail string) {
	s.endProgram(e, "", Failed)
	s.store(e, newSession(e, s.Session(), Starting, detail), "", true)
}

// runnerKnowsBetter reports whether an event about the program of a live run does not come from its runner.
func (s *State) runnerKnowsBetter(e *event) bool {
	isRunners := e.source == wire.SourcePTY || e.source == wire.SourceACP
	return !isRunners && s.isRun() && s.Run.IsLocked
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
	told := s.toldSince(started)
	s.startProgram(e, "")
	if s.Asked = nil; told != nil {
		s.show(*told)
		r.Sessions, r.Conversation = 1, told.ID
	}
}

// toldSince returns the newest session that has begun since a program started then: it may tell of that before its runner tells
// of it. nil: there is none. Zero: nobody says when it started.
func (s *State) toldSince(started time.Time) (told *Session) {
	for ses := range s.Sessions() {
		isSince := !started.IsZero() && !ses.StartedAt.Before(started)
		if isSince && (told == nil || ses.LastSeq > told.LastSeq) {
			told = new(*ses)
		}
	}
	return told
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
	s.startProgram(e, detail)
}

func (s *State) applyExited(e *event) {
	if s.Run == nil {
		s.Run = &Run{Started: e.at}
	}
	pid, ok := e.Uint("pid")
	isOther := ok && s.Run.PID != 0 && int64(pid) != s.Run.PID
	if isOther || s.Run.HasExited && (!s.isKnown() || s.Shown.Activity == Exited) {
		return // of an earlier process, or a repeat
	}
	reason := e.Text(wire.FieldReason)
	isWanted := reason != "" // a crash has none
	s.Run.HasExited, s.Run.WasStopped = true, isWanted && reason != "asked to restart"
	if !s.isKnown() {
		s.store(e, newSession(e, s.Session(), Unknown, ""), "", true)
	}
	detail, status := exitOf(e)
	switch {
	case s.Run.WasStopped:
		detail, status, s.Limit = stopped, Interrupted, nil
	case isWanted:
		detail, status = "", Interrupted
	}
	s.endProgram(e, detail, status)
	if s.Run.WasStopped { // also if the session's end came first
		s.Shown.Detail = stopped
	}
	if last := s.Shown.Last; isWanted && last != nil && last.IsCutOff {
		wanted := *last
		wanted.WasStopped = true
		s.Shown.Last = &wanted
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

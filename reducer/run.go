package reducer

import (
	"slices"
	"strconv"
	"time"
)

// Run is a process that a runner started for the agent.
type Run struct {
	PID             int64     `json:"pid,omitempty"`
	Started         time.Time `json:"started,omitzero"` // as the runner said, else when it said so
	HasExited       bool      `json:"has_exited,omitempty"`
	IsLocked        bool      `json:"is_locked,omitempty"`         // its runner holds a lock as long as it lives
	HasSessionStart bool      `json:"has_session_start,omitempty"` // a session has begun in it
	HasOtherSession bool      `json:"has_other_session,omitempty"` // and another one since, perhaps outside of it
}

// applySpawned is a runner's word that it started a process.
func (s *State) applySpawned(e *event) {
	r := &Run{Started: e.at, IsLocked: e.source == "pty" || e.source == "acp"}
	if pid, ok := e.Uint("pid"); ok && pid < 1<<31 {
		r.PID = int64(pid)
	}
	started, err := time.Parse(time.RFC3339Nano, e.Text("started"))
	started = jsonTime(started)
	if err == nil && !started.IsZero() {
		r.Started = started
	}
	if old := s.Run; old != nil && r.PID != 0 && old.PID == r.PID && (old.Started.Equal(started) || started.IsZero() && !old.HasExited) {
		return // said before
	}
	s.Run = r
	s.startProgram(e, "")
}

// applyRestarting is a runner's word that it will start the program again.
func (s *State) applyRestarting(e *event) {
	if s.Run != nil {
		s.Run.HasExited = true
	}
	detail := "restarting"
	if n, ok := e.Uint("attempt"); ok {
		detail = "restart " + strconv.FormatUint(n, 10)
	}
	s.startProgram(e, detail)
}

// applyExited is a runner's word that the process has ended.
func (s *State) applyExited(e *event) {
	if s.Run == nil {
		s.Run = &Run{Started: e.at}
	}
	pid, ok := e.Uint("pid")
	isOther := ok && s.Run.PID != 0 && int64(pid) != s.Run.PID
	isLive := slices.ContainsFunc(s.Turns, func(t Turn) bool { return t.Activity != Exited })
	if isOther || s.Run.HasExited && !isLive {
		return // of an earlier process, or said before
	}
	s.Run.HasExited = true
	detail, status := clip(e.Text("signal"), maxName), Failed
	code, err := strconv.ParseInt(string(e.Raw("code")), 10, 64)
	switch {
	case detail != "" || err != nil:
	case code == 0:
		status = Interrupted // it ended itself
	default:
		detail = "exit " + strconv.FormatInt(code, 10)
	}
	if len(s.Turns) == 0 {
		s.keep(e, newTurn(e, s.Turn(), Unknown, ""), "")
	}
	s.endAllSessions(e, detail, status)
}

// noteSessionStart notes that a session has begun. The first one is the
// program's. Another may be of a program beside it, started by hand after the
// runner was killed: then the runner's death says nothing of what is heard.
func (r *Run) noteSessionStart(source string) {
	if r == nil || r.HasExited || source != "" && source != "startup" && source != "resume" {
		return
	}
	r.HasOtherSession = r.HasOtherSession || r.HasSessionStart
	r.HasSessionStart = true
}

package reducer

import (
	"slices"
	"strconv"
	"time"
)

// stopped is the detail of an agent whose program somebody ended.
const stopped = "stopped"

// stopTakes is how long before its program's end a session may say its own end.
const stopTakes = 10 * time.Second

// restart begins the detail of an agent whose program is to be started again.
const restart = "restart"

// wantsRestart is the reason of an end after which the runner starts the program again.
const wantsRestart = "asked to restart"

// Run is a process that a runner started for the agent.
type Run struct {
	ID              string    `json:"run,omitempty"` // of the runner's run
	PID             int64     `json:"pid,omitempty"`
	Started         time.Time `json:"started,omitzero"` // as the runner said, else when it said so
	HasExited       bool      `json:"has_exited,omitempty"`
	WasStopped      bool      `json:"was_stopped,omitempty"`       // somebody wanted it to end
	IsLocked        bool      `json:"is_locked,omitempty"`         // its runner holds a lock as long as it lives
	HasSessionStart bool      `json:"has_session_start,omitempty"` // a session has begun in it
	HasOtherSession bool      `json:"has_other_session,omitempty"` // and another one since, perhaps outside of it
}

// applySpawned is a runner's word that it started a process.
func (s *State) applySpawned(e *event) {
	r := &Run{ID: shortID(e.Text("run")), Started: e.at, IsLocked: e.source == "pty" || e.source == "acp"}
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
	detail := restart + "ing"
	if n, ok := e.Uint("attempt"); ok {
		detail = restart + " " + strconv.FormatUint(n, 10)
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
	reason := e.Text("reason") // of a wanted end; a crash has none
	s.Run.HasExited, s.Run.WasStopped = true, reason != "" && reason != wantsRestart
	detail, status := clip(e.Text("signal"), maxName), Failed
	code, err := strconv.ParseInt(string(e.Raw("code")), 10, 64)
	switch {
	case s.Run.WasStopped:
		detail, status = stopped, Interrupted
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
	if !s.Run.WasStopped {
		return
	}
	for i := range s.Turns {
		t := &s.Turns[i]
		t.Detail = stopped
		if t.Last != nil && t.Last.IsCutOff && e.at.Sub(t.Last.At) < stopTakes { // its session_end came first
			last := *t.Last
			last.WasStopped = true
			t.Last = &last
		}
	}
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

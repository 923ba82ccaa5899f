package reducer

import (
	"slices"
	"strconv"
	"time"

	"github.com/agentteammail/atm/wire"
)

// parallelFor is how long after it was heard a session with something open is taken to live beside one
// that began later.
const parallelFor = 5 * time.Minute

// Run is a process that a runner started for the agent, or is about to start again.
type Run struct {
	ID         string    `json:"run,omitempty"`    // of the runner's run
	PID        int64     `json:"pid,omitempty"`    // 0 also in the pause before a restart
	Started    time.Time `json:"started,omitzero"` // as the runner said, else when it said so
	HasExited  bool      `json:"has_exited,omitempty"`
	WasStopped bool      `json:"was_stopped,omitempty"` // somebody wanted it to end
	IsLocked   bool      `json:"is_locked,omitempty"`   // its runner holds a lock as long as it lives
	Sessions   int       `json:"sessions,omitempty"`    // that have begun since; only the first is surely its own
}

// isOver reports whether the session has ended, with its program or without.
func (t *Turn) isOver() bool { return t.Activity == Exited || t.IsReplaced }

// isEngaged reports whether the session is known to do something, or to ask.
func (t *Turn) isEngaged() bool { return !t.isOver() && (t.IsOpen() || len(t.Requests) > 0) }

// goesOn reports whether the session lives, as far as is known.
func (t *Turn) goesOn() bool { return !t.isOver() && !t.IsPresumedEnded }

// Turn is the session that is shown: the one heard last, but none that is idle while another works or
// asks, or that has ended while another goes on. Never nil.
func (s *State) Turn() *Turn {
	if len(s.Turns) == 0 {
		return &Turn{Status: TurnIdle, Activity: Unknown}
	}
	last := &s.Turns[len(s.Turns)-1]
	shown := last
	for i := range s.Turns[:len(s.Turns)-1] {
		t := &s.Turns[i]
		// One that was silent for longer may have been killed.
		isBeside := t.LastSeq > last.FirstSeq || last.HeardAt.Sub(t.HeardAt).Abs() < parallelFor
		switch {
		case !t.goesOn():
		case last.Activity == Idle && !last.IsOpen() && t.isEngaged() && isBeside:
			shown = t
		case last.Activity == Exited && (t.isEngaged() || !shown.isEngaged()):
			shown = t
		case last.IsReplaced && (t.isEngaged() || t.FirstSeq > last.FirstSeq): // its program went on before it ended
			shown = t
		}
	}
	return shown
}

// findSession is the place of a session's turn, -1 for one that is not known. An event that names no
// session belongs to the one that is shown.
func (s *State) findSession(session string) int {
	shown := s.Turn()
	for i := range s.Turns {
		if t := &s.Turns[i]; t.Session == session || session == "" && t == shown {
			return i
		}
	}
	return -1
}

// findUnnamed is the place of the turn whose program has not named its session yet, or -1. No other
// session lives beside it: it is there from the beginning, or since a runner started its program again.
func (s *State) findUnnamed() int {
	return slices.IndexFunc(s.Turns, func(t Turn) bool { return t.Session == "" })
}

// turnFor is a copy of the turn that an event is about, and its place: -1 for a new one, which is not kept yet, since a
// late event makes no session. A program that runs and has not named its session has named it now.
func (s *State) turnFor(e *event) (t Turn, i int) {
	if i = s.findSession(e.session); i >= 0 {
		return s.Turns[i], i
	}
	if i = s.findUnnamed(); i >= 0 && !s.Turns[i].isOver() {
		return s.Turns[i], i
	}
	return newTurn(e, s.Turn(), Unknown, ""), -1
}

// newTurn is the turn of a session that begins. How the last turn ended is known from the session that is shown.
func newTurn(e *event, shown *Turn, a Activity, detail string) Turn {
	return Turn{
		Session: e.session, Transport: shown.Transport, Last: shown.Last,
		Status: TurnIdle, Activity: a, Detail: detail, FirstSeq: e.seq,
	}
}

// rank orders turns by how much would be lost with them: those that are over, idle ones, those at work, those that ask.
func (t *Turn) rank() int {
	switch {
	case !t.goesOn():
		return 0
	case !t.isEngaged():
		return 1
	case len(t.Requests) == 0:
		return 2
	}
	return 3
}

// keep keeps the turn that an event was about as the one heard last. wordBefore is its word before the
// event. Of too many other turns the one of the lowest rank goes, of several the one that was silent longest.
func (s *State) keep(e *event, t Turn, wordBefore Word) {
	t.LastSeq, t.HeardAt, t.IsPresumedEnded = e.seq, e.at, false
	if t.Word() != wordBefore || t.Since.IsZero() {
		t.Since = e.at
	}
	if e.session != "" {
		t.Session = e.session
	}
	s.Turns = slices.DeleteFunc(s.Turns, func(o Turn) bool {
		return o.Session == t.Session || o.Session == "" // a program that had not named its session has this one
	})
	if len(s.Turns) >= maxTurns {
		lowest := slices.MinFunc(s.Turns, func(a, b Turn) int { return a.rank() - b.rank() })
		s.Turns = slices.DeleteFunc(s.Turns, func(t Turn) bool { return t.Session == lowest.Session })
	}
	s.Turns = append(s.Turns, t)
}

// endSession ends one session. The end of a session of which nothing was known is no news while another one is known.
func (s *State) endSession(e *event) {
	reason := e.Text("reason")
	isReplaced := reason == "clear" || reason == "resume" // its program goes on
	known := s.findSession(e.session)
	if known < 0 && len(s.Turns) > 0 ||
		known >= 0 && (s.Turns[known].Activity == Exited || isReplaced && s.Turns[known].IsReplaced) {
		return
	}
	t, _ := s.turnFor(e)
	before := t.Word()
	t.cutOff(e, Interrupted)
	t.setActivity(Exited, wire.Clip(reason, maxDetail))
	t.HasSessionStart = false
	if isReplaced {
		t.Activity, t.IsReplaced = Starting, true
	}
	s.keep(e, t, before)
	if isReplaced || s.Run != nil && !s.Run.HasExited {
		return
	}
	// A session that was silent while this one lived its whole life is presumed to have ended without a word, until it
	// is heard. One that asks has to be silent. While a runner's program runs it may be that program's.
	for i := range s.Turns {
		if o := &s.Turns[i]; len(o.Requests) == 0 && !o.isOver() && o.LastSeq <= t.FirstSeq {
			o.IsPresumedEnded = true
		}
	}
}

// endAllSessions ends every session with the program that a runner started: what is heard after is of
// the next one. status is how an open turn ended.
func (s *State) endAllSessions(e *event, detail, status string) {
	for i := range s.Turns {
		if t := &s.Turns[i]; t.Activity != Exited {
			t.cutOff(e, status)
			t.setActivity(Exited, detail)
			t.HasSessionStart, t.Since = false, e.at
		}
	}
}

// startProgram begins the life of a program: earlier sessions are over, and it has not said yet which
// session is its own.
func (s *State) startProgram(e *event, detail string) {
	shown := s.Turn()
	s.endAllSessions(e, "", Failed)
	if i := s.findUnnamed(); i >= 0 {
		for _, id := range s.Turns[i].Ended {
			s.PastTurns = remember(s.PastTurns, id, maxEnded)
		}
	}
	s.keep(e, newTurn(e, shown, Starting, detail), "")
}

func (s *State) applySpawned(e *event) {
	r := &Run{ID: shortID(e.Text("run")), Started: e.at, IsLocked: e.source == "pty" || e.source == "acp"}
	if pid, ok := e.Uint("pid"); ok && pid < 1<<31 {
		r.PID = int64(pid)
	}
	started, err := time.Parse(time.RFC3339Nano, e.Text("started"))
	if started = jsonTime(started); err == nil && !started.IsZero() {
		r.Started = started
	}
	if old := s.Run; old != nil && r.PID != 0 && old.PID == r.PID &&
		(old.Started.Equal(started) || started.IsZero() && !old.HasExited) {
		return // said before
	}
	s.Run = r
	s.startProgram(e, "")
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
	isLive := slices.ContainsFunc(s.Turns, func(t Turn) bool { return t.Activity != Exited })
	if isOther || s.Run.HasExited && !isLive {
		return // of an earlier process, or said before
	}
	reason := e.Text("reason")
	isWanted := reason != "" // a crash has none
	s.Run.HasExited, s.Run.WasStopped = true, isWanted && reason != "asked to restart"
	detail, status := wire.Clip(e.Text("signal"), maxID), Failed
	code, err := strconv.Atoi(string(e.Raw("code")))
	switch {
	case s.Run.WasStopped:
		detail, status = stopped, Interrupted
	case isWanted:
		detail, status = "", Interrupted
	case detail != "" || err != nil:
	case code == 0:
		status = Interrupted // it ended itself
	default:
		detail = "exit " + strconv.Itoa(code)
	}
	if len(s.Turns) == 0 {
		s.keep(e, newTurn(e, s.Turn(), Unknown, ""), "")
	}
	s.endAllSessions(e, detail, status)
	for i := range s.Turns {
		t := &s.Turns[i]
		if s.Run.WasStopped { // also where a session's end came first
			t.Detail = stopped
		}
		if isWanted && t.Last != nil && t.Last.IsCutOff {
			last := *t.Last
			last.WasStopped = true
			t.Last = &last
		}
	}
}

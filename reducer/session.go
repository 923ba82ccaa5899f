package reducer

import (
	"slices"
	"strconv"
	"time"

	"github.com/agentteammail/atm/wire"
)

// parallelFor is how long after its last event a session that is active counts as alive beside one that began later.
const parallelFor = 5 * time.Minute

// Run is a process that a runner started for the agent, or is about to start again.
type Run struct {
	ID         string    `json:"run,omitempty"`    // the runner's
	PID        int64     `json:"pid,omitempty"`    // 0 also in the pause before a restart
	Started    time.Time `json:"started,omitzero"` // as reported, else the time of the report
	HasExited  bool      `json:"has_exited,omitempty"`
	WasStopped bool      `json:"was_stopped,omitempty"` // on request
	IsLocked   bool      `json:"is_locked,omitempty"`   // its runner holds a lock as long as it lives
	Sessions   int       `json:"sessions,omitempty"`    // begun since it started; only the first is surely its own

	// Conversation is the session with which its program would go on: the first that it began, or what followed that. It
	// is Newest if nobody has told which. A later session may be that of a program that it runs.
	Conversation string `json:"conversation,omitempty"`
}

// Newest stands for the newest conversation in a directory, whose id is not known.
const Newest = "newest"

// noteConversation notes the session that an event names if it is the program's own.
func (r *Run) noteConversation(e *event, isFirst bool) {
	isStart := e.kind == "session_start"
	isNext := isStart && e.Text("source") == "clear"
	isFirst = isFirst && r.Sessions == 1
	isTurn := e.kind == wire.TurnStarted
	isUnknown := (isStart || isTurn) && (r.Conversation == "" || r.Conversation == Newest)
	switch {
	case e.session != "" && (isNext || isFirst || isUnknown):
		r.Conversation = e.session
	case e.session == "" && isTurn && isUnknown && r.Sessions == 0:
		r.Conversation = Newest
	}
}

// isOver reports whether the session has ended, with its program or without.
func (t *Turn) isOver() bool { return t.Activity == Exited || t.IsReplaced }

// isActive reports whether the session works or asks something.
func (t *Turn) isActive() bool { return t.IsOpen() || len(t.Requests) > 0 }

// Turn returns the session to show, never nil: the one heard from last, unless that has ended, or is idle while another
// works or asks.
func (s *State) Turn() *Turn {
	if len(s.Turns) == 0 {
		return &Turn{Status: TurnIdle, Activity: Unknown}
	}
	last := &s.Turns[len(s.Turns)-1]
	shown := last
	for i := range s.Turns[:len(s.Turns)-1] {
		t := &s.Turns[i]
		// One that was silent for longer may have been killed.
		isParallel := t.LastSeq > last.FirstSeq || last.HeardAt.Sub(t.HeardAt).Abs() < parallelFor
		switch {
		case t.isOver() || t.IsPresumedEnded:
		case last.Activity == Idle && t.isActive() && isParallel:
			shown = t
		case last.Activity == Exited && (t.isActive() || !shown.isActive()):
			shown = t
		case last.IsReplaced && (t.isActive() || t.FirstSeq > last.FirstSeq): // its program went on before it ended
			shown = t
		}
	}
	return shown
}

// findSession returns the index of a session, -1 if it is not known. "" is the session that is shown.
func (s *State) findSession(session string) int {
	shown := s.Turn()
	for i := range s.Turns {
		if t := &s.Turns[i]; t.Session == session || session == "" && t == shown {
			return i
		}
	}
	return -1
}

// findUnnamed returns the index of the session without a name, or -1. No other lives beside it: it begins with the log
// or with a program.
func (s *State) findUnnamed() int {
	return slices.IndexFunc(s.Turns, func(t Turn) bool { return t.Session == "" })
}

// turnFor returns a copy of the turn that an event is about, and its index. The id of an open request names its session. A session that no event has named takes the
// first name. A new turn has the index -1 and is not stored yet, since a late event makes no session.
func (s *State) turnFor(e *event) (t Turn, i int) {
	if id := e.idOf("id"); e.session == "" && id != "" {
		asks := func(w Waiting) bool { return w.ID == id }
		i = slices.IndexFunc(s.Turns, func(t Turn) bool { return slices.ContainsFunc(t.Requests, asks) })
		if i >= 0 {
			return s.Turns[i], i
		}
	}
	s.continueSession(e)
	if i = s.findSession(e.session); i >= 0 {
		return s.Turns[i], i
	}
	if i = s.findUnnamed(); i >= 0 && !s.Turns[i].isOver() {
		return s.Turns[i], i
	}
	return newTurn(e, s.Turn(), Unknown, ""), -1
}

// continueSession has a turn that a resumed program began before it named its session go on in that session, of which only
// the past turns are kept. Codex names its session with the first message.
func (s *State) continueSession(e *event) {
	unnamed := s.findUnnamed()
	isBegin := e.kind == "session_start" || e.kind == wire.TurnStarted
	if e.session == "" || !isBegin || unnamed < 0 || !s.Turns[unnamed].IsOpen() || !s.Run.resumes(e.session) {
		return
	}
	if i := s.findSession(e.session); i >= 0 {
		t := &s.Turns[i]
		isLate := e.turn != "" && (e.turn == t.ID || slices.Contains(t.Ended, e.turn))
		if isLate || !t.isOver() {
			return
		}
		s.Turns[unnamed].Ended = t.Ended
		s.Turns = slices.Delete(s.Turns, i, i+1)
	}
	e.isContinued = true
}

// resumes reports whether a program runs that goes on with a session.
func (r *Run) resumes(session string) bool {
	return r != nil && !r.HasExited && (r.Conversation == session || r.Conversation == Newest)
}

// newTurn begins a session. It takes over from the shown session how the last turn ended.
func newTurn(e *event, shown *Turn, a Activity, detail string) Turn {
	return Turn{
		Session: e.session, Transport: shown.Transport, Last: shown.Last,
		Status: TurnIdle, Activity: a, Detail: detail, FirstSeq: e.seq,
	}
}

// saveTurn stores the turn that an event was about as the newest. before is its word before the event. If there are too
// many, the session that was silent longest is forgotten, of those that neither work nor ask if there are any.
func (s *State) saveTurn(e *event, t Turn, before Word) {
	t.LastSeq, t.HeardAt, t.IsPresumedEnded, t.Source = e.seq, e.at, false, e.restsOn()
	if t.Word() != before || t.Since.IsZero() {
		t.Since = e.at
	}
	if e.session != "" {
		t.Session = e.session
	}
	s.Turns = slices.DeleteFunc(s.Turns, func(o Turn) bool {
		return o.Session == t.Session || o.Session == "" // an unnamed session is this one
	})
	if len(s.Turns) >= maxTurns {
		i := slices.IndexFunc(s.Turns, func(t Turn) bool { return !t.isActive() })
		if i < 0 {
			i = max(0, slices.IndexFunc(s.Turns, func(t Turn) bool { return !t.isHeldAgainst(e) }))
		}
		s.Turns = slices.Delete(s.Turns, i, i+1)
	}
	s.Turns = append(s.Turns, t)
}

// endSession ends one session. The end of an unknown session is ignored if others are known.
func (s *State) endSession(e *event) {
	reason := e.Text("reason")
	isReplaced := reason == "clear" || reason == "resume" // its program goes on
	known := s.findSession(e.session)
	if known < 0 && len(s.Turns) > 0 {
		return
	}
	t, _ := s.turnFor(e)
	if t.Activity == Exited || isReplaced && t.IsReplaced || t.isHeldAgainst(e) {
		return // a repeat, or what asks goes on
	}
	before := t.Word()
	t.cutOff(e, Interrupted)
	t.setActivity(Exited, wire.Clip(reason, maxDetail))
	t.HasSessionStart = false
	if isReplaced {
		t.Activity, t.IsReplaced = Starting, true
		if s.Run != nil && s.Run.Conversation == t.Session {
			s.Run.Conversation = ""
		}
	}
	s.saveTurn(e, t, before)
	if isReplaced || s.Run != nil && !s.Run.HasExited {
		return
	}
	// A session that was silent during this one's whole life is presumed to have ended without a word, until it is heard
	// again. One that asks is silent by nature; and while a runner's program runs, the session may be that program's.
	for i := range s.Turns {
		if o := &s.Turns[i]; len(o.Requests) == 0 && o.LastSeq <= t.FirstSeq {
			o.IsPresumedEnded = true
		}
	}
}

// endAllSessions ends all sessions with the program that a runner started, but those that began since the start of the
// next one (zero: there is none). status is how an open turn ended.
func (s *State) endAllSessions(e *event, detail, status string, next time.Time) {
	for i := range s.Turns {
		t := &s.Turns[i]
		if t.beganSince(next) {
			continue
		}
		t.StartedAt = time.Time{} // it is not the next one's, even if the clock is set back
		if t.Activity != Exited {
			t.cutOff(e, status)
			t.setActivity(Exited, detail)
			t.HasSessionStart, t.Since, t.Source = false, e.at, e.restsOn()
		}
	}
}

// beganSince reports whether the session began after a program had started then; zero: no program has.
func (t *Turn) beganSince(started time.Time) bool {
	return !started.IsZero() && !t.StartedAt.Before(started)
}

// startProgram ends the sessions of earlier programs and begins an unnamed one, unless the program, which started then,
// has told of a session before its runner told of it. Zero: it has not started yet, or nobody says when.
func (s *State) startProgram(e *event, detail string, started time.Time) {
	shown := s.Turn()
	s.endAllSessions(e, "", Failed, started)
	if i := s.findUnnamed(); i >= 0 {
		for _, id := range s.Turns[i].Ended {
			s.PastTurns = remember(s.PastTurns, id, maxEnded)
		}
	}
	if !s.takeSessions(started) {
		s.saveTurn(e, newTurn(e, shown, Starting, detail), "")
	}
}

// takeSessions notes the sessions that have begun since the program started as its own, and reports whether there are any.
func (s *State) takeSessions(started time.Time) bool {
	var first *Turn // of those that go on
	n := 0
	for i := range s.Turns {
		t := &s.Turns[i]
		if !t.beganSince(started) {
			continue
		}
		n++
		if t.IsReplaced {
			continue
		}
		if s.Run.Sessions++; first == nil || t.FirstSeq < first.FirstSeq {
			first = t
		}
	}
	if n == 0 {
		return false
	}
	if s.Run.Sessions = max(s.Run.Sessions, 1); first != nil {
		s.Run.Conversation = first.Session
	}
	s.Asked = slices.DeleteFunc(slices.Clone(s.Asked), func(w Waiting) bool { return w.Since.Before(started) })
	return true
}

// runnerKnowsBetter reports whether an event about the program of a live run does not come from its runner.
func (s *State) runnerKnowsBetter(e *event) bool {
	isRunners := e.source == "pty" || e.source == "acp"
	return !isRunners && s.Run != nil && s.Run.IsLocked && !s.Run.HasExited
}

// applyProgram applies an event about the process that a runner runs.
func (s *State) applyProgram(e *event) {
	switch e.kind {
	case "spawned":
		s.applySpawned(e)
	case "exited":
		s.applyExited(e)
	case "restarting":
		s.applyRestarting(e)
	}
}

func (s *State) applySpawned(e *event) {
	r := &Run{
		ID: shortID(e.Text("run")), Started: e.at, IsLocked: e.source == "pty" || e.source == "acp",
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
	s.Run = r
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
	isLive := slices.ContainsFunc(s.Turns, func(t Turn) bool { return t.Activity != Exited })
	if isOther || s.Run.HasExited && !isLive {
		return // of an earlier process, or a repeat
	}
	reason := e.Text("reason")
	isWanted := reason != "" // a crash has none
	s.Run.HasExited, s.Run.WasStopped = true, isWanted && reason != "asked to restart"
	if len(s.Turns) == 0 {
		s.saveTurn(e, newTurn(e, s.Turn(), Unknown, ""), "")
	}
	detail, status := exitOf(e)
	switch {
	case s.Run.WasStopped:
		detail, status = stopped, Interrupted
	case isWanted:
		detail, status = "", Interrupted
	}
	s.endAllSessions(e, detail, status, time.Time{})
	for i := range s.Turns {
		t := &s.Turns[i]
		if s.Run.WasStopped { // also if the session's end came first
			t.Detail = stopped
		}
		if isWanted && t.Last != nil && t.Last.IsCutOff {
			last := *t.Last
			last.WasStopped = true
			t.Last = &last
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

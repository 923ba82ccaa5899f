package reducer

import (
	"slices"
	"time"
)

// parallelFor is how long after it was heard a session with something open is
// taken to live beside one that began later.
const parallelFor = 5 * time.Minute

// isOver reports whether the session has ended, with its program or without.
func (t *Turn) isOver() bool { return t.Activity == Exited || t.IsReplaced }

// isEngaged reports whether the session is known to do something, or to ask.
func (t *Turn) isEngaged() bool { return !t.isOver() && (t.Status == TurnBusy || len(t.Requests) > 0) }

// findSession is the place of a session's turn, -1 for one that is not known. An
// event that names no session belongs to the one heard last of those that go on,
// else to the one that is shown.
func (s *State) findSession(session string) int {
	if session != "" {
		return slices.IndexFunc(s.Turns, func(t Turn) bool { return t.Session == session })
	}
	found := len(s.Turns) - 1
	if found <= 0 {
		return found
	}
	lastSeq := uint64(0)
	for i := range s.Turns {
		if t := &s.Turns[i]; !t.isOver() && !t.IsPresumedEnded && t.LastSeq > lastSeq {
			found, lastSeq = i, t.LastSeq
		}
	}
	return found
}

// findUnnamed is the place of the turn whose program has not named its session
// yet, or -1. No other session lives beside it: it is there from the beginning,
// or since a runner started its program again.
func (s *State) findUnnamed() int {
	return slices.IndexFunc(s.Turns, func(t Turn) bool { return t.Session == "" })
}

// turnFor is a copy of the turn that an event is about, and its place: -1 for a
// new one, which is not kept yet, since a late event makes no session. A program
// that runs and has not named its session has named it now.
func (s *State) turnFor(e *event) (t Turn, i int) {
	if i = s.findSession(e.session); i >= 0 {
		return s.Turns[i], i
	}
	if i = s.findUnnamed(); i >= 0 && !s.Turns[i].isOver() {
		return s.Turns[i], i
	}
	shown := s.Turn()
	return Turn{Session: e.session, Status: TurnIdle, Activity: Unknown, Transport: shown.Transport, Last: shown.Last, FirstSeq: e.seq}, -1
}

// addTurn adds a turn, to be shown. Of too many the first that is over goes,
// else the one that was shown longest ago.
func (s *State) addTurn(t Turn) {
	if len(s.Turns) >= maxTurns {
		i := max(0, slices.IndexFunc(s.Turns, func(t Turn) bool { return t.isOver() }))
		s.Turns = slices.Delete(s.Turns, i, i+1)
	}
	s.Turns = append(s.Turns, t)
}

// showTurn makes a turn the one that is shown.
func (s *State) showTurn(i int) {
	t := s.Turns[i]
	s.Turns = append(slices.Delete(s.Turns, i, i+1), t)
}

// show keeps and shows the turn that an event was about, or another one that is
// still engaged. wordBefore is the turn's word before the event.
func (s *State) show(e *event, t Turn, i int, wordBefore Word) {
	t.LastSeq, t.HeardAt, t.IsPresumedEnded = e.seq, e.at, false
	if t.Word() != wordBefore || t.Since.IsZero() {
		t.Since = e.at
	}
	if e.session != "" {
		t.Session = e.session
	}
	if i >= 0 {
		s.Turns = slices.Delete(s.Turns, i, i+1)
	}
	s.addTurn(t)
	if unnamed := s.findUnnamed(); unnamed >= 0 && e.session != "" {
		s.Turns = slices.Delete(s.Turns, unnamed, unnamed+1) // the session is this program's
	}
	for j := range s.Turns[:len(s.Turns)-1] {
		if r := &s.Turns[j]; r.IsReplaced {
			r.setActivity(Exited, r.Detail) // its program has gone on with this session
			r.Since = e.at
		}
	}
	if shown := s.Turn(); shown.Word() == WordIdle && shown.Status != TurnBusy {
		s.showEngaged(shown.FirstSeq, e.at)
	}
}

// showEngaged shows, when the session heard last is idle, another one that is
// engaged and lives beside it: heard since the idle one came, or shortly before
// now. One that was silent for longer may have been killed.
func (s *State) showEngaged(idleSince uint64, now time.Time) {
	for i := len(s.Turns) - 2; i >= 0; i-- {
		t := &s.Turns[i]
		if t.isEngaged() && !t.IsPresumedEnded && (t.LastSeq > idleSince || now.Sub(t.HeardAt).Abs() < parallelFor) {
			s.showTurn(i)
			return
		}
	}
}

// heardLast is the session heard last, whether it has ended or not.
func (s *State) heardLast() *Turn {
	last := s.Turn()
	for i := range s.Turns {
		if s.Turns[i].LastSeq > last.LastSeq {
			last = &s.Turns[i]
		}
	}
	return last
}

// endSession ends one session. The end of a session of which nothing was known
// is no news while another one is known.
func (s *State) endSession(e *event) {
	reason := e.Text("reason")
	goesOn := reason == "clear" || reason == "resume" || reason == "deleted" // the program, with another session
	known := s.findSession(e.session)
	if known < 0 && len(s.Turns) > 0 {
		return
	}
	if known >= 0 && (s.Turns[known].Activity == Exited || goesOn && s.Turns[known].IsReplaced) {
		return // said before
	}
	t, i := s.turnFor(e)
	before := t.Word()
	t.cutOff(e, Interrupted)
	t.setActivity(Exited, clip(reason, maxDetail))
	t.HasSessionStart = false
	if goesOn {
		t.Activity, t.IsReplaced = Starting, true
	}
	s.show(e, t, i, before)
	if !goesOn {
		s.showRemaining()
	}
}

// showRemaining shows, when the session that is shown has ended, another one
// that goes on: heard since the ended one came, an engaged one first. A session
// that was silent all that time may have ended without a word. It is presumed
// ended until it is heard, unless it is engaged and a runner's program runs,
// whose session it may be.
func (s *State) showRemaining() {
	last := len(s.Turns) - 1
	firstSeq := s.Turns[last].FirstSeq
	isRunning := s.Run != nil && !s.Run.HasExited
	next := -1
	for i := range s.Turns[:last] {
		t := &s.Turns[i]
		if t.isOver() {
			continue
		}
		if t.LastSeq <= firstSeq && !(isRunning && t.isEngaged()) {
			t.IsPresumedEnded = true
		}
		if !t.IsPresumedEnded && (next < 0 || t.isEngaged() || !s.Turns[next].isEngaged()) {
			next = i
		}
	}
	if next >= 0 {
		s.showTurn(next)
	}
}

// endAllSessions ends every session with the program that a runner started: what
// is heard after is of the next one. status is how an open turn ended.
func (s *State) endAllSessions(e *event, detail, status string) {
	for i := range s.Turns {
		if t := &s.Turns[i]; t.Activity != Exited {
			t.cutOff(e, status)
			t.setActivity(Exited, detail)
			t.HasSessionStart, t.Since = false, e.at
		}
	}
}

// startProgram begins the life of a program: earlier sessions are over, and it
// has not said yet which session is its own.
func (s *State) startProgram(e *event, detail string) {
	s.endAllSessions(e, "", Failed)
	shown := *s.Turn()
	if i := s.findUnnamed(); i >= 0 {
		for _, id := range s.Turns[i].Ended {
			s.PastTurns = remember(s.PastTurns, id, maxEnded)
		}
	}
	s.Turns = slices.DeleteFunc(s.Turns, func(t Turn) bool { return t.Session == e.session })
	s.addTurn(Turn{
		Session: e.session, Transport: shown.Transport, Last: shown.Last,
		Status: TurnIdle, Activity: Starting, Detail: detail, Since: e.at, FirstSeq: e.seq, LastSeq: e.seq,
	})
}

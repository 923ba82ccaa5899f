package reducer

import (
	"slices"
	"strconv"
	"time"
)

// besideFor is how long after it was heard a session with something open is
// taken to live beside one that began later.
const besideFor = 5 * time.Minute

// goesOnAfter reports whether a session that ended for this reason leaves its
// program running, with another session.
func goesOnAfter(reason string) bool {
	return reason == "clear" || reason == "resume" || reason == "deleted"
}

// ended reports whether the session has ended, with its program or without.
func (t *Turn) ended() bool { return t.Activity == Exited || t.Next }

// engaged reports whether the session is known to do something, or to ask.
func (t *Turn) engaged() bool { return !t.ended() && (t.Status == TurnBusy || t.Waiting != nil) }

// find is the session that an event belongs to: the place of its turn, or -1
// for one that is not known yet. An event that names none belongs to the one
// heard last that goes on, else to the one that is shown.
func (s *State) find(session string) int {
	if session == "" {
		to := len(s.Turns) - 1
		if to <= 0 {
			return to
		}
		spoke := uint64(0)
		for i := range s.Turns {
			if t := &s.Turns[i]; !t.ended() && !t.Lost && t.Spoke > spoke {
				to, spoke = i, t.Spoke
			}
		}
		return to
	}
	for i := len(s.Turns) - 1; i >= 0; i-- {
		if s.Turns[i].Session == session {
			return i
		}
	}
	return -1
}

// nameless is the place of the turn whose program has not named its session
// yet, or -1. Nothing else that is known lives beside it: it is there from the
// beginning, or since a runner started its program anew.
func (s *State) nameless() int {
	return slices.IndexFunc(s.Turns, func(t Turn) bool { return t.Session == "" })
}

// live reports whether any session is not known to have ended.
func (s *State) live() bool {
	return slices.ContainsFunc(s.Turns, func(t Turn) bool { return t.Activity != Exited })
}

// turnOf is the turn that an event is about. One that is not known yet is
// made, but not kept: a late event makes no session. A program that was heard
// of without naming its session, and still runs, has named it now.
func (s *State) turnOf(h *happening, fresh *Turn) (t *Turn, at int) {
	if at = s.find(h.session); at >= 0 {
		return &s.Turns[at], at
	}
	if at = s.nameless(); at >= 0 && !s.Turns[at].ended() {
		return &s.Turns[at], at
	}
	*fresh = Turn{Status: TurnIdle, Activity: Unknown, Session: h.session, Transport: s.Turn().Transport, Last: s.Turn().Last, Came: h.seq}
	return fresh, -1
}

// show keeps and shows the turn that an event was about, or another that it
// leaves open. was is its word before.
func (s *State) show(h *happening, t *Turn, at int, was Word) {
	t.Spoke, t.Heard, t.Lost = h.seq, h.at, false
	if t.Word() != was || t.Since.IsZero() {
		t.Since = h.at
	}
	if h.session != "" {
		t.Session = h.session
	}
	if last := len(s.Turns) - 1; at < 0 {
		s.keep(*t)
	} else if at < last {
		shown := *t
		s.Turns = append(append(s.Turns[:at], s.Turns[at+1:]...), shown)
	}
	if i := s.nameless(); i >= 0 && h.session != "" {
		s.Turns = slices.Delete(s.Turns, i, i+1) // this is its program's session
	}
	if len(s.Turns) == 1 {
		return
	}
	if at < 0 || h.Kind == "session_start" {
		s.follows(h)
	}
	if last := s.Turn(); last.Word() == WordIdle && last.Status != TurnBusy {
		s.beside(last.Came, h.at)
	}
}

// follows ends the sessions whose program went on with another: it is here.
func (s *State) follows(h *happening) {
	for i := range s.Turns[:len(s.Turns)-1] {
		if t := &s.Turns[i]; t.Next {
			t.doing(Exited, t.Detail)
			t.Since = h.at
		}
	}
}

// beside shows, when the session heard last waits, another that does not and
// that lives beside it: it was heard since this one came, or shortly before
// now. One heard of no more may have been killed.
func (s *State) beside(came uint64, now time.Time) {
	for i := len(s.Turns) - 2; i >= 0; i-- {
		t := &s.Turns[i]
		if d := now.Sub(t.Heard); t.engaged() && !t.Lost && (t.Spoke > came || -besideFor < d && d < besideFor) {
			s.shows(i)
			return
		}
	}
}

// newest is the session heard last, whether it has ended or not.
func (s *State) newest() *Turn {
	t := s.Turn()
	for i := range s.Turns {
		if s.Turns[i].Spoke > t.Spoke {
			t = &s.Turns[i]
		}
	}
	return t
}

// shows makes a session the one that is shown.
func (s *State) shows(i int) {
	t := s.Turns[i]
	s.Turns = append(append(s.Turns[:i], s.Turns[i+1:]...), t)
}

// keep adds a turn, to be shown. Of too many the one that ended first goes,
// else the one not heard of for longest.
func (s *State) keep(t Turn) {
	if len(s.Turns) >= keptTurns {
		i := max(0, slices.IndexFunc(s.Turns, func(t Turn) bool { return t.ended() }))
		s.Turns = slices.Delete(s.Turns, i, i+1)
	}
	s.Turns = append(s.Turns, t)
}

// sessionEnds ends one session. While another lives, the end of one of which
// nothing was known is no news.
func (s *State) sessionEnds(h *happening) {
	i := s.find(h.session)
	if i < 0 && len(s.Turns) > 0 || i >= 0 && s.Turns[i].Activity == Exited {
		return
	}
	reason := h.body().Text("reason")
	next := goesOnAfter(reason)
	if next && i >= 0 && s.Turns[i].Next {
		return
	}
	var fresh Turn
	t, at := s.turnOf(h, &fresh)
	was := t.Word()
	t.cut(h, Interrupted)
	t.Begun = false
	if next {
		t.doing(Starting, clip(reason, maxDetail))
		t.Next = true
		s.show(h, t, at, was)
		return
	}
	t.doing(Exited, clip(reason, maxDetail))
	s.show(h, t, at, was)
	s.fallBack()
}

// fallBack shows, when the session heard last has ended, another that goes on:
// one that was heard since the ended one came, with something open if there is
// such a one. What was silent all that time may have gone without a word, and
// is lost until it is heard; but while a runner's program runs, what is open
// may be its.
func (s *State) fallBack() {
	last := len(s.Turns) - 1
	came := s.Turns[last].Came
	running := s.Run != nil && !s.Run.Over
	to := -1
	for i := range s.Turns[:last] {
		t := &s.Turns[i]
		if t.ended() {
			continue
		}
		if t.Spoke <= came && !(running && t.engaged()) {
			t.Lost = true
		}
		if !t.Lost && (to < 0 || t.engaged() || !s.Turns[to].engaged()) {
			to = i
		}
	}
	if to >= 0 {
		s.shows(to)
	}
}

// allEnd ends every session, with the program that a runner started: it runs
// one, and what is heard after is of the next. status is how an open turn ended.
func (s *State) allEnd(h *happening, detail, status string) {
	for i := range s.Turns {
		t := &s.Turns[i]
		if t.Activity == Exited {
			continue
		}
		t.cut(h, status)
		t.doing(Exited, detail)
		t.Begun, t.Since = false, h.at
	}
}

// starts begins the life of a program: sessions of before are over, and it has
// not said yet which is its.
func (s *State) starts(h *happening, detail string) {
	s.allEnd(h, "", Failed)
	was := *s.Turn()
	if i := s.nameless(); i >= 0 {
		for _, id := range s.Turns[i].Over {
			s.Past.add(id, keptOver)
		}
	}
	s.Turns = slices.DeleteFunc(s.Turns, func(t Turn) bool { return t.Session == h.session })
	s.keep(Turn{
		Session: h.session, Transport: was.Transport, Last: was.Last,
		Status: TurnIdle, Activity: Starting, Detail: detail, Since: h.at, Came: h.seq, Spoke: h.seq,
	})
}

// spawned is a runner's word that it started a process.
func (s *State) spawned(h *happening) {
	b := h.body()
	r := &Run{Started: h.at, Locked: h.Source == "pty" || h.Source == "acp"}
	if pid, ok := b.Uint("pid"); ok && pid < 1<<31 {
		r.PID = int64(pid)
	}
	at, ok := h.time("started")
	if ok {
		r.Started = at
	}
	if old := s.Run; old != nil && r.PID != 0 && old.PID == r.PID && (old.Started.Equal(at) || !ok && !old.Over) {
		return // again
	}
	s.Run = r
	s.starts(h, "")
}

// exited is a runner's word that the process has ended.
func (s *State) exited(h *happening) {
	b := h.body()
	r := Run{Started: h.at}
	if s.Run != nil {
		r = *s.Run
		if pid, ok := b.Uint("pid"); ok && r.PID != 0 && int64(pid) != r.PID {
			return // of one before
		}
		if r.Over && !s.live() {
			return // again
		}
	}
	r.Over, r.Code, r.Signal = true, nil, clip(b.Text("signal"), maxTool)
	detail := r.Signal
	if code, err := strconv.ParseInt(string(b.Raw("code")), 10, 64); err == nil {
		r.Code = &code
		if code != 0 && detail == "" {
			detail = "exit " + strconv.FormatInt(code, 10)
		}
	}
	s.Run = &r
	if len(s.Turns) == 0 {
		s.keep(Turn{Session: h.session, Status: TurnIdle, Activity: Unknown, Came: h.seq, Spoke: h.seq})
	}
	status := Failed
	if r.Signal == "" && r.Code != nil && *r.Code == 0 {
		status = Interrupted // it ended itself
	}
	s.allEnd(h, detail, status)
}

// hosts is the run in which a session has begun. The first is its program's.
// Another may be of a program beside it, started by hand after the runner was
// killed: then the runner's death says nothing of what is heard.
func (r *Run) hosts(source string) *Run {
	if r == nil || r.Over || source != "" && source != "startup" && source != "resume" {
		return r
	}
	n := *r
	n.Left = n.Left || n.Begun
	n.Begun = true
	return &n
}

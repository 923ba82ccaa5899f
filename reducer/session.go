package reducer

import (
	"slices"
	"strconv"
)

// find is the session that an event belongs to: the place of its turn, or -1
// for one that is not known yet. An event that names none belongs to the one
// heard last.
func (s *State) find(session string) int {
	if session == "" {
		return len(s.Turns) - 1
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
	if at = s.nameless(); at >= 0 && s.Turns[at].Activity != Exited {
		return &s.Turns[at], at
	}
	*fresh = Turn{Status: TurnIdle, Activity: Unknown, Session: h.session, Transport: s.Turn().Transport, Last: s.Turn().Last, Came: h.seq}
	return fresh, -1
}

// show keeps and shows the turn that an event was about. was is its word
// before.
func (s *State) show(h *happening, t *Turn, at int, was Word) {
	t.Spoke = h.seq
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
}

// keep adds a turn, to be shown. Of too many the one that ended first goes,
// else the one not heard of for longest.
func (s *State) keep(t Turn) {
	if len(s.Turns) >= keptTurns {
		i := max(0, slices.IndexFunc(s.Turns, func(t Turn) bool { return t.Activity == Exited }))
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
	var fresh Turn
	t, at := s.turnOf(h, &fresh)
	was := t.Word()
	t.cut(h, Interrupted)
	t.doing(Exited, clip(h.body().Text("reason"), maxDetail))
	t.Begun = false
	s.show(h, t, at, was)
	s.fallBack()
}

// fallBack shows, when the session heard last has ended, another that goes on:
// one that has a turn or a question open, or that was heard since the ended one
// began. Any other may have gone without a word long ago.
func (s *State) fallBack() {
	last := len(s.Turns) - 1
	for i := last - 1; i >= 0; i-- {
		t := s.Turns[i]
		switch {
		case t.Activity == Exited:
		case t.Status == TurnBusy, t.Waiting != nil, t.Spoke > s.Turns[last].Came:
			s.Turns = append(append(s.Turns[:i], s.Turns[i+1:]...), t)
			return
		}
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

package reducer

import (
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// parallelFor is how long after its last event a session that is active counts as alive beside one that began later.
const parallelFor = 5 * time.Minute

// Session is one conversation of an agent's program: what it does now, what it asks, and its current or last turn.
type Session struct {
	ID       string    `json:"session,omitempty"` // "": not known yet
	Turn     Turn      `json:"turn"`
	Last     *Last     `json:"last_turn,omitempty"` // how the last turn ended that has
	Activity Activity  `json:"activity"`
	Detail   string    `json:"detail,omitempty"`   // the tool, compacting, …
	Source   Source    `json:"source,omitempty"`   // what the activity rests on
	Since    time.Time `json:"since,omitzero"`     // of the word
	Until    time.Time `json:"until,omitzero"`     // when its usage limit ends; zero: it is at none, or nobody says
	Requests []Waiting `json:"requests,omitempty"` // what it asks; empty unless it is blocked; the first is shown

	HeardAt    time.Time `json:"heard_at,omitzero"`     // the time of its newest event
	EndedTurns []string  `json:"ended_turns,omitempty"` // its newest turns that are over

	sessionMemory
}

// sessionMemory is what a Session keeps for the events to come.
type sessionMemory struct {
	HasStart   bool      `json:"has_session_start,omitempty"` // session_start was seen
	StartedAt  time.Time `json:"started_at,omitzero"`         // the time of the newest that named it; zero once its program has ended
	FirstSeq   uint64    `json:"first_seq,omitempty"`         // its first event
	LastSeq    uint64    `json:"last_seq,omitempty"`          // its newest event
	IsReplaced bool      `json:"is_replaced,omitempty"`       // it has ended, its program goes on with another
	Calls      []string  `json:"calls,omitempty"`             // the turn's newest tool calls that have started
	EndedCalls []string  `json:"ended_calls,omitempty"`       // or ended
}

// Word returns the session's state in one word, as far as its own events tell. View.Word is that of the agent.
func (ses *Session) Word() Word {
	if ses.Activity == Unknown && ses.Turn.IsOpen() {
		return WordBusy
	}
	return ses.Activity.Word()
}

// isOver reports whether the session has ended, with its program or without.
func (ses *Session) isOver() bool { return ses.Activity == Exited || ses.IsReplaced }

// isActive reports whether the session works or asks something.
func (ses *Session) isActive() bool { return ses.Turn.IsOpen() || len(ses.Requests) > 0 }

// Session returns the one to show, never nil: the one heard from last, unless that has ended, or is idle while another
// works or asks.
func (s *State) Session() *Session {
	if len(s.Sessions) == 0 {
		return &Session{Turn: Turn{Status: TurnIdle}, Activity: Unknown}
	}
	last := &s.Sessions[len(s.Sessions)-1]
	shown, isRunning := last, s.Run != nil && !s.Run.HasExited
	for i := range s.Sessions[:len(s.Sessions)-1] {
		ses := &s.Sessions[i]
		// One that has said nothing since the last one began may have been killed; one that asks is silent by nature.
		wasHeard := ses.LastSeq > last.FirstSeq
		switch {
		case ses.isOver():
		case last.Activity == Idle && ses.isActive() && (wasHeard || last.HeardAt.Sub(ses.HeardAt).Abs() < parallelFor):
			shown = ses
		case last.Activity == Exited && (wasHeard || isRunning || len(ses.Requests) > 0) && (ses.isActive() || !shown.isActive()):
			shown = ses
		case last.IsReplaced && (ses.isActive() || ses.FirstSeq > last.FirstSeq): // its program went on before it ended
			shown = ses
		}
	}
	return shown
}

// findSession returns the index of a session, -1 if it is not known. "" is the session that is shown.
func (s *State) findSession(session string) int {
	shown := s.Session()
	for i := range s.Sessions {
		if ses := &s.Sessions[i]; ses.ID == session || session == "" && ses == shown {
			return i
		}
	}
	return -1
}

// SessionOf returns the session with that id, nil if it is not known. "" is the session that is shown.
func (s *State) SessionOf(id string) *Session {
	if i := s.findSession(id); i >= 0 {
		return &s.Sessions[i]
	}
	return nil
}

// findUnnamed returns the index of the session without a name, or -1. No other lives beside it: it begins with the log
// or with a program.
func (s *State) findUnnamed() int {
	return slices.IndexFunc(s.Sessions, func(ses Session) bool { return ses.ID == "" })
}

// sessionFor returns a copy of the session that an event is about, and its index. The id of an open request names its
// session. A session that no event has named takes the first name. A new one has the index -1 and is not stored yet, since
// a late event makes no session.
func (s *State) sessionFor(e *event) (ses Session, i int) {
	if id := e.idOf("id"); e.session == "" && id != "" {
		asks := func(w Waiting) bool { return w.ID == id }
		i = slices.IndexFunc(s.Sessions, func(ses Session) bool { return slices.ContainsFunc(ses.Requests, asks) })
		if i >= 0 {
			return s.Sessions[i], i
		}
	}
	s.continueSession(e)
	if i = s.findSession(e.session); i >= 0 {
		return s.Sessions[i], i
	}
	if i = s.findUnnamed(); i >= 0 && !s.Sessions[i].isOver() {
		return s.Sessions[i], i
	}
	return newSession(e, s.Session(), Unknown, ""), -1
}

// continueSession has a turn that a resumed program began before it named its session go on in that session, of which only
// the past turns are kept. Codex names its session with the first message.
func (s *State) continueSession(e *event) {
	unnamed := s.findUnnamed()
	isBegin := e.kind == wire.SessionStart || e.kind == wire.TurnStarted
	if e.session == "" || !isBegin || unnamed < 0 || !s.Sessions[unnamed].Turn.IsOpen() || !s.Run.resumes(e.session) {
		return
	}
	if i := s.findSession(e.session); i >= 0 {
		ses := &s.Sessions[i]
		isLate := e.turn != "" && (e.turn == ses.Turn.ID || slices.Contains(ses.EndedTurns, e.turn))
		if isLate || !ses.isOver() {
			return
		}
		s.Sessions[unnamed].EndedTurns = ses.EndedTurns
		s.Sessions = slices.Delete(s.Sessions, i, i+1)
	}
	e.isContinued = true
}

// newSession begins a session. It takes over from the shown session how the last turn ended.
func newSession(e *event, shown *Session, a Activity, detail string) Session {
	return Session{
		ID: e.session, Turn: Turn{Status: TurnIdle, Transport: shown.Turn.Transport}, Last: shown.Last,
		Activity: a, Detail: detail, sessionMemory: sessionMemory{FirstSeq: e.seq},
	}
}

// saveSession stores the session that an event was about as the newest. before is its word before the event. If there are
// too many, the one that was silent longest is forgotten, of those that neither work nor ask if there are any.
func (s *State) saveSession(e *event, ses Session, before Word) {
	ses.LastSeq, ses.HeardAt, ses.Source = e.seq, e.at, e.restsOn()
	if ses.Word() != before || ses.Since.IsZero() {
		ses.Since = e.at
	}
	if e.session != "" {
		ses.ID = e.session
	}
	s.Sessions = slices.DeleteFunc(s.Sessions, func(o Session) bool {
		return o.ID == ses.ID || o.ID == "" // an unnamed session is this one
	})
	if len(s.Sessions) >= maxSessions {
		i := slices.IndexFunc(s.Sessions, func(ses Session) bool { return !ses.isActive() })
		if i < 0 {
			i = max(0, slices.IndexFunc(s.Sessions, func(ses Session) bool { return !ses.isHeldAgainst(e) }))
		}
		s.Sessions = slices.Delete(s.Sessions, i, i+1)
	}
	s.Sessions = append(s.Sessions, ses)
}

// OtherSession is the field of session_end with the session of another program of the agent that runs: it goes on.
const OtherSession = "other_session"

// endSession ends one session. The end of an unknown session is ignored if others are known.
func (s *State) endSession(e *event) {
	reason := e.Text(wire.FieldReason)
	isReplaced := reason == "clear" || reason == "resume" // its program goes on
	known := s.findSession(e.session)
	if known < 0 && len(s.Sessions) > 0 {
		return
	}
	ses, _ := s.sessionFor(e)
	if ses.Activity == Exited || isReplaced && ses.IsReplaced || ses.isHeldAgainst(e) {
		return // a repeat, or what asks goes on
	}
	before := ses.Word()
	ses.cutOff(e, Interrupted)
	ses.setActivity(Exited, wire.Clip(reason, maxDetail))
	ses.HasStart = false
	if isReplaced {
		ses.Activity, ses.IsReplaced = Starting, true
		if s.Run != nil && s.Run.Conversation == ses.ID {
			s.Run.Conversation = ""
		}
	}
	s.saveSession(e, ses, before)
	if i := s.findSession(e.Text(OtherSession)); e.Text(OtherSession) != "" && i >= 0 && s.Sessions[i].ID != e.session {
		s.Sessions[i].LastSeq = e.seq // so much was heard of it
	}
}

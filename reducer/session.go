package reducer

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

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

// Session returns the one that is shown, never nil.
func (s *State) Session() *Session {
	if !s.isKnown() {
		return &Session{Turn: Turn{Status: TurnIdle}, Activity: Unknown}
	}
	return &s.Shown
}

// isKnown reports whether any event has told of a session.
func (s *State) isKnown() bool { return s.Shown.Activity != "" }

// Sessions are the session that is shown, if any, and then the others.
func (s *State) Sessions() iter.Seq[*Session] {
	return func(yield func(*Session) bool) {
		if !s.isKnown() || !yield(&s.Shown) {
			return
		}
		for i := range s.Others {
			if !yield(&s.Others[i]) {
				return
			}
		}
	}
}

// SessionOf returns the session with that id, nil if it is not known. "" is the one that is shown.
func (s *State) SessionOf(id string) *Session {
	if s.isKnown() && (id == "" || id == s.Shown.ID) {
		return &s.Shown
	}
	if i := s.findOther(id); i >= 0 {
		return &s.Others[i]
	}
	return nil
}

func (s *State) findOther(id string) int {
	return slices.IndexFunc(s.Others, func(ses Session) bool { return ses.ID == id })
}

// sessionFor returns a copy of the session that an event is about. One without a name takes the first that is heard, and that of
// an earlier program's session when its runner has begun a turn: Codex names its session with the first message. A new session
// is not stored yet, since a late event makes none.
func (s *State) sessionFor(e *event) (ses Session, isShown bool) {
	other, isUnnamed := s.findOther(e.session), s.Shown.ID == "" && !s.Shown.isOver()
	goesOn := s.Shown.Turn.IsOpen() && (e.kind == wire.SessionStart || e.kind == wire.TurnStarted)
	switch {
	case s.isKnown() && (e.session == "" || e.session == s.Shown.ID || isUnnamed && (other < 0 || goesOn)):
		return s.Shown, true
	case other >= 0:
		return s.Others[other], false
	}
	return newSession(e, s.Session(), Unknown, ""), false
}

// newSession begins a session. It takes over from the shown session how the last turn ended.
func newSession(e *event, shown *Session, a Activity, detail string) Session {
	return Session{
		ID: e.session, Turn: Turn{Status: TurnIdle, Transport: shown.Turn.Transport}, Last: shown.Last,
		Activity: a, Detail: detail, sessionMemory: sessionMemory{FirstSeq: e.seq},
	}
}

// worksElsewhere reports whether a session works that is not shown, as far as it was heard from.
func (s *State) worksElsewhere() bool {
	return slices.ContainsFunc(s.Others, func(ses Session) bool { return ses.isActive() })
}

// store stores a session after news of it. The one heard from last is shown. But while the shown one works only one that works or
// asks takes its place, and while it asks none; nor does any with a runner: what its program runs may speak under the same name.
// before is the session's word before the event.
func (s *State) store(e *event, ses Session, before Word, isShown bool) {
	ses.LastSeq, ses.HeardAt, ses.Source, ses.ID = e.seq, e.at, e.restsOn(), cmp.Or(e.session, ses.ID)
	if ses.Word() != before || ses.Since.IsZero() {
		ses.Since = e.at
	}
	takesOver := !s.Shown.isActive() || ses.isActive() && !s.isRun() && len(s.Shown.Requests) == 0
	if !isShown && !takesOver {
		s.keepOther(ses)
		return
	}
	s.show(ses)
}

// show shows a session, and keeps the one that was shown.
func (s *State) show(ses Session) {
	if s.Shown.ID != "" && s.Shown.ID != ses.ID {
		s.keepOther(s.Shown)
	}
	s.forgetOther(ses.ID)
	s.Shown = ses
}

// keepOther keeps a session that is not shown.
func (s *State) keepOther(ses Session) {
	s.forgetOther(ses.ID)
	s.Others = append(slices.Clip(s.Others), ses)
	s.Others = s.Others[max(0, len(s.Others)-maxOthers):]
}

// forgetOther removes a session from the others. No others are nil, as JSON gives them back.
func (s *State) forgetOther(id string) {
	if i := s.findOther(id); i >= 0 {
		s.Others = slices.Delete(slices.Clone(s.Others), i, i+1)
	}
	if len(s.Others) == 0 {
		s.Others = nil
	}
}

// OtherSession is the field of session_end with the session of another program of the agent that runs: it goes on.
const OtherSession = "other_session"

// endSession ends one session. The end of an unknown session is ignored if others are known.
func (s *State) endSession(e *event) {
	reason := e.Text(wire.FieldReason)
	isReplaced := reason == "clear" || reason == "resume" // its program goes on
	if s.isKnown() && s.SessionOf(e.session) == nil {
		return
	}
	ses, isShown := s.sessionFor(e)
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
	if isKnownOther := !isShown && s.isKnown(); isKnownOther {
		s.keepOther(ses)
		return
	}
	s.store(e, ses, before, true)
	s.goOn(e.Text(OtherSession))
}

// goOn shows another session once the shown one is over: one that goes on with its runner, was heard from since the ended one
// began, or is said to run; rather one that works, and then the newest.
func (s *State) goOn(running string) {
	var next *Session
	for _, ses := range s.Others {
		goesOn := s.isRun() && !s.Shown.IsReplaced || ses.LastSeq > s.Shown.FirstSeq || ses.ID == running
		if !ses.isOver() && goesOn && (next == nil || ses.isActive() || !next.isActive()) {
			next = &ses
		}
	}
	if next != nil {
		s.show(*next)
	}
}

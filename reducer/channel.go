package reducer

import (
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// A question on the session channel is the agent's own word, and not a dialog of its program: turns go on and end beside
// it, mail is handed over, and a person's message answers it. It ends with the agent's program.

// isOnChannel reports whether the agent asks on its session channel: with a command or a file, and not about a turn or
// a dialog of the program that it feeds the events of.
func (e *event) isOnChannel() bool {
	isOfProgram := e.session != "" || e.turn != "" || e.idOf("id") != ""
	return e.kind == "waiting_for_input" && (e.source == "cli" || e.source == "drop") && !isOfProgram
}

// askOnChannel adds a question. The same question once more keeps its time.
func (s *State) askOnChannel(e *event) {
	w := waitingOf(e, Question)
	w.Since, w.Source, w.IsOnChannel = e.at, e.source, true
	w.cut()
	isKnown := slices.ContainsFunc(s.Asked, func(old Waiting) bool { return old.Prompt == w.Prompt })
	if !isKnown && len(s.Asked) < maxRequests {
		s.Asked = append(slices.Clip(s.Asked), w)
	}
	s.AskedSeq = e.seq
	if s.Session().isOver() { // it is back
		s.saveSession(e, newSession(e, s.Session(), Unknown, ""), "")
	}
}

// answerOnChannel takes human input that the agent received as the answer to what it had asked before that was sent.
func (s *State) answerOnChannel(e *wire.Event) {
	isReceived := e.Kind == wire.EventRead || e.Kind == wire.EventInjected && e.Field("as") == ""
	if !isReceived || e.Field("type") != wire.TypeHumanInput {
		return
	}
	sent := e.MessageID().Time()
	s.Asked = slices.DeleteFunc(slices.Clone(s.Asked), func(w Waiting) bool {
		return !sent.Before(w.Since.Truncate(time.Millisecond))
	})
}

// waitsOnChannel reports whether, while this turn is shown, the agent waits for an answer on its channel rather than
// works on, and since when.
func (s *State) waitsOnChannel(ses *Session) (since time.Time, waits bool) {
	n := len(s.Asked)
	if n == 0 {
		return since, false
	}
	switch ses.Word() {
	case WordStarting, WordError, WordLimited, WordBlocked:
		return since, false
	case WordBusy:
		return s.Asked[n-1].Since, ses.LastSeq < s.AskedSeq
	}
	return slices.MaxFunc([]time.Time{s.Asked[0].Since, ses.Since}, time.Time.Compare), true
}

// Word returns what the agent does in one word, as far as events tell.
func (s *State) Word() Word {
	ses := s.Session()
	if _, waits := s.waitsOnChannel(ses); waits {
		return WordBlocked
	}
	return ses.Word()
}

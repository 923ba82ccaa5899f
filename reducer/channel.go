package reducer

import (
	"slices"
	"time"

	"github.com/agentteammail/atm/wire"
)

// A question on the session channel is the agent's own word, and not a dialog of its program: turns go on and end beside
// it, mail is handed over, and a person's message answers it. It ends with the agent's program.

// Draft is something that the agent has made and announced on its session channel, for people to review.
type Draft struct {
	ID        wire.UUID `json:"id"`
	InSession string    `json:"interactive_session,omitempty"` // "": it names none
	At        time.Time `json:"at"`                            // when it was first announced
	Seq       uint64    `json:"seq"`                           // of the event then
	Summary   string    `json:"summary,omitempty"`
	Artifacts uint64    `json:"artifact_count,omitempty"`
}

// Goal is a goal that the agent said on its session channel that it has reached.
type Goal struct {
	ID        wire.UUID `json:"id"`
	InSession string    `json:"interactive_session,omitempty"` // "": it names none
	At        time.Time `json:"at"`
}

// addDraft adds a draft, or renews the words of one that is announced again.
func (s *State) addDraft(e *event) {
	id, err := wire.ParseUUID(e.Text("draft_id"))
	if err != nil {
		return
	}
	artifacts, _ := e.Uint("artifact_count")
	d := Draft{id, shortID(e.Text(wire.FieldSession)), e.at, e.seq, wire.Clip(e.Text("summary"), maxText), artifacts}
	s.Drafts = slices.Clone(s.Drafts)
	if i := slices.IndexFunc(s.Drafts, func(old Draft) bool { return old.ID == id }); i >= 0 {
		d.At, d.Seq = s.Drafts[i].At, s.Drafts[i].Seq
		s.Drafts[i] = d
		return
	}
	s.Drafts = append(s.Drafts, d)
	s.Drafts = s.Drafts[max(0, len(s.Drafts)-maxDrafts):]
}

// addGoal adds a goal that is reached.
func (s *State) addGoal(e *event) {
	if id, err := wire.ParseUUID(e.Text("goal_id")); err == nil {
		s.Goals = append(slices.Clone(s.Goals), Goal{id, shortID(e.Text(wire.FieldSession)), e.at})
		s.Goals = s.Goals[max(0, len(s.Goals)-maxGoals):]
	}
}

// isOnChannel reports whether the agent asks with a command or a file: a person's message answers that.
func (e *event) isOnChannel() bool {
	return e.kind == wire.WaitingForInput && (e.source == wire.SourceCLI || e.source == wire.SourceDrop)
}

// asksBesideTurns reports whether the agent asks beside what its program does, and not in a turn or session of the program
// that it feeds the events of. The events of a program that atm runs are fed by its runner.
func (s *State) asksBesideTurns(e *event) bool {
	isOfProgram := e.session != "" || e.turn != "" || e.idOf("id") != ""
	return e.isOnChannel() && (s.isRun() || !isOfProgram)
}

// askOnChannel adds a question. The same question once more keeps its time.
func (s *State) askOnChannel(e *event) {
	w := waitingOf(e, Question)
	w.Since, w.Source, w.IsOnChannel, w.InSession = e.at, e.source, true, e.Text(wire.FieldSession)
	w.cut()
	isKnown := slices.ContainsFunc(s.Asked, func(old Waiting) bool { return old.Prompt == w.Prompt && old.InSession == w.InSession })
	if !isKnown && len(s.Asked) < maxRequests {
		s.Asked = append(slices.Clip(s.Asked), w)
	}
	s.AskedSeq = e.seq
	if s.Session().isOver() { // it is back
		s.store(e, newSession(e, s.Session(), Unknown, ""), "", true)
	}
}

// answerOnChannel takes a person's message that the agent received as the answer to what it had asked before that was sent,
// in the same session if both name one.
func (s *State) answerOnChannel(e *wire.Event) {
	isReceived := e.Kind == wire.EventRead || e.Kind == wire.EventInjected && e.Field("as") == ""
	if !isReceived || e.Field("type") != wire.TypeHumanInput {
		return
	}
	sent := e.MessageID().Time()
	in := e.Field(wire.FieldSession)
	isAnswered := func(w Waiting) bool {
		isInIt := w.InSession == "" || in == "" || w.InSession == in
		return w.IsOnChannel && isInIt && !sent.Before(w.Since.Truncate(time.Millisecond))
	}
	s.Asked = slices.DeleteFunc(slices.Clone(s.Asked), isAnswered)
	ses := &s.Shown
	if !slices.ContainsFunc(ses.Requests, isAnswered) {
		return
	}
	ses.Requests = slices.DeleteFunc(slices.Clone(ses.Requests), isAnswered)
	switch {
	case len(ses.Requests) > 0:
		ses.showRequest()
	case ses.Turn.IsOpen():
		ses.setActivity(Thinking, "")
	default:
		ses.setActivity(Idle, "")
	}
	if ses.Word() != WordBlocked {
		ses.Since = e.At
	}
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

// Word returns what the agent does in one word, as far as events tell. View.Word knows more.
func (s *State) Word() Word {
	ses := s.Session()
	if _, waits := s.waitsOnChannel(ses); waits {
		return WordBlocked
	}
	return ses.Word()
}

package sessions

import (
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// Capture says what becomes output of the agent's sessions. The recording has everything.
type Capture string

const (
	Pipe Capture = "pipe" // the agent's answers
	Log  Capture = "log"  // nothing: the session's log has the answers of the turns
)

// captureWords emits what an agent says in its turn, as it comes.
func (f *follower) captureWords(e *wire.Event) {
	if f.Capture == Pipe && e.Source == wire.SourceACP {
		f.hasSaid = f.hasSaid || len(f.alive) > 0
		f.emit(e.Text("delta"), e.Seq)
	}
}

// captureAnswer emits the answer of a turn that has ended, if its words were not emitted as they came.
func (f *follower) captureAnswer(e *wire.Event) {
	if f.Capture == Pipe && !f.hasSaid {
		f.emit(session.AnswerOf(e), e.Seq)
	}
	f.hasSaid = false
}

// emit appends output to the agent's events, for the only session that is alive or else for all. of is the seq of the
// event whose answer, or words, this repeats.
func (f *follower) emit(text string, of uint64) {
	alive := f.alive
	if text == "" || len(alive) == 0 {
		return
	}
	var id wire.UUID
	if len(alive) == 1 {
		id = alive[0]
	}
	events, err := session.Events(id, foreign.SessionEvent{Kind: wire.AgentOutput, Stream: "std_out", Content: text})
	if err != nil {
		f.run.Log.Error("appending output", "err", err)
	}
	for _, e := range events {
		f.run.Append(e.With(session.FieldAnswer, of))
	}
}

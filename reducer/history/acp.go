package history

import (
	"cmp"
	"encoding/json"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// AcpSession folds an agent's events into its current session as vtcode's client keeps it, from the session's start or
// from an event with the whole record. Once the agent waits for its next prompt so does the session; until somebody says
// so, the state after a turn is how the turn ended. It is false if no event names a session.
func AcpSession(events []wire.Event, known reducer.Evidence) (foreign.AcpSession, bool) {
	past := Of(events)
	shown := past.State().Session()
	if shown.ID == "" {
		return foreign.AcpSession{}, false
	}
	record, recordSeq := foldACPRecord(events, shown.ID)
	hasEnded := false
	for _, t := range past.Turns(0) {
		if t.Session == shown.ID {
			hasEnded = hasEnded || t.EndedBy.Seq > recordSeq
			if cmp.Or(t.BeganBy.Seq, t.EndedBy.Seq) > recordSeq {
				record.TurnCount++
			}
		}
	}
	word := past.State().Evaluate(known).Word
	if shown.Turn.IsOpen() || hasEnded || word == reducer.WordBlocked {
		record.State = acpState(shown, word)
	}
	return record, true
}

// foldACPRecord folds a session's events into its record. seq is the event that had the whole record, or 0; the record's
// state and turn count are those of that event.
func foldACPRecord(events []wire.Event, id string) (record foreign.AcpSession, seq uint64) {
	var metadata json.RawMessage
	isMade := false
	for i := range events {
		e := &events[i]
		b := e.Body()
		switch {
		case e.Kind == wire.SessionNew && !isMade: // it names no session, and may precede this one
			metadata = b.Raw("metadata")
			continue
		case e.Session != id && (e.Session != "" || e.Wire == nil || !isMade):
			continue // an answer, which is a wire event, names no session
		case e.Kind == wire.SessionStart:
			if own := b.Raw("metadata"); own != nil {
				metadata = own
			}
			if record.UnmarshalJSON(acpRecord(id, b)) == nil {
				isMade, seq = true, e.Seq
				continue
			}
		}
		if !isMade {
			record, isMade = foreign.NewAcpSession(id, e.At), true
		}
		record.SetState(record.State, e.At)
	}
	record.Metadata = metadata
	return record, seq
}

// acpRecord returns the fields of a session's record that an event has.
func acpRecord(id string, b wire.Body) []byte {
	record := wire.Object{{Name: "session_id", Value: wire.Quote(id)}}
	for _, name := range []string{"state", "created_at", "last_activity_at", "turn_count"} {
		if raw := b.Raw(name); raw != nil {
			record = record.With(name, raw)
		}
	}
	return record.Encode()
}

func acpState(shown *reducer.Session, word reducer.Word) foreign.AcpSessionState {
	last := shown.End()
	switch {
	case word == reducer.WordBlocked:
		return "awaiting_input"
	case shown.Turn.IsOpen() && word != reducer.WordOff:
		return "active"
	case shown.Turn.IsOpen():
		return "failed" // with its program
	case shown.Turn.Status == reducer.TurnIdle && word != reducer.WordOff: // however the last turn ended
		return "awaiting_input"
	case (last == nil || last.Status == reducer.Completed) && word == reducer.WordOff:
		return "completed"
	case last == nil || last.Status == reducer.Completed:
		return "awaiting_input"
	case last.Status == reducer.Interrupted:
		return reducer.Cancelled
	}
	return foreign.AcpSessionState(last.Status) // cancelled, failed, awaiting_input
}

package teams

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// ACPSession folds a member's events into its current session as clients of the older ACP keep it (acp.AcpSession),
// from the session's start or from an event with the whole record. The state after a turn is how the turn ended.
func (t *Team) ACPSession(name wire.Name) (json.RawMessage, error) {
	running, err := t.Running(name)
	events, unreadable := t.Box(name).Log().Tail(func(e *wire.Event) bool {
		return e.Kind == "session_start" && e.Source == "acp" && e.Text("source") == "startup"
	})
	if err := cmp.Or(err, unreadable); err != nil {
		return nil, err
	}
	ts := foldTurns(events)
	turn := ts.state.Turn()
	if turn.Session == "" {
		return nil, fmt.Errorf("the session of %s is unknown: %w", name, session.ErrNotFound)
	}
	record, recordSeq, turnCount := foldACPRecord(events, turn.Session)
	hasEnded := false
	for _, t := range ts.list {
		if t.Session == turn.Session {
			hasEnded = hasEnded || t.EndedBy.Seq > recordSeq
			if cmp.Or(t.BeganBy.Seq, t.EndedBy.Seq) > recordSeq {
				turnCount++
			}
		}
	}
	record["turn_count"] = turnCount
	word := ts.state.Evaluate(reducer.Evidence{Now: time.Now(), IsRunnerLocked: running}).Word
	if turn.IsOpen() || hasEnded || word == reducer.WordBlocked {
		record["state"] = acpState(turn, word)
	}
	return wire.MarshalAs("acp.AcpSession", record)
}

// foldACPRecord folds a session's events into its record. seq is the event that had the whole record, or 0; turnCount
// and the record's state are those of that event.
func foldACPRecord(events []wire.Event, id string) (record map[string]any, seq, turnCount uint64) {
	record = map[string]any{"session_id": id, "state": "created"}
	metadata := ""
	for i := range events {
		e := &events[i]
		b := e.Body()
		eventMetadata := string(b.Raw("metadata"))
		switch {
		case e.Kind == "session_new" && record["created_at"] == nil: // it names no session, and may precede this one
			metadata = eventMetadata
			continue
		case e.Session != id && (e.Session != "" || e.Wire == nil || record["created_at"] == nil):
			continue // an answer, which is a wire event, names no session
		case e.Kind == "session_start":
			metadata = cmp.Or(eventMetadata, metadata)
			if whole, isWhole := acpRecord(id, b); isWhole {
				record, seq = whole, e.Seq
				turnCount, _ = b.Uint("turn_count")
				continue
			}
		}
		record["created_at"], record["last_activity_at"] = cmp.Or(record["created_at"], any(e.At)), e.At
	}
	if metadata != "" {
		record["metadata"] = json.RawMessage(metadata)
	}
	return record, seq, turnCount
}

// acpRecord returns the fields of a session's record that an event has, and whether they are complete.
func acpRecord(id string, b wire.Body) (record map[string]any, isWhole bool) {
	record = map[string]any{"session_id": id}
	for _, name := range []string{"state", "created_at", "last_activity_at", "turn_count"} {
		if raw := b.Raw(name); raw != nil {
			record[name] = raw
		}
	}
	_, err := wire.MarshalAs("acp.AcpSession", record)
	return record, err == nil
}

func acpState(turn *reducer.Turn, word reducer.Word) string {
	last := turn.End()
	switch {
	case word == reducer.WordBlocked:
		return "awaiting_input"
	case turn.IsOpen() && word != reducer.WordOff:
		return "active"
	case turn.IsOpen():
		return "failed" // with its program
	case (last == nil || last.Status == reducer.Completed) && word == reducer.WordOff:
		return "completed"
	case last == nil || last.Status == reducer.Completed:
		return "awaiting_input"
	case last.Status == reducer.Interrupted:
		return reducer.Cancelled
	}
	return last.Status // cancelled, failed, awaiting_input
}

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

// ACPSession is the session that a member's events tell of, as a client of the older ACP wire keeps it
// (acp.AcpSession). It is a fold of its log since the session began, or since a record of it came whole, and so is its
// state: cancelled, failed or completed is how its last turn ended.
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
		return nil, fmt.Errorf("no session of %s is known: %w", name, session.ErrNotFound)
	}
	out := map[string]any{"session_id": turn.Session}
	metadata, state := "", "created"
	var record, count uint64 // the event that is a whole record, and the turns before it
	for i := range events {
		e := &events[i]
		b := e.Body()
		said := string(b.Raw("metadata"))
		switch {
		case e.Kind == "session_new" && out["created_at"] == nil: // it names no session, and this may be the next
			metadata = said
			continue
		case e.Session != turn.Session && (e.Session != "" || e.Wire == nil || out["created_at"] == nil):
			continue // though an answer, which comes by wire, names no session
		case e.Kind == "session_start":
			metadata = cmp.Or(said, metadata)
			if whole, ok := acpRecord(turn.Session, b); ok {
				out, record, state = whole, e.Seq, b.Text("state")
				count, _ = b.Uint("turn_count")
				continue
			}
		}
		out["created_at"], out["last_activity_at"] = cmp.Or(out["created_at"], any(e.At)), e.At
	}
	since, hasEnded := 0, false
	for _, one := range ts.list {
		if one.Session != turn.Session {
			continue
		}
		hasEnded = hasEnded || one.EndedBy.Seq > record
		if cmp.Or(one.BeganBy.Seq, one.EndedBy.Seq) > record {
			since++
		}
	}
	word := ts.state.Evaluate(reducer.Evidence{Now: time.Now(), Held: running}).Word
	if turn.IsOpen() || hasEnded || word == reducer.WordBlocked {
		state = acpState(turn, word)
	}
	out["state"], out["turn_count"] = state, count+uint64(since)
	if metadata != "" {
		out["metadata"] = json.RawMessage(metadata)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return wire.Canonical("acp.AcpSession", raw)
}

// acpRecord is a session's record that an event brings, if that is whole.
func acpRecord(id string, b wire.Body) (record map[string]any, isWhole bool) {
	record = map[string]any{"session_id": id}
	for _, name := range []string{"state", "created_at", "last_activity_at", "turn_count"} {
		if raw := b.Raw(name); raw != nil {
			record[name] = raw
		}
	}
	raw, err := json.Marshal(record)
	if err == nil {
		_, err = wire.Canonical("acp.AcpSession", raw)
	}
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
		return "failed" // with its program, of which nothing more was heard
	case last == nil || last.Status == reducer.Completed:
		return "completed"
	case last.Status == reducer.Interrupted:
		return reducer.Cancelled
	}
	return last.Status // cancelled, failed, awaiting_input
}

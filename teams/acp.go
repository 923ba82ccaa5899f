package teams

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
)

// ACPSession is the session that a member's events tell of, as a client of the older ACP wire keeps it
// (acp.AcpSession). It is a fold of its log since the session began, and so is its state: cancelled, failed
// or completed is how its last turn ended.
func (t *Team) ACPSession(name wire.Name) (json.RawMessage, error) {
	running, err := t.Running(name)
	events, unreadable := t.Box(name).Log().Tail(func(e *wire.Event) bool {
		return e.Kind == "session_start" && e.Source == "acp" && e.Text("source") == "startup"
	})
	if err := cmp.Or(err, unreadable); err != nil {
		return nil, err
	}
	ts := turnsOf(events)
	turn := ts.state.Turn()
	if turn.Session == "" {
		return nil, fmt.Errorf("no session of %s is known: %w", name, session.ErrNotFound)
	}
	count := len(slices.DeleteFunc(slices.Clone(ts.list), func(one *Turn) bool { return one.Session != turn.Session }))
	word := ts.state.Evaluate(reducer.Evidence{Now: time.Now(), Held: running}).Word
	out := map[string]any{"session_id": turn.Session, "state": acpState(turn, word, count), "turn_count": count}
	metadata := ""
	for i := range events {
		e := &events[i]
		said := string(e.Body().Raw("metadata"))
		if e.Kind == "session_new" && out["created_at"] == nil { // it names no session, and this may be the next
			metadata = said
		} else if e.Session == turn.Session {
			if e.Kind == "session_start" {
				metadata = cmp.Or(said, metadata)
			}
			out["created_at"], out["last_activity_at"] = cmp.Or(out["created_at"], any(e.At)), e.At
		}
	}
	if metadata != "" {
		out["metadata"] = json.RawMessage(metadata)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return wire.Canonical("acp.AcpSession", raw)
}

func acpState(turn *reducer.Turn, word reducer.Word, turns int) string {
	last := turn.End()
	switch {
	case word == reducer.WordBlocked:
		return "awaiting_input"
	case turn.IsOpen() && word != reducer.WordOff:
		return "active"
	case turn.IsOpen():
		return "failed" // with its program, of which nothing more was heard
	case turns == 0:
		return "created"
	case last == nil || last.Status == reducer.Completed:
		return "completed"
	case last.Status == reducer.Interrupted:
		return reducer.Cancelled
	}
	return last.Status // cancelled, failed, awaiting_input
}

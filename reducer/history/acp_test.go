package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// A session moves with what its program says.
func TestAcpSession(t *testing.T) {
	var events []wire.Event
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, ok := history.AcpSession(events, reducer.Evidence{Now: at}); ok {
		t.Error("there is a session without an event")
	}
	for _, c := range []struct{ line, want string }{
		{`{"session_id":"s1","state":"created"}`, "created 0 2025-01-01T00:00:01+00:00"},
		{`{"session_id":"s1","content":[{"type":"text","text":"Hello"}]}`, "active 1 2025-01-01T00:00:02+00:00"},
		{`{"session_id":"s1","turn_id":"t1","update_type":"turn_complete","status":"completed"}`, "awaiting_input 1 2025-01-01T00:00:03+00:00"},
		{`{"session":{"session_id":"s1","state":"failed","created_at":"x","turn_count":7}}`, "failed 7 none"},
	} {
		e, err := foreign.Adopt([]byte(c.line))
		if err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Second)
		e.Seq, e.At, e.Team, e.Agent, e.Source = uint64(len(events)+1), at, "main", "bob", "cli"
		events = append(events, e)
		s, ok := history.AcpSession(events, reducer.Evidence{Now: at})
		last := "none"
		if s.LastActivityAt != nil {
			last = *s.LastActivityAt
		}
		if got := fmt.Sprint(s.State, " ", s.TurnCount, " ", last); !ok || got != c.want {
			t.Errorf("%s: %s, not %s", c.line, got, c.want)
		}
	}
}

package reducer

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/wire"
)

// A draft is kept with the time when it was first announced and its newest words, a goal each time it is reached. A fresh
// start ends both.
func TestDraftsAndGoals(t *testing.T) {
	const id, goal = "6f1c2a34-0b7e-4c1d-9a55-0123456789ab", "11111111-2222-4333-8444-555555555555"
	var s State
	for i, fields := range []string{
		`"kind":"draft_ready","draft_id":"` + id + `","summary":"Auth"`,
		`"kind":"draft_ready","draft_id":"none of them"`,
		`"kind":"draft_ready","wire":{"event_type":"draft_ready","draft_id":"` + id + `","summary":"Auth 2","artifact_count":3}`,
		`"kind":"goal_complete","goal_id":"` + goal + `","interactive_session":"x"`,
	} {
		s.Apply(logged(t, uint64(i+1), fields))
	}
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	if diff := cmp.Diff([]Draft{{ID: id, At: at, Seq: 1, Summary: "Auth 2", Artifacts: 3}}, s.Drafts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Goal{{ID: goal, InSession: "x", At: at}}, s.Goals); diff != "" {
		t.Error(diff)
	}
	for i := range 2 * maxDrafts {
		s.Apply(logged(t, s.Seq+1, fmt.Sprintf(`"kind":"draft_ready","draft_id":"%08x-2222-4333-8444-555555555555"`, i)))
	}
	if n := len(s.Drafts); n != maxDrafts || s.Drafts[n-1].ID != "000000c7-2222-4333-8444-555555555555" {
		t.Errorf("%d drafts", n)
	}
	if s.Apply(&wire.Event{Team: s.Team, Agent: s.Agent, Source: wire.SourceCLI, Kind: wire.FreshStart, Seq: s.Seq + 1}); len(s.Drafts)+len(s.Goals) > 0 {
		t.Errorf("%v, %v", s.Drafts, s.Goals)
	}
}

package reducer

import (
	"cmp"
	"encoding/json"
	"os"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/wire/foreign"
)

// The fold agrees with the daemon's AgentStreamState.apply. Where ours is stricter, the vector has ours_after_each.
func TestVectors(t *testing.T) {
	data, err := os.ReadFile("../testdata/wire/behaviour.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Function string                     `json:"function"`
		Name     string                     `json:"name"`
		Events   []json.RawMessage          `json:"events"`
		Theirs   []foreign.AgentStreamState `json:"states_after_each"`
		Ours     []foreign.AgentStreamState `json:"ours_after_each"`
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, v := range vectors {
		if v.Function != "AgentStreamState.apply" {
			continue
		}
		n++
		want := v.Theirs
		if v.Ours != nil {
			want = v.Ours
		}
		if len(want) != len(v.Events) {
			t.Fatal(v.Name, "has", len(want), "states")
		}
		var s State
		for i, raw := range v.Events {
			e, err := foreign.Adopt(raw)
			if err != nil {
				t.Fatal(v.Name, err)
			}
			e.Seq, e.Team, e.Agent = uint64(i+1), "main", "a"
			s.Apply(&e)
			if d := gocmp.Diff(want[i], streamState(s.Session().Turn)); d != "" {
				t.Errorf("%s, after %d: %s", v.Name, i+1, d)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d vectors", n)
	}
}

// streamState returns what the daemon of agent-team-mail would know of the turn.
func streamState(t Turn) foreign.AgentStreamState {
	known := func(text string) *string {
		if text == "" {
			return nil
		}
		return &text
	}
	status := foreign.StreamTurnStatus(cmp.Or(t.Status, TurnIdle))
	return foreign.AgentStreamState{TurnID: known(t.ID), ThreadID: known(t.Thread), Transport: known(t.Transport), TurnStatus: status}
}

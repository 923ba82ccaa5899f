package teams

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/agentteammail/atm/reducer"
)

// Members are counted as missiond's PTY manager counts its slots.
func TestStatsVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../testdata/wire/behaviour.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Function string
		States   []string
		Result   json.RawMessage
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	words := map[string]reducer.Word{
		"starting": reducer.WordStarting, "idle": reducer.WordIdle, "thinking": reducer.WordBusy, "responding": reducer.WordBusy,
		"tool_running": reducer.WordBusy, "confirming": reducer.WordBlocked, "exited": reducer.WordOff, "error": reducer.WordError,
	}
	n := 0
	for _, c := range all {
		if c.Function != "PTYManager.get_stats" {
			continue
		}
		n++
		var members []Member
		for _, state := range c.States {
			members = append(members, Member{State: words[state]})
		}
		var want Stats
		if err := json.Unmarshal(c.Result, &want); err != nil {
			t.Fatal(err)
		}
		if got := StatsOf(members); got != want {
			t.Errorf("%v: %+v, not %+v", c.States, got, want)
		}
	}
	if n != 6 {
		t.Errorf("%d cases, not 6", n)
	}
}

package presence

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/reducer"
)

// Members are counted as missiond's PTY manager counts its slots.
func TestStatsVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../testdata/wire/behaviour.json")
	teamtest.Must(t, err)
	var all []struct {
		Function string
		States   []string
		Result   json.RawMessage
	}
	teamtest.Must(t, json.Unmarshal(data, &all))
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
		teamtest.Must(t, json.Unmarshal(c.Result, &want))
		if got := StatsOf(members); got != want {
			t.Errorf("%v: %+v, not %+v", c.States, got, want)
		}
	}
	if n != 6 {
		t.Errorf("%d cases, not 6", n)
	}
}

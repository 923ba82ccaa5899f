package ptyrun

import (
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer"
)

// A program goes on with the conversation that events have told, else with the one that was noted of its last run.
func TestResumesWhatWasTold(t *testing.T) {
	codex, _ := driver.Named("codex")
	for _, c := range []struct{ told, noted, want, why string }{
		{"t1", "t2", "codex resume t1", ""},
		{"", "t2", "codex resume t2", ""},
		{"", "", "codex", "nothing has told the id of its conversation"},
	} {
		r := &runner{
			Options: Options{Command: []string{"codex"}, Driver: codex, Resume: true, Conversation: func(run string) string {
				if run != "r1" {
					t.Errorf("it asks for the run %q", run)
				}
				return c.noted
			}},
			Run: &run.Run{State: reducer.State{Run: &reducer.Run{ID: "r1", Conversation: c.told}}},
		}
		if argv, how := r.resume(); strings.Join(argv, " ") != c.want || how.fresh != c.why {
			t.Errorf("told %q, noted %q: %q, %+v", c.told, c.noted, argv, how)
		}
	}
}

package presence

import (
	"testing"

	"github.com/agentteammail/atm/reducer"
)

// What a program says of its end, in words of its own, is shown as people say it, or not at all.
func TestStateDetail(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		state        reducer.Word
		detail, want string
	}{
		{reducer.WordOff, "other", ""},
		{reducer.WordOff, "prompt_input_exit", ""},
		{reducer.WordOff, "logout", "logged out"},
		{reducer.WordOff, "SIGKILL", "killed by SIGKILL"},
		{reducer.WordOff, "exit 1", "exit 1"},
		{reducer.WordOff, "done for today", "done for today"},
		{reducer.WordBlocked, "trust", "asks whether to trust its directory"},
		{reducer.WordBlocked, "permission", "permission"},
		{reducer.WordBusy, "other", "other"}, // a tool of that name
	} {
		m := Member{State: tt.state, Detail: tt.detail}
		if got := m.StateDetail(); got != tt.want {
			t.Errorf("%s %s: %q", tt.state, tt.detail, got)
		}
		m.addNote("sh still runs")
		if got := m.StateDetail(); got != (map[bool]string{true: tt.want + "; "}[tt.want != ""])+"sh still runs" {
			t.Errorf("%s %s, with a note: %q", tt.state, tt.detail, got)
		}
	}
}

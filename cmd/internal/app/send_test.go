package app

import (
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/push"
	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/reducer"
)

func TestCheckText(t *testing.T) {
	for _, text := range []string{"", " \n", "a\x00b", "\xff", strings.Repeat("x", MaxText+1)} {
		if CheckText(text) == nil {
			t.Errorf("%.20q is taken", text)
		}
	}
}

// What the sender reads of mail that the program takes itself is what then happens.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	for state, want := range map[reducer.Word]string{
		reducer.WordIdle:    "idle: it takes it now",
		reducer.WordBusy:    "busy: it takes it at once, or behind what it does",
		reducer.WordBlocked: "blocked: it takes it once that is answered",
	} {
		if got := handed(&presence.Member{State: state}, push.Outcome{By: agents.Plugin}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

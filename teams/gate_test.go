package teams

import (
	"testing"

	"github.com/agentteammail/atm/wire"
)

// Of a member that is retired meanwhile nothing is known.
func TestForecastUnknown(t *testing.T) {
	m, err := newTeam(t, newRoot(t)).Summary("bob")
	if got := m.Forecast(&wire.Message{}); err == nil || got != "unknown" {
		t.Errorf("%q, %v", got, err)
	}
}

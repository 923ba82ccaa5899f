package presence

import (
	"testing"

	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// The evidence that a program has ended is as old as its end.
func TestSourceOfAnEnd(t *testing.T) {
	t.Parallel()
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "bob")
	for _, kind := range []string{wire.Spawned, wire.TurnIdle, wire.Exited} {
		teamtest.Must(t, team.Box("bob").Log().Append(t.Context(), wire.Event{Source: wire.SourcePTY, Kind: kind}))
	}
	m, err := Status(t.Context(), team, "bob")
	teamtest.Must(t, err)
	if len(m.Sources) != 1 || m.Sources[0].Says != "exited" || !m.Sources[0].At.Equal(*m.Since) {
		t.Errorf("%+v, not since %v", m.Sources, m.Since)
	}
}

package teamdir_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// Mail is kept by its sender's name, and by that of the member whose process sent it in another's. What the agent's work
// would hang without comes all the same.
func TestKept(t *testing.T) {
	t.Parallel()
	team := teamtest.NewTeam(t, teamtest.NewRoot(t, nil), "alice", "bob", "carol", "lead")
	file := filepath.Join(team.Dir().Path(), "team.toml")
	write := func(toml string) {
		t.Helper()
		teamtest.Must(t, os.WriteFile(file, []byte(toml), 0o600))
	}
	const only = "[members.alice]\nrole = \"coder\"\n[members.bob]\nfrom = [\"lead\", \"@coder\", \"carol@laptop\"]\n"
	write(only)
	asked := teamtest.Post(t, team, "bob", "carol", "which port?")
	alices := teamtest.Post(t, team, "bob", "alice", "which port?")
	address := func(s string) wire.Address {
		a, err := wire.ParseAddress(s, "main")
		teamtest.Must(t, err)
		return a
	}
	mail := func(from string, with ...func(*wire.Message)) *wire.Message {
		m := &wire.Message{ID: wire.NewID(), From: address(from), To: []wire.Address{address("bob")}, Body: "hi"}
		for _, f := range with {
			f(m)
		}
		return m
	}
	ofType := func(kind string) func(*wire.Message) { return func(m *wire.Message) { m.Type = kind } }
	replyTo := func(id wire.ID) func(*wire.Message) { return func(m *wire.Message) { m.InReplyTo = id } }
	by := func(agent string) func(*wire.Message) {
		return func(m *wire.Message) { m.Origin = &wire.Origin{Via: "cli", Agent: agent} }
	}
	const takes = "bob takes mail from @coder, carol@laptop and lead only"
	says := func(m *wire.Message, want string) {
		t.Helper()
		if got := team.HoldReason(m, "bob").Why; got != want {
			t.Errorf("%s from %s by %v: %q, not %q", m.Kind(), m.From, m.Origin, got, want)
		}
	}
	says(mail("lead"), "")
	says(mail("alice"), "")
	says(mail("bob"), "")
	says(mail("carol@main.laptop"), "")
	says(mail("carol"), takes)
	says(mail("lead@main.laptop"), takes)
	says(mail("lead@other"), takes)
	says(mail("drop@main"), takes)
	says(mail("carol", ofType(wire.TypeAck)), "")
	says(mail("carol", ofType(wire.TypeNotice)), "")
	says(mail("carol", ofType(wire.TypePermissionRequest)), "")
	says(mail("carol", ofType(wire.TypeHumanInput)), takes)
	says(mail("carol", replyTo(asked)), "")
	says(mail("carol", replyTo(alices)), takes)
	says(mail("carol", replyTo(wire.NewID())), takes)
	says(mail("lead", by("carol@main")), takes)
	says(mail("lead", by("bob@main")), "")
	says(mail("carol", replyTo(asked), by("alice@main")), takes)
	if got := team.HoldReason(mail("carol"), "alice"); got != (teamdir.Hold{}) {
		t.Errorf("alice takes everybody's: %+v", got)
	}

	// A runner keeps the rules of its start, so that nothing comes through a file that is being written.
	c, err := team.Config()
	teamtest.Must(t, err)
	teamtest.Must(t, team.SavePolicy("bob", c.Policy("bob")))
	write("[members.bob\n")
	says(mail("carol"), takes)
	hold, err := claim.HoldRunner(t.Context(), team.Store, "bob")
	teamtest.Must(t, err)
	defer hold.Release()
	says(mail("carol"), takes)
	write("")
	says(mail("carol"), takes)
	says(mail("lead"), "")
}

package app

import (
	"strings"
	"testing"

	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// What is sent after a command has entered another team is from the sender's own member, not from one that is called alike.
func TestSendFromMyTeam(t *testing.T) {
	s := newScope(t)
	web, err := s.Root.CreateTeam("web")
	must(t, err)
	for _, name := range []wire.Name{"alice", "bob"} {
		must(t, web.Store.Create(t.Context(), name))
	}
	bob, err := s.EnterTeamOf("bob@web")
	must(t, err)
	m := &wire.Message{Body: "hello"}
	out, err := s.Send(t.Context(), &teams.Message{To: []string{bob.Address().String()}, Content: m})
	must(t, err)
	must(t, out.Err("sent to"))
	if got, err := bob.Get(m.ID); err != nil || got.From != s.Me.Address() {
		t.Errorf("from %s, %v", got.From, err)
	}
}

func TestCheckText(t *testing.T) {
	for _, text := range []string{"", " \n", "a\x00b", "\xff", strings.Repeat("x", MaxText+1)} {
		if CheckText(text) == nil {
			t.Errorf("%.20q is taken", text)
		}
	}
}

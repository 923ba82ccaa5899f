package post

import (
	"errors"
	"testing"

	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// What the origin of an answer says against its sender: a person's answer needs more than an agent's.
func TestCheckAnswer(t *testing.T) {
	r := teamtest.NewRoot(t, nil)
	team := teamtest.NewTeam(t, r, "alice", "bob", "carol", "me")
	teamtest.Must(t, team.Dir().Replace("team.toml", []byte("[members.me]\nperson = true\n"), false))
	address := func(name wire.Name) wire.Address { return team.Box(name).Address() }
	asked := &wire.Message{ID: wire.NewID(), From: address("alice"), To: []wire.Address{address("bob"), address("me")}}
	for _, c := range []struct {
		about         string
		origin        *wire.Origin
		agent, person string // why it does not count
	}{
		{"a command", &wire.Origin{Via: "cli"}, "", ""},
		{"its own program", &wire.Origin{Via: "cli", Agent: "SELF"}, "", "sent from an agent's environment"},
		{"some agent's program", &wire.Origin{Via: "cli", Agent: wire.UnknownAgent}, "", "sent from an agent's environment"},
		{"another's program", &wire.Origin{Via: "cli", Agent: "carol@main"}, "sent by a process of carol", "sent by a process of carol"},
		{"the program of one elsewhere", &wire.Origin{Via: "cli", Agent: "carol@web"}, "sent by a process of carol@web", "sent by a process of carol@web"},
		{"a file", &wire.Origin{Via: "drop"}, "", "dropped as a file"},
		{"a file of another program", nil, "", "not sent with a command of atm"},
		{"MCP", &wire.Origin{Via: "mcp"}, "", "not sent with a command of atm"},
	} {
		for name, want := range map[wire.Name]string{"bob": c.agent, "me": c.person, "carol": "carol was not asked"} {
			answer := &wire.Message{From: address(name), InReplyTo: asked.ID, Origin: c.origin}
			if c.origin != nil && c.origin.Agent == "SELF" {
				answer.Origin = &wire.Origin{Via: "cli", Agent: answer.From.String()}
			}
			got := ""
			if err := CheckAnswer(r, asked, answer); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s, from %s: %q, want %q", c.about, name, got, want)
			}
		}
	}
	// Whoever is called me is a person unless team.toml says otherwise.
	file := func(name wire.Name) *wire.Message {
		return &wire.Message{From: address(name), Origin: &wire.Origin{Via: "drop"}}
	}
	teamtest.Must(t, team.Dir().Replace("team.toml", nil, false))
	if CheckAnswer(r, asked, file("me")) == nil || CheckAnswer(r, asked, file("bob")) != nil {
		t.Error("without team.toml")
	}
	teamtest.Must(t, team.Dir().Replace("team.toml", []byte("[members.me]\nrole = \"coder\"\n"), false))
	if err := CheckAnswer(r, asked, file("me")); err != nil {
		t.Error("an agent called me:", err)
	}
}

// Three who answer each other in a ring are stopped, too, although each has only two of three messages.
func TestHotRing(t *testing.T) {
	r := teamtest.NewRoot(t, nil)
	ring := []wire.Name{"alice", "bob", "carol"}
	team := teamtest.NewTeam(t, r, ring...)
	var last *wire.Message
	for i := range 2 * wire.MaxHops {
		o := &Outgoing{
			From: team.Box(ring[i%3]), To: []wire.Address{team.Box(ring[(i+1)%3]).Address()}, Message: &wire.Message{Body: "on"}, Parent: last,
		}
		_, err := Send(t.Context(), r, o)
		if i == wire.MaxHops && errors.Is(err, ErrTooManyHops) {
			return
		}
		teamtest.Must(t, err)
		last = o.Message
	}
	t.Error("it goes on")
}

package teamdir

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/rootdir"
	"github.com/agentteammail/atm/wire"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newRoot(t *testing.T) *Root { t.Helper(); return newFaultyRoot(t, nil) }

func newFaultyRoot(t *testing.T, fault durable.Fault) *Root {
	t.Helper()
	path := filepath.Join(t.TempDir(), "root")
	_, err := rootdir.Make(path)
	must(t, err)
	durable.FailNext(path, fault)
	r, err := OpenFound(rootdir.Found{Path: path, Source: rootdir.FromFlag})
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func newTeam(t *testing.T, r *Root, members ...wire.Name) *Team {
	t.Helper()
	team, err := r.CreateTeam("main")
	must(t, err)
	for _, m := range members {
		must(t, team.Create(context.Background(), m))
	}
	return team
}

func post(t *testing.T, team *Team, from, to wire.Name, body string, with ...func(*wire.Message)) wire.ID {
	t.Helper()
	m := &wire.Message{ID: wire.NewID(), From: team.Box(from).Address(), To: []wire.Address{team.Box(to).Address()}, Body: body}
	for _, f := range with {
		f(m)
	}
	p := &maildir.Post{Message: m, To: []*maildir.Box{team.Box(to)}, Sender: team.Box(from)}
	maildir.Deliver(context.Background(), p)
	must(t, p.Outcomes[0].Err)
	return m.ID
}

// sendTo sends a message as a command does.
func sendTo(team *Team, from *maildir.Box, to wire.Name, m *wire.Message) error {
	o := &Outgoing{From: from, To: []wire.Address{team.Box(to).Address()}, Message: m}
	_, err := team.root.Send(context.Background(), o)
	return err
}

// unreadOf returns the bodies of a member's unread messages.
func unreadOf(t *testing.T, team *Team, name wire.Name) (out []string) {
	t.Helper()
	if _, err := team.Box(name).Walk(context.Background(), maildir.Range{Unread: true}, func(it *maildir.Item) bool {
		out = append(out, it.Body)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

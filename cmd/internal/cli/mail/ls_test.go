package mail

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/wire"
)

// Which messages a list has: of an inbox, or of what was sent.
func TestListed(t *testing.T) {
	s := newScope(t)
	bob := s.Team.Box("bob")
	acked := deliverTo(t, s, "alice", wire.Message{Body: "acked", RequiresAck: true}, "bob")
	deliverTo(t, s, "alice", wire.Message{Body: "done"}, "bob")
	deliverTo(t, s, "alice", wire.Message{Body: "owed", RequiresAck: true}, "bob")
	readAll(t, bob)
	it, err := bob.Get(acked.ID)
	must(t, err)
	_, err = post.Ack(t.Context(), s.Root, bob, bob, it.Message, &wire.Message{Type: wire.TypeAck})
	must(t, err)
	deliverTo(t, s, "carol", wire.Message{Body: "unread"}, "bob")
	withdrawn := deliverTo(t, s, "alice", wire.Message{Body: "withdrawn", RequiresAck: true}, "bob")
	_, err = post.Withdraw(t.Context(), s.Root, s.Me, withdrawn, bob.Address(), nil)
	must(t, err)
	for name, tt := range map[string]struct {
		of   wire.Name
		o    lsOptions
		want []string
	}{
		"":             {"bob", lsOptions{}, []string{"unread"}},
		"unread":       {"bob", lsOptions{unread: true}, []string{"unread"}},
		"owed":         {"bob", lsOptions{owed: true}, []string{"owed"}},
		"unread, owed": {"bob", lsOptions{unread: true, owed: true}, []string{"owed", "unread"}},
		"done":         {"bob", lsOptions{done: true}, []string{"acked", "done"}},
		"all":          {"bob", lsOptions{all: true}, []string{"acked", "done", "owed", "unread"}},
		"from":         {"bob", lsOptions{all: true, filter: Filter{From: []wire.Address{s.Me.Address()}}}, []string{"acked", "done", "owed"}},
		"sent":         {"alice", lsOptions{sent: true}, []string{"acked", "done", "owed", "withdrawn"}},
		"sent, owed":   {"alice", lsOptions{sent: true, owed: true}, []string{"owed"}},
		"sent, none":   {"me", lsOptions{sent: true}, nil},
	} {
		p, _ := newPrinter(s, true)
		l := newListing(p, nil, nil)
		bad, err := l.add(t.Context(), s, s.Team.Box(tt.of), tt.o)
		must(t, err)
		if diff := cmp.Diff(tt.want, bodies(l.Messages)); diff != "" || bad != 0 {
			t.Errorf("%s: %d bad, %s", name, bad, diff)
		}
	}
	p, _ := newPrinter(s, true)
	l := newListing(p, nil, nil)
	_, err = l.add(t.Context(), s, bob, lsOptions{all: true, limit: 1})
	must(t, err)
	if len(l.Messages) != 1 || l.More != 3 {
		t.Errorf("with a limit of 1: %d messages, %d more", len(l.Messages), l.More)
	}
	if l.Messages[0].State == wire.Withdrawn {
		t.Error("what was withdrawn is listed")
	}
}

package mail

import (
	"strings"
	"testing"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// What was read already is not waited for, and what is not in one's inbox is not read.
func TestNewPage(t *testing.T) {
	s := newScope(t)
	read := deliverTo(t, s, "bob", wire.Message{Body: "read"}, "alice")
	readAll(t, s.Me)
	unread := deliverTo(t, s, "bob", wire.Message{Body: "unread"}, "alice")
	sent := deliverTo(t, s, "alice", wire.Message{Body: "sent"}, "bob")
	others := deliverTo(t, s, "bob", wire.Message{Body: "another's"}, "carol")
	for name, tt := range map[string]struct {
		words      []string
		ids, again int
		waits      bool
	}{
		"":         {nil, 0, 0, true},
		"mine":     {[]string{"alice"}, 0, 0, true},
		"unread":   {[]string{string(unread.ID)}, 1, 0, true},
		"read":     {[]string{string(read.ID)}, 1, 1, false},
		"both":     {[]string{string(unread.ID), string(read.ID)}, 2, 1, false},
		"sent":     {[]string{string(sent.ID)}, -1, 0, false},
		"others'":  {[]string{string(others.ID)}, -1, 0, false},
		"no id":    {[]string{"bob"}, -1, 0, false},
		"nobody's": {[]string{string(wire.NewID())}, -1, 0, false},
	} {
		p, _ := newPrinter(s, false)
		g, err := newPage(s, p, ReadOptions{IDs: tt.words, waits: true, Limit: 20})
		if (err == nil) != (tt.ids >= 0) {
			t.Errorf("%s: %v", name, err)
		} else if err == nil && (len(g.options.IDs) != tt.ids || len(g.again) != tt.again || g.waits != tt.waits) {
			t.Errorf("%s: %d ids, %d again, waits %v", name, len(g.options.IDs), len(g.again), g.waits)
		}
	}
}

// A shared inbox is only looked at.
func TestNewPageOfShared(t *testing.T) {
	s := newScope(t)
	must(t, claim.Share(s.Me))
	p, _ := newPrinter(s, false)
	if _, err := newPage(s, p, ReadOptions{}); err == nil {
		t.Error("its mail would be marked")
	}
	if _, err := newPage(s, p, ReadOptions{Peeks: true}); err != nil {
		t.Error(err)
	}
}

// How many messages a page has at most, 0 being any number.
func TestPageLimit(t *testing.T) {
	s := newScope(t)
	for name, tt := range map[string]struct {
		o    ReadOptions
		want int
	}{
		"by default":       {ReadOptions{Limit: 20}, 20},
		"full":             {ReadOptions{Limit: 20, full: true}, 0},
		"full, with limit": {ReadOptions{Limit: 3, HasLimit: true, full: true}, 3},
		"followed":         {ReadOptions{Limit: 20, follows: true}, 1},
	} {
		p, _ := newPrinter(s, false)
		g, err := newPage(s, p, tt.o)
		must(t, err)
		if g.options.Limit != tt.want {
			t.Errorf("%s: %d", name, g.options.Limit)
		}
	}
}

// Listed is what will be so once the batch is marked: nothing changes for one who peeks, nor where nothing can be marked.
func TestAfterReading(t *testing.T) {
	s := newScope(t)
	batch := func() inbox.Batch {
		return inbox.Batch{Items: []*wire.Item{
			{Message: &wire.Message{ID: wire.NewID(), Body: "plain"}, State: wire.Unread},
			{Message: &wire.Message{ID: wire.NewID(), Body: "wants an ack", RequiresAck: true}, State: wire.Unread},
			{Message: &wire.Message{ID: wire.NewID(), Body: "read before", RequiresAck: true}, State: wire.Done},
		}}
	}
	for name, tt := range map[string]struct {
		peeks   bool
		markErr error
		want    string
		owed    int
	}{
		"marked":     {false, nil, "done owed done", 1},
		"peeked":     {true, nil, "unread unread done", 0},
		"not marked": {false, mailbox.ErrNotFound, "unread unread done", 0},
	} {
		p, _ := newPrinter(s, true)
		g, err := newPage(s, p, ReadOptions{Peeks: tt.peeks})
		must(t, err)
		b := batch()
		g.unmarkable = tt.markErr
		l := g.afterReading(b, nil)
		var states []string
		for _, m := range l.Messages {
			states = append(states, string(m.State))
		}
		if got := strings.Join(states, " "); got != tt.want || len(l.Owed) != tt.owed || (l.Error != nil) != (tt.markErr != nil) {
			t.Errorf("%s: %s, owed %d, error %v", name, got, len(l.Owed), l.Error)
		}
		if b.Items[0].State != wire.Unread {
			t.Errorf("%s: the batch itself has changed", name)
		}
	}
}

// Of many that are owed the newest are named.
func TestOwedLine(t *testing.T) {
	var owed []wire.ID
	for range 8 {
		owed = append(owed, wire.NewID())
	}
	for n, want := range map[int]int{0: 0, 1: 1, 6: 6, 7: 6, 8: 6} {
		line := owedLine(owed[8-n:], &app.Given{})
		named := 0
		for i, id := range owed {
			if strings.Contains(line, id.Short(6)) {
				named++
				if i < 8-want {
					t.Errorf("of %d it names an old one: %s", n, line)
				}
			}
		}
		if named != want {
			t.Errorf("of %d it names %d: %s", n, named, line)
		}
	}
}

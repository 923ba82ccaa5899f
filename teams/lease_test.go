package teams

import (
	"context"
	"testing"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// take takes a message from an inbox for a member; "" if there is none.
func take(t *testing.T, box *mailbox.Box, by wire.Name) wire.ID {
	t.Helper()
	taker := wire.Address{Agent: by, Team: box.Address().Team}
	it, err := box.Lease(context.Background(), taker, time.Minute, mailbox.ReadOptions{}, func(*mailbox.Item, mailbox.Lease) (bool, error) { return true, nil })
	must(t, err)
	if it == nil {
		return ""
	}
	return it.ID
}

// unreadOf returns the bodies of a member's unread messages.
func unreadOf(t *testing.T, team *Team, name wire.Name) (out []string) {
	t.Helper()
	if _, err := team.Box(name).Walk(context.Background(), mailbox.Range{Unread: true}, func(it *mailbox.Item) bool {
		out = append(out, it.Body)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

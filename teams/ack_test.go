package teams

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/agentteammail/atm/mailbox"
)

// If the sender withdraws a message while it is being acknowledged, one of the two wins.
func TestAckDuringWithdraw(t *testing.T) {
	ctx := context.Background()
	var withdraw func()
	r := newFaultyRoot(t, func(op, name string) error {
		if op == "rename" && withdraw != nil && strings.Contains(name, "alice/inbox/tmp/") {
			withdraw()
		}
		return nil
	})
	team := newTeam(t, r, "alice", "bob")
	alice, bob := team.Box("alice"), team.Box("bob")
	id := post(t, team, "alice", "bob", "work")
	it, err := bob.Get(id)
	must(t, err)
	withdraw = func() {
		if state, err := r.Withdraw(ctx, alice, it.Message, bob.Address(), nil); state != mailbox.Unread || err != nil {
			t.Error(state, err)
		}
	}
	if _, err := r.Ack(ctx, bob, bob.Address(), it.Message, "", nil); !errors.Is(err, mailbox.ErrWithdrawn) {
		t.Error(err)
	}
	if got := unreadOf(t, team, "alice"); len(got) != 0 {
		t.Error("told: ", got)
	}
	if _, missing := r.AckedBy(ctx, it.Message, alice); missing == nil {
		t.Error("it counts as acknowledged")
	}
}

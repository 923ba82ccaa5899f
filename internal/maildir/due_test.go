package maildir_test

import (
	"slices"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

// What is not due is counted, listed, read, taken and typed by nobody, is found by its id, and can be withdrawn.
func TestLater(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	m := message("later")
	m.NotBefore = time.Now().Add(time.Hour)
	later, now := deliver(t, bob, m)[0], deliverN(t, bob, 1)[0]
	for range 2 { // the second time from memory
		ids, err := bob.UnreadIDs()
		must(t, err)
		all, err := bob.IDs(maildir.Everywhere)
		must(t, err)
		only, err := bob.IDs(maildir.Range{Later: true})
		must(t, err)
		if !slices.Equal(ids, []wire.ID{now}) || len(all) != 2 || !slices.Equal(only, []wire.ID{later}) {
			t.Errorf("unread %v, all %v, later %v", ids, all, only)
		}
	}
	if next := bob.NextDue(); next.Before(m.NotBefore) || next.After(m.NotBefore.Add(time.Millisecond)) {
		t.Error(next)
	}
	if c, err := inbox.Count(ctx, bob); c.Unread != 1 || err != nil {
		t.Errorf("%+v, %v", c, err)
	}
	if it, err := bob.Get(later); err != nil || it.State != wire.Later {
		t.Errorf("%+v, %v", it, err)
	}
	batch, err := inbox.Peek(ctx, bob, inbox.ReadOptions{IDs: []wire.ID{later}})
	if len(batch.Items)+batch.More != 0 || err != nil {
		t.Errorf("named: %+v, %v", batch, err)
	}
	batch, err = inbox.Peek(ctx, bob, inbox.ReadOptions{Limit: 1})
	if len(batch.Items) != 1 || batch.Items[0].ID != now || batch.More != 0 || err != nil {
		t.Errorf("read: %+v, %v", batch, err)
	}
	given, err := claim.HandOver(ctx, bob, holder.New(holder.Session, "s", "1", time.Now()), false, inbox.ReadOptions{})
	if err != nil || len(given.Items) != 1 || given.More != 0 {
		t.Errorf("handed over: %+v, %v", given, err)
	}
	must(t, given.Release(ctx))
	if it := leaseFor(t, bob, "carol", time.Minute); it == nil || it.ID != now {
		t.Errorf("leased: %+v", it)
	}
	if it := leaseFor(t, bob, "carol", time.Minute); it != nil {
		t.Errorf("leased: %s", it.Body)
	}
	if state, err := bob.Withdraw(ctx, later, m.From); state != wire.Unread || err != nil {
		t.Error(state, err)
	}
}

// A message that is not due replaces an unread one only if that is not due either.
func TestLaterReplaces(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	old, soon := message("old"), message("soon")
	soon.NotBefore = time.Now().Add(time.Hour)
	deliver(t, bob, old)
	deliver(t, bob, soon)
	for _, of := range []*wire.Message{old, soon} {
		m := message("new")
		m.NotBefore, m.Supersedes = time.Now().Add(2*time.Hour), of.ID
		deliver(t, bob, m)
	}
	for id, want := range map[wire.ID]wire.State{old.ID: wire.Unread, soon.ID: wire.Withdrawn} {
		if it, err := bob.Get(id); err != nil || it.State != want {
			t.Errorf("%+v, %v", it, err)
		}
	}
}

package maildir_test

import (
	"errors"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

func received(*wire.Item, wire.Lease) (bool, error) { return true, nil }

// leaseFor leases a message for a member, or returns nil if there is none.
func leaseFor(t testing.TB, b *maildir.Box, by wire.Name, d time.Duration) *wire.Item {
	t.Helper()
	it, err := claim.Lease(ctx, b, addr(by), d, inbox.ReadOptions{}, received)
	must(t, err)
	return it
}

// ranOut makes all leases expire.
func ranOut(t testing.TB, b *maildir.Box) {
	t.Helper()
	held, err := b.Held()
	must(t, err)
	for id, h := range held {
		must(t, b.HandTo(id, h, h.Ended()))
	}
}

// Who takes a message is told until when it is theirs to the instant, else another has it a moment before.
func TestLeaseSaysItsEnd(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	deliverN(t, bob, 1)
	var shown wire.Lease
	it, err := claim.Lease(ctx, bob, addr("carol"), time.Minute, inbox.ReadOptions{}, func(_ *wire.Item, l wire.Lease) (bool, error) {
		shown = l
		return true, nil
	})
	must(t, err)
	held, err := bob.Held()
	must(t, err)
	if end := held[it.ID].Until; !end.Equal(shown.Until) {
		t.Errorf("shown %s, held until %s", shown.Until, end)
	}
}

// The last member with a lease may still use it after it ran out, until somebody else leases the message. A member of
// another team is not this team's member of the same name.
func TestLeaseRunsOut(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	id := deliverN(t, bob, 1)[0]
	leaseFor(t, bob, "carol", time.Minute)
	if until, err := claim.RenewLease(ctx, bob, id, addr("carol"), time.Second); err != nil || time.Until(until) < 30*time.Second {
		t.Error("renewed, and shorter: ", until, err)
	}
	for _, d := range []time.Duration{-1, 0, holder.MaxLease + 1} {
		_, renewed := claim.RenewLease(ctx, bob, id, addr("carol"), d)
		if _, err := claim.Lease(ctx, bob, addr("dave"), d, inbox.ReadOptions{}, received); err == nil || renewed == nil {
			t.Errorf("a lease of %s: %v, %v", d, err, renewed)
		}
	}
	ranOut(t, bob)
	if until, err := claim.RenewLease(ctx, bob, id, addr("carol"), time.Minute); err != nil || time.Until(until) < 30*time.Second {
		t.Error("ran out, nobody took over: ", until, err)
	}
	if leaseFor(t, bob, "dave", time.Minute) != nil {
		t.Error("renewed, and taken")
	}
	held, err := bob.Held()
	must(t, err)
	ahead := time.Now().Add(time.Hour) // the clock was an hour ahead when it was leased
	must(t, bob.HandTo(id, held[id], holder.New(holder.Lease, "carol", "", ahead).Shown(ahead.Add(time.Hour))))
	if until, err := claim.RenewLease(ctx, bob, id, addr("carol"), time.Minute); err != nil || time.Until(until) > time.Minute {
		t.Error("from the future: ", until, err)
	}
	if leaseFor(t, bob, "dave", time.Minute) != nil {
		t.Error("from the future, renewed, and taken")
	}
	ranOut(t, bob)
	other := wire.Address{Agent: "carol", Team: "other"}
	it, err := claim.Lease(ctx, bob, other, time.Minute, inbox.ReadOptions{}, received)
	if err != nil || it == nil || it.TimesHandedOut != 1 {
		t.Fatal(it, err)
	}
	var leased *maildir.LeasedError
	if _, err := claim.RenewLease(ctx, bob, id, addr("carol"), time.Minute); !errors.As(err, &leased) || leased.By != other {
		t.Error("renewed what another has: ", err)
	}
	if l := leaseOf(t, bob, id); l.By != other {
		t.Error(l)
	}
	ranOut(t, bob)
	equal(t, "read", read(t, bob), id)
	if err := bob.MarkAcked(ctx, id, other); err != nil { // done already
		t.Error(err)
	}
}

func TestShareNobody(t *testing.T) {
	t.Parallel()
	for _, name := range []wire.Name{"nobody", ""} {
		box := newBob(t).Store().Box(name)
		if err := claim.Share(box); err == nil || name != "" && !errors.Is(err, maildir.ErrNoMailbox) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A lease of a message that was not received ends and does not count. It also ends ten seconds after a member was
// killed while the message was shown.
func TestLeaseShowsFirst(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	id := deliverN(t, bob, 1)[0]
	broken := errors.New("broken pipe")
	carol := addr("carol")
	show := func(received bool, err error) func(*wire.Item, wire.Lease) (bool, error) {
		return func(it *wire.Item, _ wire.Lease) (bool, error) {
			if leaseFor(t, bob, "dave", time.Minute) != nil || len(read(t, bob)) > 0 {
				t.Error("taken while it was shown")
			}
			if got, err := bob.Get(it.ID); err != nil || time.Until(got.Lease.Until) > 10*time.Second {
				t.Error("held for longer than it is shown: ", got, err)
			}
			return received, err
		}
	}
	if it, err := claim.Lease(ctx, bob, carol, time.Hour, inbox.ReadOptions{}, show(false, broken)); it != nil || err != broken {
		t.Error(it, err)
	}
	if it, err := bob.Get(id); err != nil || it.Lease != nil || it.TimesHandedOut != 0 {
		t.Error(it, err)
	}
	if it, err := claim.Lease(ctx, bob, carol, time.Hour, inbox.ReadOptions{}, show(true, broken)); it == nil || !errors.Is(err, broken) || time.Until(leaseOf(t, bob, id).Until) < time.Minute {
		t.Error(it, err)
	}
	// It is shown for so long that somebody else leases it.
	ranOut(t, bob)
	it, err := claim.Lease(ctx, bob, carol, time.Hour, inbox.ReadOptions{}, func(*wire.Item, wire.Lease) (bool, error) {
		ranOut(t, bob)
		leaseFor(t, bob, "dave", time.Minute)
		return true, nil
	})
	if !errors.Is(err, maildir.ErrNotHeld) || leaseOf(t, bob, id).By != addr("dave") {
		t.Error(it, err)
	}
}

// leaseOf returns who has leased a message, or did so last.
func leaseOf(t tb, b *maildir.Box, id wire.ID) wire.Lease {
	t.Helper()
	l, _, err := claim.LastLease(b, id)
	must(t, err)
	return l
}

package mailbox

import (
	"errors"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

func received(*Item, Lease) (bool, error) { return true, nil }

// leaseFor has somebody take a message for so long; nil: there is none.
func leaseFor(t testing.TB, b *Box, by wire.Name, d time.Duration) *Item {
	t.Helper()
	it, _, err := b.Lease(ctx, LeaseOptions{By: addr(by), For: d}, received)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// ranOut ends all leases as if their time had come.
func ranOut(t testing.TB, b *Box) {
	t.Helper()
	err := b.changeClaims(func(all claims) error {
		for id, c := range all {
			c.Until = claimTime(time.Now())
			all[id] = c
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What somebody holds no hook hands over and no runner types; who finished it is said.
// Who else may do what with it, the model says.
func TestLease(t *testing.T) {
	t.Parallel()
	s := newStore(t, "bob")
	bob := s.Box("bob")
	list := deliverN(t, bob, 2)
	first, second := leaseFor(t, bob, "carol", time.Minute), leaseFor(t, bob, "dave", time.Minute)
	if first.ID != list[0] || second.ID != list[1] || leaseFor(t, bob, "bob", time.Minute) != nil {
		t.Fatal(first, second)
	}
	handed(t, handOver(t, bob, "s", "1", time.Now()), false)
	holds(t, s)
	equal(t, "leased", claimed(t, bob, list, false).Leased, list...)
	if err := bob.EndLease(ctx, list[0], addr("carol")); err != nil {
		t.Error(err)
	}
	if it, err := bob.Get(list[0]); err != nil || it.State != Unread || it.Lease != nil || it.Times != 1 {
		t.Error(it, err)
	}
	if err := bob.MarkAcked(ctx, list[1], addr("dave"), true); err != nil {
		t.Error(err)
	}
	equal(t, "read", read(t, bob), list[0])
	events := eventsOf(t, bob)
	if e := events[1]; events[0].Kind != wire.EventReturned || e.Kind != wire.EventAcked || e.Field("by") != "dave@main" {
		t.Error(events)
	}
	for _, d := range []time.Duration{0, -1, MaxLease + 1} {
		if _, _, err := bob.Lease(ctx, LeaseOptions{By: addr("carol"), For: d}, received); err == nil {
			t.Errorf("taken for %s", d)
		}
	}
}

// A lease that ran out is still its last holder's until somebody takes over; a member of
// another team is not the member of this one.
func TestLeaseRunsOut(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	id := deliverN(t, bob, 1)[0]
	leaseFor(t, bob, "carol", time.Minute)
	if until, err := bob.RenewLease(ctx, id, addr("carol"), time.Second); err != nil || time.Until(until) < 30*time.Second {
		t.Error("renewed, and shorter: ", until, err)
	}
	ranOut(t, bob)
	if until, err := bob.RenewLease(ctx, id, addr("carol"), time.Minute); err != nil || time.Until(until) < 30*time.Second {
		t.Error("ran out, nobody took over: ", until, err)
	}
	if leaseFor(t, bob, "dave", time.Minute) != nil {
		t.Error("renewed, and taken")
	}
	ranOut(t, bob)
	other := wire.Address{Agent: "carol", Team: "other"}
	it, _, err := bob.Lease(ctx, LeaseOptions{By: other, For: time.Minute}, received)
	if err != nil || it == nil || it.Times != 1 {
		t.Fatal(it, err)
	}
	var leased *LeasedError
	if _, err := bob.RenewLease(ctx, id, addr("carol"), time.Minute); !errors.As(err, &leased) || leased.By != other {
		t.Error("renewed what another has: ", err)
	}
	if l := leasesOf(t, bob)[id]; l.By != other {
		t.Error(l)
	}
	ranOut(t, bob)
	equal(t, "read", read(t, bob), id)
	if err := bob.MarkAcked(ctx, id, other, true); err != nil { // done: nothing
		t.Error(err)
	}
}

// Who takes, and has not received it, does not hold it, and it does not count; nor, ten
// seconds later, does who was killed while it was shown.
func TestLeaseShowsFirst(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	id := deliverN(t, bob, 1)[0]
	broken := errors.New("broken pipe")
	opt := LeaseOptions{By: addr("carol"), For: time.Hour}
	show := func(received bool, err error) func(*Item, Lease) (bool, error) {
		return func(it *Item, _ Lease) (bool, error) {
			if leaseFor(t, bob, "dave", time.Minute) != nil || len(read(t, bob)) > 0 {
				t.Error("taken while it was shown")
			}
			if got, err := bob.Get(it.ID); err != nil || time.Until(got.Lease.Until) > answerGoes {
				t.Error("held for longer than it is shown: ", got, err)
			}
			return received, err
		}
	}
	if it, _, err := bob.Lease(ctx, opt, show(false, broken)); it != nil || err != broken {
		t.Error(it, err)
	}
	if it, err := bob.Get(id); err != nil || it.Lease != nil || it.Times != 0 {
		t.Error(it, err)
	}
	if it, l, err := bob.Lease(ctx, opt, show(true, broken)); it == nil || !errors.Is(err, broken) || time.Until(l.Until) < time.Minute {
		t.Error(it, l, err)
	}
	// Shown for so long that another took it.
	ranOut(t, bob)
	it, _, err := bob.Lease(ctx, opt, func(*Item, Lease) (bool, error) {
		ranOut(t, bob)
		leaseFor(t, bob, "dave", time.Minute)
		return true, nil
	})
	if !errors.Is(err, ErrNotHeld) || leasesOf(t, bob)[id].By != addr("dave") {
		t.Error(it, err)
	}
}

// A lease goes with its mailbox and comes back with it; withdrawn, a message is nobody's.
func TestLeaseAndRetire(t *testing.T) {
	t.Parallel()
	s := newStore(t, "bob")
	bob := s.Box("bob")
	id := deliverN(t, bob, 1)[0]
	leaseFor(t, bob, "carol", time.Minute)
	if _, err := s.Retire(ctx, "bob"); err != nil {
		t.Fatal(err)
	}
	if _, err := bob.RenewLease(ctx, id, addr("carol"), time.Hour); !errors.Is(err, ErrNoAgent) {
		t.Error(err)
	}
	if err := s.Restore(ctx, "bob", ""); err != nil || leaseFor(t, bob, "dave", time.Minute) != nil {
		t.Error("restored, and free: ", err)
	}
	if state, err := bob.Withdraw(ctx, id, addr("alice")); state != Owed || err != nil {
		t.Error("its holder is to be told: ", state, err)
	}
	if _, err := bob.RenewLease(ctx, id, addr("carol"), time.Hour); !errors.Is(err, ErrNotHeld) {
		t.Error(err)
	}
	if shared, err := bob.Shared(); shared || err != nil {
		t.Error(shared, err)
	}
	if err := errors.Join(bob.Share(), bob.Share()); err != nil {
		t.Error(err)
	}
	if shared, err := bob.Shared(); !shared || err != nil {
		t.Error(shared, err)
	}
}

// leasesOf tells who holds messages.
func leasesOf(t interface {
	Helper()
	Fatal(...any)
}, b *Box) map[wire.ID]Lease {
	t.Helper()
	leases, err := b.Leases()
	if err != nil {
		t.Fatal(err)
	}
	return leases
}

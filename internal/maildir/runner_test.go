package maildir_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/wire"
)

// holds takes the runner lock of bob's mailbox until the test ends.
func holds(t testing.TB, s *maildir.Store) *claim.Runner {
	t.Helper()
	r, err := claim.HoldRunner(ctx, s, "bob")
	must(t, err)
	t.Cleanup(func() { r.Release() })
	return r
}

// dies ends a runner as a kill does, without any cleanup.
func dies(r *claim.Runner) { r.Release() }

// claimAll claims messages and fails the test unless the claim has exactly them, as repeats or not.
func claimAll(t testing.TB, r *claim.Runner, ask []wire.ID, repeat bool, want ...wire.ID) *claim.Claim {
	t.Helper()
	c, err := r.Claim(ctx, ask)
	must(t, err)
	equal(t, "claimed", idsOf(c.Items), want...)
	for _, id := range want {
		if c.Repeat[id] != repeat {
			t.Errorf("%s may be a repeat: %v", id, c.Repeat[id])
		}
	}
	return c
}

// owned fails the test unless exactly these messages are held, or were.
func owned(t testing.TB, b *maildir.Box, want ...wire.ID) {
	t.Helper()
	var got []wire.ID
	held, err := b.Held()
	must(t, err)
	for id := range held {
		got = append(got, id)
	}
	slices.Sort(got)
	equal(t, "held", got, want...)
}

func TestHoldRunner(t *testing.T) {
	t.Parallel()
	path := testtree.Memory(t)
	s, other := openStore(t, path, nil, "bob"), openStore(t, path, nil)
	r := holds(t, s)
	if running, err := other.Running("bob"); !running || err != nil || !r.StillHeld() {
		t.Error("it does not run: ", err)
	}
	if _, err := claim.HoldRunner(ctx, other, "bob"); !errors.Is(err, maildir.ErrRunning) {
		t.Error(err)
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if _, err := claim.HoldRunner(short, other, "bob"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := keep.Retire(ctx, other, "bob"); !errors.Is(err, maildir.ErrRunning) {
		t.Error(err)
	}
	if err := r.Release(); err != nil || r.StillHeld() {
		t.Error("still held: ", err)
	}
	again := holds(t, other)
	if err := r.Release(); err != nil || !again.StillHeld() {
		t.Error("letting go twice let go of another's: ", err)
	}

	// If somebody removes the lock file, a second runner can start; the first finds out before it types anything more.
	id := deliverN(t, s.Box("bob"), 1)
	must(t, os.Remove(s.Dir().Join(".locks/bob.runner")))
	second := holds(t, s)
	if again.StillHeld() || !second.StillHeld() {
		t.Error(again.StillHeld(), second.StillHeld())
	}
	if _, err := again.Claim(ctx, id); err == nil {
		t.Error("claimed, and another runs")
	}
	claimAll(t, second, id, false, id...)
}

// A probe that takes long, as on a machine with much to do, is no runner.
func TestHoldRunnerBesideSlowProbe(t *testing.T) {
	t.Parallel()
	path := testtree.Memory(t)
	s, other := openStore(t, path, nil, "bob"), openStore(t, path, nil)
	probe, err := s.Locks().Lock(ctx, "bob.runner", lockfile.Shared, 0, nil)
	must(t, err)
	time.AfterFunc(1500*time.Millisecond, func() { probe.Unlock() })
	r, err := claim.HoldRunner(ctx, other, "bob")
	must(t, err)
	must(t, r.Release())
}

// unclaimed returns the unread messages that are not claimed.
func unclaimed(b *maildir.Box) []wire.ID {
	batch, _ := inbox.Peek(ctx, b, inbox.ReadOptions{})
	return idsOf(batch.Items)
}

// The messages of a dead runner are unread like any others, and are handed over again as possible repeats.
func TestClaimOfADeadRunner(t *testing.T) {
	t.Parallel()
	path := testtree.Memory(t)
	s, next := openStore(t, path, nil, "bob"), openStore(t, path, nil)
	bob := next.Box("bob")
	list := deliverN(t, bob, 3)
	first := holds(t, s)
	sent(t, handOver(t, bob, "s1", "1", time.Now())) // a session claims all
	more := deliverN(t, bob, 3)
	claimAll(t, first, more, false, more...)
	dies(first)
	equal(t, "unread", unclaimed(bob), slices.Concat(list, more)...)
	second := holds(t, next)
	if state, err := bob.WithdrawRead(ctx, more[0], addr("alice"), nil); err != nil || state != wire.Unread {
		t.Error(state, err)
	}
	// A hook may have it before the runner does.
	h := handOver(t, bob, "s2", "1", time.Now())
	equal(t, "handed over", idsOf(h.Items), more[1:]...)
	if !h.Repeat[more[1]] || h.Release(ctx) != nil {
		t.Error(h.Repeat)
	}
	claimAll(t, second, append(list, more...), true, more[1:]...)
	dies(second)
	third := holds(t, openStore(t, path, nil))
	must(t, claimAll(t, third, more, true, more[1:]...).Typed(ctx))
	owned(t, bob, list...)
}

// A claim that fails leaves neither a claim nor the event that something is being typed.
func TestClaimThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, full := range []string{"bob/inbox/held/", "bob/events/"} {
		var isFull atomic.Bool
		s := faultyStore(t, func(op, name string) error {
			if isFull.Load() && (op == "write" || op == "mkdir") && strings.Contains(name, full) {
				return syscall.ENOSPC
			}
			return nil
		}, "bob")
		bob, r := s.Box("bob"), holds(t, s)
		id := deliver(t, bob, message("x"))[0]
		isFull.Store(true)
		if c, err := r.Claim(ctx, []wire.ID{id}); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(c, err)
		}
		isFull.Store(false)
		if events := eventsOf(t, bob); len(events) > 0 {
			t.Errorf("with %s full: %v", full, events)
		}
		owned(t, bob)
		claimAll(t, r, []wire.ID{id}, false, id)
	}
}

// What Typed could not do is done when it is called again, and nothing twice: without the log nothing moves, and a
// message that cannot be moved holds up no other.
func TestTypedAgain(t *testing.T) {
	t.Parallel()
	var ids []wire.ID
	var isLogBroken, isBroken atomic.Bool
	s := faultyStore(t, func(op, name string) error {
		if isLogBroken.Load() && op == "write" && strings.Contains(name, "bob/events/") ||
			isBroken.Load() && op == "rename" && strings.Contains(name, string(ids[1])) {
			return syscall.EIO
		}
		return nil
	}, "bob")
	bob, r := s.Box("bob"), holds(t, s)
	ids = append(deliver(t, bob, message("one")), deliver(t, bob, message("two"))...)
	c := claimAll(t, r, ids, false, ids...)
	isBroken.Store(true)
	for i, want := range [][]wire.ID{ids, ids[1:], ids[1:]} {
		isLogBroken.Store(i == 0)
		if err := c.Typed(ctx); !errors.Is(err, syscall.EIO) {
			t.Error(err)
		}
		unread, err := bob.UnreadIDs()
		must(t, err)
		equal(t, "still unread", unread, want...)
	}
	isBroken.Store(false)
	for range 2 {
		must(t, c.Typed(ctx))
	}
	var injected []wire.ID
	for _, e := range eventsOf(t, bob) {
		if e.Kind == wire.EventInjected {
			injected = append(injected, e.MessageID())
		}
	}
	equal(t, "injected", injected, ids...)
	owned(t, bob)
}

// Whenever a runner is killed while Typed works, a message is unread or the log says that it was injected: what was moved
// without a word would be lost if the program has not got to it.
func TestKilledInTyped(t *testing.T) {
	t.Parallel()
	for last, isDone := 0, false; !isDone; last++ {
		left := -1 // how many changes succeed before the kill; negative: all
		s := faultyStore(t, func(op, _ string) error {
			if left == 0 {
				return syscall.EIO
			}
			left--
			return nil
		}, "bob")
		bob, r := s.Box("bob"), holds(t, s)
		ids := append(deliver(t, bob, message("one")), deliver(t, bob, message("two"))...)
		c := claimAll(t, r, ids, false, ids...)
		left = last
		isDone = c.Typed(ctx) == nil
		left = -1
		dies(r)
		var injected []wire.ID
		for _, e := range eventsOf(t, bob) {
			if e.Kind == wire.EventInjected {
				injected = append(injected, e.MessageID())
			}
		}
		for _, id := range ids {
			it, err := bob.Get(id)
			must(t, err)
			if it.State != wire.Unread && !slices.Contains(injected, id) {
				t.Errorf("killed after %d steps: %s is %s, and the log does not say why", last, id.Short(6), it.State)
			}
		}
	}
}

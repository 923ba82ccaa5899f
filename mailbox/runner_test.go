package mailbox

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// holds takes the runner lock of bob's mailbox until the test ends.
func holds(t testing.TB, s *Store) *Runner {
	t.Helper()
	r, err := s.HoldRunner(ctx, "bob")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Release() })
	return r
}

// dies ends a runner as a kill does: nothing is tidied up.
func dies(r *Runner) { r.lock.Unlock() }

// claimed claims messages, and fails unless these are in the claim, as repeats or not.
func claimed(t testing.TB, b *Box, ask []wire.ID, repeat bool, want ...wire.ID) *Claim {
	t.Helper()
	c, err := b.Claim(ctx, ask)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "claimed", idsOf(c.Items), want...)
	for _, id := range want {
		if c.Repeat[id] != repeat {
			t.Errorf("%s may be a repeat: %v", id, c.Repeat[id])
		}
	}
	return c
}

// owned fails unless these messages, and no others, are in the claims file.
func owned(t testing.TB, b *Box, want ...wire.ID) {
	t.Helper()
	var got []wire.ID
	for id := range b.claims() {
		got = append(got, id)
	}
	slices.Sort(got)
	equal(t, "in the claims file", got, want...)
}

func TestHoldRunner(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	s, other := openStore(t, path, nil, "bob"), openStore(t, path, nil)
	r := holds(t, s)
	if running, err := other.Running("bob"); !running || err != nil || !r.StillHeld() {
		t.Error("it does not run: ", err)
	}
	if _, err := other.HoldRunner(ctx, "bob"); !errors.Is(err, ErrRunning) {
		t.Error(err)
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if _, err := other.HoldRunner(short, "bob"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := other.Retire(ctx, "bob"); !errors.Is(err, ErrRunning) {
		t.Error(err)
	}
	if err := r.Release(); err != nil || r.StillHeld() {
		t.Error("still held: ", err)
	}
	again := holds(t, other)
	if err := r.Release(); err != nil || !again.StillHeld() {
		t.Error("letting go twice let go of another's: ", err)
	}

	// A lock file that somebody removed lets a second runner in; the first finds out
	// before it types anything more.
	id := deliverN(t, s.Box("bob"), 1)
	if err := os.Remove(s.root.Join(".locks/bob.runner")); err != nil {
		t.Fatal(err)
	}
	second := holds(t, s)
	if again.StillHeld() || !second.StillHeld() {
		t.Error(again.StillHeld(), second.StillHeld())
	}
	if _, err := other.Box("bob").Claim(ctx, id); !errors.Is(err, ErrNoRunner) {
		t.Error(err)
	}
	claimed(t, s.Box("bob"), id, false, id...)
}

// What is claimed is passed over by everybody else, and moved once it is typed.
func TestClaim(t *testing.T) {
	t.Parallel()
	s := newStore(t, "bob")
	bob := s.Box("bob")
	list := append(deliverN(t, bob, 3), deliver(t, bob, withAck(message("with ack")))...)
	if _, err := bob.Claim(ctx, list); !errors.Is(err, ErrNoRunner) {
		t.Error("claimed without the lock: ", err)
	}
	holds(t, s)
	c := claimed(t, bob, []wire.ID{list[1], list[3], wire.NewID(), "../etc"}, false, list[1], list[3])
	claimed(t, bob, list[1:3], false, list[2]) // the first is claimed
	for _, id := range list[1:] {
		if _, err := bob.Withdraw(ctx, id, addr("alice")); !errors.Is(err, ErrBeingTyped) {
			t.Error(err)
		}
	}
	equal(t, "read", read(t, bob), list[0])
	if h := handOver(t, bob, "s1", "1", time.Now()); len(h.Items) > 0 {
		t.Error("handed over: ", h.Items)
	}
	c.Turn = "t1"
	if err := errors.Join(c.Typed(ctx, list[1]), c.Typed(ctx), c.Typed(ctx)); err != nil {
		t.Fatal(err)
	}
	takeCensus(t, bob).is(t, map[wire.ID]string{list[0]: "done", list[1]: "done", list[2]: "new", list[3]: "cur"})
	equal(t, "events", logged(t, bob), "injecting "+string(list[1]), "injecting "+string(list[3]), "injecting "+string(list[2]),
		"message_read "+string(list[0]), "injected "+string(list[1]), "injected "+string(list[3]))
	last := eventsOf(t, bob)
	if e := last[len(last)-1]; e.Source != "pty" || e.TurnID != "t1" {
		t.Error(e)
	}
	owned(t, bob, list[2])

	// A message that its agent answers while it is being typed was received.
	c = claimed(t, bob, deliverN(t, bob, 1), false, c2ids(bob)...)
	if moved, err := bob.MarkRead(ctx, c.Items[0].ID); !moved || err != nil {
		t.Fatal(moved, err)
	}
	if err := c.Typed(ctx); err != nil {
		t.Fatal(err)
	}
	owned(t, bob, list[2])
}

// c2ids are the unread messages that nobody has claimed.
func c2ids(b *Box) []wire.ID {
	batch, _ := b.Peek(ctx, ReadOptions{})
	return idsOf(batch.Items)
}

// What was not typed is anybody's again; where it may have been seen, that is said when
// it is handed over again, by whomever.
func TestNotTyped(t *testing.T) {
	t.Parallel()
	s := newStore(t, "bob")
	bob := s.Box("bob")
	list := deliverN(t, bob, 4)
	holds(t, s)
	c := claimed(t, bob, list, false, list...)
	if err := errors.Join(c.NotTyped(ctx, list[0]), c.MaybeTyped(ctx, list[1], list[2])); err != nil {
		t.Fatal(err)
	}
	equal(t, "unread", c2ids(bob), list[:3]...)
	h := sent(t, handOver(t, bob, "s1", "1", time.Now()))
	if got := idsOf(h.Items); !slices.Equal(got, list[:3]) || h.Repeat[list[0]] || !h.Repeat[list[1]] || !h.Repeat[list[2]] {
		t.Error(got, h.Repeat)
	}
	claimed(t, bob, list, false) // a session has three, the runner one
	handOver(t, bob, "s1", "2", time.Now())
	if err := c.NotTyped(ctx); err != nil {
		t.Fatal(err)
	}
	claimed(t, bob, list, false, list[3])

	more := deliverN(t, bob, 1)
	claimed(t, bob, more, false, more...).MaybeTyped(ctx)
	claimed(t, bob, more, true, more...).NotTyped(ctx) // it may still have been seen the first time
	claimed(t, bob, more, true, more...).Typed(ctx)
	owned(t, bob, list[3])
}

// What a dead runner had is handed over again as a possible repeat, and until then is
// unread as any other.
func TestClaimOfADeadRunner(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	s, next := openStore(t, path, nil, "bob"), openStore(t, path, nil)
	bob := next.Box("bob")
	list := deliverN(t, bob, 3)
	first := holds(t, s)
	sent(t, handOver(t, bob, "s1", "1", time.Now())) // a session has all
	more := deliverN(t, bob, 3)
	claimed(t, s.Box("bob"), more, false, more...)
	dies(first)
	if _, err := bob.Unfinished(ctx); !errors.Is(err, ErrNoRunner) {
		t.Error(err)
	}
	equal(t, "unread", c2ids(bob), slices.Concat(list, more)...)
	second := holds(t, next)
	ids, err := bob.Unfinished(ctx)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "unfinished", ids, more...)
	if state, err := bob.Withdraw(ctx, more[0], addr("alice")); err != nil || state != Unread {
		t.Error(state, err)
	}
	// A hook may have it before the runner does.
	h := handOver(t, bob, "s2", "1", time.Now())
	equal(t, "handed over", idsOf(h.Items), more[1:]...)
	if !h.Repeat[more[1]] || h.NotSent(ctx) != nil {
		t.Error(h.Repeat)
	}
	claimed(t, bob, append(list, more...), true, more[1:]...)
	if ids, err := bob.Unfinished(ctx); err != nil || len(ids) > 0 { // its own are not left
		t.Error(ids, err)
	}
	dies(second)
	third := openStore(t, path, nil)
	holds(t, third)
	if err := claimed(t, third.Box("bob"), more, true, more[1:]...).Typed(ctx); err != nil {
		t.Fatal(err)
	}
	owned(t, bob, list...)
}

// Runner, hooks, readers, holders of leases and senders who change their minds at once:
// each message goes one way, and none is lost.
func TestClaimBesideOthers(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	bob := openStore(t, path, nil, "bob").Box("bob")
	holds(t, bob.store)
	list := deliverN(t, bob, 100)
	var mu sync.Mutex
	ways := map[wire.ID]string{}
	var all sync.WaitGroup
	for how, take := range map[string]func(b *Box, i int) ([]wire.ID, error){
		"typed": func(_ *Box, i int) ([]wire.ID, error) {
			c, err := bob.Claim(ctx, list[4*i:4*i+8])
			if err != nil {
				return nil, err
			}
			return idsOf(c.Items), c.Typed(ctx)
		},
		"read": func(b *Box, i int) ([]wire.ID, error) {
			batch, err := b.Read(ctx, ReadOptions{Limit: 3}, receiveAll)
			return idsOf(batch.Items), err
		},
		"handed over": func(b *Box, i int) ([]wire.ID, error) {
			h, err := b.HandOver(ctx, HookCall{Session: "s1", Name: string(rune('a' + i)), Shows: true, Want: true, Now: time.Now()}, ReadOptions{Limit: 2})
			h.Sent(ctx)
			return nil, err // whoever reads gets what was handed over as well
		},
		"leased": func(b *Box, i int) ([]wire.ID, error) {
			it, _, err := b.Lease(ctx, LeaseOptions{By: addr("carol"), For: time.Hour}, received)
			if it == nil || errors.Is(err, ErrNotHeld) { // withdrawn while it was shown
				return nil, nil
			}
			return []wire.ID{it.ID}, err
		},
		"withdrawn": func(b *Box, i int) ([]wire.ID, error) {
			id := list[len(list)-1-4*i]
			if state, err := b.Withdraw(ctx, id, addr("alice")); err != nil || state != Unread {
				return nil, err
			}
			return []wire.ID{id}, nil
		},
	} {
		b := openStore(t, path, nil).Box("bob")
		all.Go(func() {
			for i := range 20 {
				ids, err := take(b, i)
				if err != nil && !errors.Is(err, ErrBeingTyped) {
					t.Error(err)
				}
				mu.Lock()
				for _, id := range ids {
					if ways[id] != "" {
						t.Errorf("%s: %s, and %s", id, ways[id], how)
					}
					ways[id] = how
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	c := takeCensus(t, bob)
	c.sound(t)
	equal(t, "messages", c.ids(), list...)
	for id, how := range ways {
		if how == "typed" && c.place(id) != "done" || how == "withdrawn" && c.place(id) != "withdrawn" {
			t.Errorf("%s was %s and is in %s", id, how, c.place(id))
		}
	}
}

//go:build unix

package mailbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
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
func dies(t testing.TB, r *Runner) {
	t.Helper()
	if err := r.lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}

func claims(t testing.TB, b *Box, ids ...wire.ID) *Claim {
	t.Helper()
	c, err := b.Claim(ctx, ids)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// inClaim fails unless a claim has these messages, as repeats or not.
func inClaim(t testing.TB, c *Claim, again bool, ids ...wire.ID) {
	t.Helper()
	if got := idsOf(c.Items); !slices.Equal(got, ids) {
		t.Errorf("claimed %v, not %v", got, ids)
	}
	for _, id := range ids {
		if c.Again[id] != again {
			t.Errorf("%s may be a repeat: %v", id, c.Again[id])
		}
	}
}

// told are the events of a mailbox, as kind and message.
func toldOf(t testing.TB, b *Box) (out []string) {
	t.Helper()
	for _, e := range eventsOf(t, b) {
		out = append(out, e.Kind+" "+string(e.MessageID()))
	}
	return out
}

func TestHoldRunner(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	s, other := openStore(t, path, nil, "bob"), openStore(t, path, nil)
	if _, err := s.HoldRunner(ctx, "nobody"); !errors.Is(err, ErrNoAgent) {
		t.Error(err)
	}
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
}

// A lock file that somebody removed lets a second runner in; the first finds
// out before it types anything more.
func TestRunnerTakenOver(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	s, other := openStore(t, path, nil, "bob"), openStore(t, path, nil)
	id := deliverN(t, s.Box("bob"), 1)[0]
	first := holds(t, s)
	if err := os.Remove(filepath.Join(path, ".locks", "bob.runner")); err != nil {
		t.Fatal(err)
	}
	second := holds(t, other)
	if first.StillHeld() || !second.StillHeld() {
		t.Error(first.StillHeld(), second.StillHeld())
	}
	if _, err := s.Box("bob").Claim(ctx, []wire.ID{id}); !errors.Is(err, ErrNoRunner) {
		t.Error(err)
	}
	inClaim(t, claims(t, other.Box("bob"), id), false, id)
}

// What is claimed is in nobody else's hands, and moved once it is taken.
func TestClaim(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	list := deliverN(t, bob, 3)
	ack := message("alice", "with ack")
	ack.RequiresAck = true
	deliver(t, bob, ack)
	if _, err := bob.Claim(ctx, list); !errors.Is(err, ErrNoRunner) {
		t.Error("claimed without the lock: ", err)
	}
	holds(t, s)
	c := claims(t, bob, list[1], ack.ID, wire.NewID(), "../etc")
	inClaim(t, c, false, list[1], ack.ID)
	inClaim(t, claims(t, bob, list[1], list[2]), false, list[2]) // the first is in hand
	for _, id := range []wire.ID{list[1], ack.ID, list[2]} {
		if _, err := bob.Withdraw(ctx, id, wire.Address{}); !errors.Is(err, ErrBeingTyped) {
			t.Error(err)
		}
	}
	if b, err := bob.Read(ctx, ReadOptions{}, takeAll); err != nil || !slices.Equal(idsOf(b.Items), list[:1]) {
		t.Error(idsOf(b.Items), err)
	}
	// A prompt-start hook, called because of what is typed: it neither waits for
	// the lock nor takes the mail.
	held, err := s.locks.Try("bob.reader", lockfile.Exclusive, nil)
	if err != nil {
		t.Fatal(err)
	}
	handed(t, hand(t, bob, "s1", "prompt 1", time.Now()), false)
	held.Unlock()

	c.Turn = "t1"
	if err := c.Taken(ctx, list[1]); err != nil {
		t.Fatal(err)
	}
	if err := c.Taken(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Taken(ctx); err != nil {
		t.Fatal(err)
	}
	got := takeCensus(t, teamPath(s), "bob")
	got.sound(t)
	if got.place(list[1]) != placeDone || got.place(ack.ID) != placeCur || got.place(list[2]) != placeNew {
		t.Error(got.places)
	}
	same(t, toldOf(t, bob), "injecting "+string(list[1]), "injecting "+string(ack.ID), "injecting "+string(list[2]),
		"message_read "+string(list[0]), "injected "+string(list[1]), "injected "+string(ack.ID))
	last := eventsOf(t, bob)
	if e := last[len(last)-1]; e.Source != "pty" || e.TurnID != "t1" {
		t.Error(e)
	}
	if all := claimsIn(t, bob); len(all) != 1 || !slices.Equal(all[0].IDs, list[2:]) {
		t.Error(all)
	}
}

// What was not typed is anybody's again; where it may have been seen, that is
// said when it is handed over again, by whomever.
func TestClaimBack(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	list := deliverN(t, bob, 4)
	holds(t, s)
	c := claims(t, bob, list...)
	if err := errors.Join(c.Back(ctx, list[0]), c.Doubt(ctx, list[1], list[2])); err != nil {
		t.Fatal(err)
	}
	if b, err := bob.Peek(ctx, ReadOptions{}); err != nil || len(b.Items) != 4 {
		t.Error(len(b.Items), err)
	}
	h := out(t, hand(t, bob, "s1", "1", time.Now()))
	if got := idsOf(h.Items); !slices.Equal(got, list[:3]) || h.Again[list[0]] || !h.Again[list[1]] || !h.Again[list[2]] {
		t.Error(got, h.Again)
	}
	inClaim(t, claims(t, bob, list...), false) // a hook has three, the runner one
	hand(t, bob, "s1", "2", time.Now())
	if err := c.Back(ctx); err != nil {
		t.Fatal(err)
	}
	inClaim(t, claims(t, bob, list...), false, list[3])

	more := deliverN(t, bob, 1)
	c = claims(t, bob, more...)
	c.Doubt(ctx)
	c = claims(t, bob, more...)
	inClaim(t, c, true, more[0])
	c.Back(ctx) // it may still have been seen the first time
	c = claims(t, bob, more...)
	inClaim(t, c, true, more[0])
	c.Taken(ctx)
	if all := claimsIn(t, bob); len(all) != 1 || !slices.Equal(all[0].IDs, list[3:]) {
		t.Error(all)
	}
}

// A message that its agent answers while it is being typed was taken.
func TestClaimOfWhatIsAnswered(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	list := deliverN(t, bob, 1)
	holds(t, s)
	c := claims(t, bob, list...)
	if moved, err := bob.Take(ctx, list[0]); !moved || err != nil {
		t.Fatal(moved, err)
	}
	if err := c.Taken(ctx); err != nil {
		t.Fatal(err)
	}
	same(t, toldOf(t, bob), "injecting "+string(list[0]), "message_read "+string(list[0]), "injected "+string(list[0]))
	if all := claimsIn(t, bob); len(all) != 0 {
		t.Error(all)
	}
}

// What a dead runner had is handed over again as a possible repeat, and until
// then is in nobody's hands.
func TestClaimOfADeadRunner(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	s, next := openStore(t, path, nil, "bob"), openStore(t, path, nil)
	bob := next.Box("bob")
	list := deliverN(t, bob, 3)
	first := holds(t, s)
	out(t, hand(t, bob, "s1", "1", time.Now())) // a hook has all
	more := deliverN(t, bob, 2)
	claims(t, s.Box("bob"), more...)
	dies(t, first)
	if _, err := bob.Unfinished(ctx); !errors.Is(err, ErrNoRunner) {
		t.Error(err)
	}
	if b, err := bob.Peek(ctx, ReadOptions{}); err != nil || len(b.Items) != 5 {
		t.Error(len(b.Items), err)
	}
	second := holds(t, next)
	ids, err := bob.Unfinished(ctx)
	if err != nil || !slices.Equal(ids, more) {
		t.Fatal(ids, err)
	}
	if state, err := bob.Withdraw(ctx, more[0], wire.Address{}); err != nil || state != Unread {
		t.Error(state, err)
	}
	c := claims(t, bob, append(list, more...)...)
	inClaim(t, c, true, more[1])
	if ids, err := bob.Unfinished(ctx); err != nil || len(ids) > 0 { // its own are not left
		t.Error(ids, err)
	}
	// And again: still a possible repeat, and given back it stays one.
	dies(t, second)
	third := openStore(t, path, nil)
	holds(t, third)
	c = claims(t, third.Box("bob"), more...)
	inClaim(t, c, true, more[1])
	if err := c.Taken(ctx); err != nil {
		t.Fatal(err)
	}
	if all := claimsIn(t, bob); len(all) != 1 || all[0].Session != "s1" || !slices.Equal(all[0].IDs, list) {
		t.Error(all)
	}
}

// While a dead runner's mail waits for the next, a hook may hand it over.
func TestHookHandsOverWhatADeadRunnerHad(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	s := openStore(t, path, nil, "bob")
	list := deliverN(t, s.Box("bob"), 1)
	first := holds(t, s)
	claims(t, s.Box("bob"), list...)
	next := openStore(t, path, nil)
	bob := next.Box("bob")
	handed(t, hand(t, bob, "s1", "1", time.Now()), true) // it runs
	dies(t, first)
	holds(t, next)
	if _, err := bob.Unfinished(ctx); err != nil {
		t.Fatal(err)
	}
	handed(t, out(t, hand(t, bob, "s1", "2", time.Now())), true, list...)
	inClaim(t, claims(t, bob, list...), false)
}

// Runner, hooks, readers and senders who change their minds at once: each
// message goes one way, and none is lost.
func TestClaimBesideOthers(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	s := openStore(t, path, nil, "bob")
	bob := s.Box("bob")
	holds(t, s)
	list := deliverN(t, bob, 120)
	var mu sync.Mutex
	got := map[wire.ID]string{}
	way := func(id wire.ID, how string) {
		mu.Lock()
		defer mu.Unlock()
		if was := got[id]; was != "" {
			t.Errorf("%s: %s, and %s", id, was, how)
		}
		got[id] = how
	}
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; i < len(list); i += 4 {
			c, err := bob.Claim(ctx, list[i:min(i+8, len(list))])
			if err != nil {
				t.Error(err)
				return
			}
			for _, it := range c.Items {
				way(it.ID, "typed")
			}
			if err := c.Taken(ctx); err != nil {
				t.Error(err)
			}
		}
	})
	all.Go(func() {
		b := openStore(t, path, nil).Box("bob")
		for range 12 {
			batch, err := b.Read(ctx, ReadOptions{Limit: 3}, takeAll)
			if err != nil {
				t.Error(err)
				return
			}
			for _, it := range batch.Items {
				way(it.ID, "read")
			}
		}
	})
	all.Go(func() {
		b := openStore(t, path, nil).Box("bob")
		for i := range 12 {
			h, err := b.HandOver(ctx, HookCall{Session: "s1", Name: string(rune('a' + i)), Shows: true, Want: true, Now: time.Now()}, ReadOptions{Limit: 2})
			if err != nil {
				t.Error(err)
				return
			}
			for _, it := range h.Items {
				mu.Lock()
				// (A reader may have it before the hook's next call.)
				if was := got[it.ID]; was != "" && was != "read" {
					t.Errorf("%s: %s, and handed over", it.ID, was)
				}
				mu.Unlock()
			}
			h.Out(ctx)
		}
	})
	all.Go(func() {
		b := openStore(t, path, nil).Box("bob")
		for i := len(list) - 1; i >= 0; i -= 5 {
			switch state, err := b.Withdraw(ctx, list[i], wire.Address{}); {
			case errors.Is(err, ErrBeingTyped):
			case err != nil:
				t.Error(err)
			case state == Unread:
				way(list[i], "withdrawn")
			}
		}
	})
	all.Wait()
	c := takeCensus(t, path, "bob")
	c.sound(t)
	if len(c.places) != len(list) {
		t.Errorf("%d messages of %d", len(c.places), len(list))
	}
	for id, how := range got {
		if how == "typed" && c.place(id) != placeDone || how == "withdrawn" && c.place(id) != placeWithdrawn {
			t.Errorf("%s was %s and is in %s", id, how, c.place(id))
		}
	}
}

// Every file operation of a runner's way with mail fails once. What was not
// claimed is not typed; what was not typed is unread; nothing is stuck.
func TestClaimFaults(t *testing.T) {
	t.Parallel()
	for k := 1; ; k++ {
		at := &trip{k: k, err: syscall.EIO}
		s := openStore(t, scratch(t), at.fault, "bob")
		bob := s.Box("bob")
		holds(t, s)
		list := deliverN(t, bob, 3)
		at.armed = true
		typed, plain := map[wire.ID]int{}, map[wire.ID]int{}
		for i := range 3 {
			c, err := bob.Claim(ctx, list)
			if err != nil {
				if len(at.failed) == 0 {
					t.Fatal(err)
				}
				continue
			}
			for _, it := range c.Items {
				if typed[it.ID]++; !c.Again[it.ID] {
					plain[it.ID]++
				}
			}
			if i == 0 && len(c.Items) > 1 {
				c.Doubt(ctx, c.Items[0].ID)
			}
			if err := c.Taken(ctx); err != nil && len(at.failed) == 0 {
				t.Fatal(err)
			} else if err != nil {
				c.Taken(ctx)
			}
		}
		at.armed = false
		c := takeCensus(t, teamPath(s), "bob")
		c.sound(t)
		for _, id := range list {
			if typed[id] == 0 && c.place(id) != placeNew || typed[id] > 0 && c.place(id) == placeNew {
				t.Errorf("operation %d (%v): %s was typed %d times and is in %s", k, at.failed, id, typed[id], c.place(id))
			}
			if typed[id] == 0 {
				t.Errorf("operation %d (%v): %s was never typed", k, at.failed, id)
			}
			if plain[id] > 1 {
				t.Errorf("operation %d (%v): %s was typed %d times unmarked", k, at.failed, id, plain[id])
			}
		}
		if left := claimsIn(t, bob); len(left) > 0 {
			t.Errorf("operation %d (%v): claimed still: %v", k, at.failed, left)
		}
		if len(at.failed) == 0 {
			t.Logf("%d operations", k-1)
			return
		}
	}
}

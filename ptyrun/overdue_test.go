package ptyrun

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/wire"
)

// A message leased by a colleague is not typed, not even by a runner that starts meanwhile; it is when the lease is
// released or expires.
func TestLeasedIsNotTyped(t *testing.T) {
	t.Parallel()
	for name, lease := range map[string]time.Duration{"given back": time.Hour, "run out": 1500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).fake(testagent.Options{})
			taken := r.Send("for whoever comes first")
			carol := r.Store.Box("carol").Address()
			var held wire.Lease
			it, err := claim.Lease(t.Context(), r.Bob, carol, lease, inbox.ReadOptions{}, func(_ *wire.Item, l wire.Lease) (bool, error) {
				held = l
				return true, nil
			})
			if err != nil || it == nil {
				t.Fatal(it, err)
			}
			r.run().idle()
			r.Wait("the other to be read", r.Read(r.Send("for bob")))
			if name == "given back" {
				if it, err := r.Bob.Get(taken); err != nil || it.State != wire.Unread {
					t.Fatal(it, err)
				}
				must(t, claim.EndLease(t.Context(), r.Bob, taken, carol))
			}
			r.Wait("what was taken to be read", r.Read(taken))
			if now := time.Now(); name == "run out" && now.Before(held.Until) {
				t.Errorf("it was typed %s before its lease ran out", held.Until.Sub(now))
			}
		})
	}
}

// Overdue answers are checked again and again, and the agent counts as idle only while the gate is open.
func TestOverdueIsLookedFor(t *testing.T) {
	t.Parallel()
	var idle, busy atomic.Int64
	r := newRig(t).fake(testagent.Options{})
	r.opt.Remind = func(_ context.Context, between bool) error {
		if between {
			idle.Add(1)
		} else {
			busy.Add(1)
		}
		return nil
	}
	r.run().idle()
	r.Wait("a look between two turns", func() bool { return idle.Load() > 0 })
	was := busy.Load()
	r.Send("THINK 10m")
	r.Wait("a look in a turn", func() bool { return busy.Load() > was })
}

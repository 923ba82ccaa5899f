package maildir_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

// In a store that may not act dropped files stay where they are, and neither runners nor hooks get mail. Once it may,
// nothing is lost. A reader gets its mail all the same.
func TestMayAct(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	why := errors.New("a stranger was here")
	mayAct := why
	bob.Store().MayAct = func(context.Context) error { return mayAct }
	ids := deliverN(t, bob, 2)
	dropped := filepath.Join(bob.Path(), "inbox", "n.txt")
	dropFile(t, bob, "inbox", "n.txt", "do it")
	if _, err := drop.Ingest(ctx, bob, 0); err != why {
		t.Error(err)
	}
	if _, err := os.Stat(dropped); err != nil || countDrops(bob) != 1 {
		t.Error(err, countDrops(bob))
	}
	h, err := claim.HandOver(ctx, bob, holder.New(holder.Session, "s1", "prompt 1", time.Now()), false, inbox.ReadOptions{})
	if !errors.Is(err, why) || len(h.Items) > 0 {
		t.Error(h, err)
	}
	runner, err := claim.HoldRunner(ctx, bob.Store(), "bob")
	must(t, err)
	defer runner.Release()
	if c, err := runner.Claim(ctx, ids); err != why || c != nil {
		t.Error(c, err)
	}
	if held, err := bob.Held(); err != nil || len(held) > 0 {
		t.Errorf("held: %v, %v", held, err)
	}
	equal(t, "peeked", idsOf(peeked(t, bob)), ids...)
	mayAct = nil
	settleDrops(t, bob)
	if n := len(read(t, bob)); n != 3 {
		t.Errorf("%d messages in the end, want 3", n)
	}
}

func peeked(t *testing.T, b *maildir.Box) []*wire.Item {
	t.Helper()
	batch, err := inbox.Peek(ctx, b, inbox.ReadOptions{})
	must(t, err)
	return batch.Items
}

// What arrives while the store is asked whether it may act is not handed over: the answer may not hold for it.
func TestMayActWhileMailArrives(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	first := deliverN(t, bob, 1)
	bob.Store().MayAct = func(context.Context) error {
		deliverN(t, bob, 1)
		return nil
	}
	handed(t, handOver(t, bob, "s1", "prompt 1", time.Now()), false, first...)
}

// A message that was there before and is not now is not typed if it comes back while the store is asked.
func TestMayActWhileMailComesBack(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	ids := deliverN(t, bob, 2)
	file := filepath.Join(bob.Path(), "inbox", "new", string(ids[0])+".json")
	must(t, os.Rename(file, file+".away"))
	bob.Store().MayAct = func(context.Context) error { return os.Rename(file+".away", file) }
	runner, err := claim.HoldRunner(ctx, bob.Store(), "bob")
	must(t, err)
	defer runner.Release()
	c, err := runner.Claim(ctx, ids)
	must(t, err)
	equal(t, "claimed", idsOf(c.Items), ids[1])
}

// countDrops counts the dropped files that wait.
func countDrops(b *maildir.Box) int {
	found, _ := drop.List(b)
	return len(found.Drops)
}

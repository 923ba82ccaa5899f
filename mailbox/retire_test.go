package mailbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

func TestRetireAndRestore(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	if err := s.Restore(ctx, "bob"); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	if err := s.Restore(ctx, "carol"); !errors.Is(err, ErrNoAgent) {
		t.Error(err)
	}
	first := deliverN(t, bob, 1)[0]
	appendEvents(t, bob, "a")
	drop(t, bob, "inbox", "note", []byte("not taken in yet"))
	where, err := s.Retire(ctx, "bob")
	if err != nil || !strings.HasPrefix(where, ".archive/retired/bob.") {
		t.Fatal(where, err)
	}
	if _, err := s.Retire(ctx, "bob"); !errors.Is(err, ErrNoAgent) {
		t.Error(err)
	}
	// Another of that name, retired later, is the one that comes back first.
	if err := s.Create(ctx, "bob"); err != nil {
		t.Fatal(err)
	}
	second := deliverN(t, bob, 1)[0]
	if _, err := s.Retire(ctx, "bob"); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Retired(); err != nil || len(all) != 2 {
		t.Error(all, err)
	}
	if err := s.Restore(ctx, "bob"); err != nil {
		t.Fatal(err)
	}
	if _, err := bob.Get(second); err != nil {
		t.Error(err)
	}
	if _, err := bob.Get(first); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if err := os.Rename(bob.Path(), filepath.Join(teamPath(s), ".away")); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(ctx, "bob"); err != nil {
		t.Fatal(err)
	}
	if b, err := bob.Read(ctx, ReadOptions{}, takeAll); err != nil || len(b.Items) != 2 {
		t.Error(b, err)
	}
	same(t, next(t, bob.Events(0))[:1], "1 a")
}

// Who runs is not retired.
func TestRetireOneWhoRuns(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	l, err := s.locks.Lock(ctx, "bob.runner", lockfile.Exclusive, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if running, err := s.Running("bob"); !running || err != nil {
		t.Error(running, err)
	}
	if _, err := s.Retire(ctx, "bob"); !errors.Is(err, ErrRunning) {
		t.Error(err)
	}
	l.Unlock()
	if _, err := s.Retire(ctx, "bob"); err != nil {
		t.Error(err)
	}
}

// Many make the same agent: one does, and none is half-made at any moment.
func TestCreate(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	s := openStore(t, path, nil)
	errs := make(chan error)
	for range 4 {
		go func() { errs <- openStore(t, path, nil).Create(ctx, "bob") }()
	}
	made := 0
	for range 4 {
		switch err := <-errs; {
		case err == nil:
			made++
		case !errors.Is(err, ErrExists):
			t.Error(err)
		}
	}
	if made != 1 || !s.Box("bob").Exists() {
		t.Error(made)
	}
	for _, name := range []string{"", "..", "Bob", "all", "drop", ".locks", "a/b"} {
		if err := s.Create(ctx, wire.Name(name)); err == nil {
			t.Errorf("%q was made", name)
		}
	}
	if agents, err := s.Agents(); err != nil || len(agents) != 1 || agents[0] != "bob" {
		t.Error(agents, err)
	}
}

// Who has just appended keeps the log open, and does not look at its path for a
// moment. An event still never goes to a log that was moved away since.
func TestAppendAroundRetire(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	ours, theirs := openStore(t, path, nil, "bob"), openStore(t, path, nil)
	note := func() error {
		return ours.Box("bob").Append(t.Context(), AppendOptions{}, wire.Event{Source: "cli", Kind: "note"})
	}
	for seq := uint64(1); seq < 50; {
		for range 3 {
			if err := note(); err != nil {
				t.Fatal(err)
			}
			seq++
		}
		if _, err := theirs.Retire(t.Context(), "bob"); err != nil {
			t.Fatal(err)
		}
		if err := note(); !errors.Is(err, ErrNoAgent) {
			t.Fatalf("appended to somebody who has gone: %v", err)
		}
		if err := theirs.Restore(t.Context(), "bob"); err != nil {
			t.Fatal(err)
		}
		if last, err := ours.Box("bob").LastSeq(); err != nil || last != seq-1 {
			t.Fatalf("last event %d, %v; want %d", last, err, seq-1)
		}
	}
	// Another one of that name is not the one before.
	if _, err := theirs.Retire(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Create(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	if err := note(); err != nil {
		t.Fatal(err)
	}
	if last, err := theirs.Box("bob").LastSeq(); err != nil || last != 1 {
		t.Errorf("last event %d, %v; want 1", last, err)
	}
}

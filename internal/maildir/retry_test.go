package maildir_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/wire"
)

// A process that is killed at any operation while it tries a bad file again loses nothing, and whoever goes on makes no
// second message.
func TestRetryBadKilled(t *testing.T) {
	killed := errors.New("killed")
	m := message("once")
	for name, content := range map[string]string{
		string(m.ID) + ".json": string(encoded(t, m)),
		"notes.txt":            "once",
	} {
		points := 0
		for isOver := false; !isOver; points += 2 {
			path := testtree.Memory(t)
			bob := openStore(t, path, nil, "bob").Box("bob")
			file := filepath.Join(bob.Path(), "inbox/bad", name)
			must(t, os.WriteFile(file, []byte(content), 0o600))
			must(t, os.WriteFile(file+".reason", []byte("torn\n"), 0o600))
			old := time.Now().Add(-time.Minute)
			must(t, os.Chtimes(file, old, old))
			left := points
			var mu sync.Mutex
			dying, err := open(path, func(op, name string) error {
				mu.Lock()
				defer mu.Unlock()
				if left--; left < 0 {
					return killed
				}
				return nil
			})
			must(t, err)
			drop.Retry(ctx, dying.Box("bob"), name)
			isOver = left >= 0
			dying.Close()
			if bad, err := drop.BadNames(bob); err != nil || len(bad) > 0 {
				must(t, err)
				_, err := drop.Retry(ctx, bob, name)
				must(t, err)
			}
			settleDrops(t, bob)
			if got := read(t, bob); len(got) != 1 {
				t.Fatalf("%s, killed at %d: %d messages", name, points, len(got))
			}
			if bad, err := drop.BadNames(bob); err != nil || len(bad) > 0 || countDrops(bob) > 0 {
				t.Fatalf("%s, killed at %d: %q is bad, %v", name, points, bad, err)
			}
		}
		t.Logf("%s: killed at %d operations", name, points)
	}
}

// What was delivered does not come again, under no name.
func TestRetryBadTwice(t *testing.T) {
	bob := newBob(t)
	m := message("once")
	deliver(t, bob, m)
	read(t, bob)
	bad := filepath.Join(bob.Path(), "inbox/bad")
	for name, content := range map[string]string{
		string(m.ID) + ".json": string(encoded(t, m)),
		"copy.json":            string(encoded(t, m)),
		string(m.ID) + ".json." + string(wire.NewID()): string(encoded(t, m)),
	} {
		must(t, os.WriteFile(filepath.Join(bad, name), []byte(content), 0o600))
	}
	names, err := drop.BadNames(bob)
	must(t, err)
	for _, name := range names {
		if _, err := drop.Retry(ctx, bob, name); !is[*drop.DeliveredError](err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after, err := drop.BadNames(bob); err != nil || len(after) != 3 || len(read(t, bob)) != 0 {
		t.Error(after, err)
	}
	if _, err := drop.Retry(ctx, bob, "none"); !errors.Is(err, maildir.ErrNotFound) {
		t.Error(err)
	}
}

func is[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }

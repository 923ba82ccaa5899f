package watcher

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"pgregory.net/rapid"

	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/wire"
)

// TestEachOnceWhateverHappens does what can happen to a mailbox in random
// order, and then waits for everything that was sent: each message once.
func TestEachOnceWhateverHappens(t *testing.T) {
	for name, openDirs := range map[string]func() (*Dirs, error){"events": OpenDirs, "no events": noEvents} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testround.Check(t, 24, func(r *rapid.T) { eachOnce(t, r, openDirs) })
		})
	}
}

func eachOnce(t *testing.T, r *rapid.T, openDirs func() (*Dirs, error)) {
	dir := testtree.Memory(t)
	defer os.RemoveAll(dir)
	s := openStore(t, dir, "bob")
	bob := s.Box("bob")
	w := watch(t, Options{Messages: true, rescan: 50 * time.Millisecond, openDirs: openDirs}, bob)
	defer w.Close()
	want, got := map[string]bool{}, map[string]int{}
	var ids []wire.ID
	here := true
	take := func() {
		if e := next(t, w); e.Message != nil {
			if got[word(e)]++; got[word(e)] > 1 || !want[word(e)] {
				t.Fatalf("%q came %d times", word(e), got[word(e)])
			}
		}
	}
	// What is read while hints may be lost must have been seen before.
	settled := func() {
		for len(got) < len(want) {
			take()
		}
	}
	body := func() string {
		b := fmt.Sprint("m", len(want))
		want[b] = true
		return b
	}
	r.Repeat(map[string]func(*rapid.T){
		"send": func(*rapid.T) {
			if here {
				ids = append(ids, deliver(t, bob, body()))
			}
		},
		"drop": func(*rapid.T) {
			if here {
				b := body()
				dropFile(t, bob, b+".txt", b)
			}
		},
		"next": func(*rapid.T) {
			if here && len(got) < len(want) {
				take()
			}
		},
		"read": func(*rapid.T) {
			if here {
				settled()
				readAll(t, bob)
			}
		},
		"unread": func(*rapid.T) {
			if here && len(ids) > 0 {
				must(t, bob.MarkUnread(t.Context(), ids[len(ids)-1]))
			}
		},
		"retire": func(*rapid.T) {
			if here {
				if _, err := keep.Retire(t.Context(), s, "bob"); err != nil {
					t.Fatal(err)
				}
				here = false
			}
		},
		"restore": func(*rapid.T) {
			if !here {
				err := keep.Restore(t.Context(), s, "bob")
				must(t, err)
				here = true
			}
		},
		"deaf": func(*rapid.T) {
			if w.dirs != nil && here {
				unwatch(w)
				deliver(t, bob, body())
				w.dirs.fs.Errors <- fsnotify.ErrEventOverflow
			}
		},
	})
	if !here {
		err := keep.Restore(t.Context(), s, "bob")
		must(t, err)
	}
	settled()
	deliver(t, bob, body())
	settled()
}

package watcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/fsnotify/fsnotify"
)

func TestRemovedAndMadeAgain(t *testing.T) {
	s, bob := bobs(t)
	w := watch(t, Options{Messages: true, Events: true}, bob)
	deliver(t, bob, "one")
	expect(t, w, "one")
	appendEvent(t, bob, "turn_started")
	expect(t, w, "turn_started 1")
	for i := range 5 { // several times: inode numbers come again
		if err := os.RemoveAll(bob.Path()); err != nil {
			t.Fatal(err)
		}
		expect(t, w, "gone")
		if err := s.Create(t.Context(), "bob"); err != nil {
			t.Fatal(err)
		}
		deliver(t, bob, fmt.Sprint(i))
		expect(t, w, fmt.Sprint(i))
		appendEvent(t, bob, "turn_idle")
		expect(t, w, "turn_idle 1")
	}
	nothing(t, w, bob)
}

func TestReplacedWhileNobodyLooks(t *testing.T) {
	s, bob := bobs(t)
	w := watch(t, Options{Messages: true, Events: true}, bob)
	for i := range 5 {
		if err := os.RemoveAll(bob.Path()); err != nil {
			t.Fatal(err)
		}
		if err := s.Create(t.Context(), "bob"); err != nil {
			t.Fatal(err)
		}
		deliver(t, bob, fmt.Sprint(i))
		for {
			// That it was gone may have been noticed, or not.
			got := word(next(t, w))
			if got == fmt.Sprint(i) {
				break
			}
			if got != "gone" {
				t.Fatal(got)
			}
		}
		appendEvent(t, bob, fmt.Sprint("kind_", i))
		expect(t, w, fmt.Sprintf("kind_%d 1", i))
	}
	nothing(t, w, bob)
}

func TestRetiredAndRestored(t *testing.T) {
	s, bob := bobs(t)
	w := watch(t, Options{Messages: true, Events: true}, bob)
	deliver(t, bob, "one")
	appendEvent(t, bob, "turn_started")
	got := map[string]bool{word(next(t, w)): true, word(next(t, w)): true}
	if !got["one"] || !got["turn_started 1"] {
		t.Fatal(got)
	}
	for i := range 3 {
		if _, err := s.Retire(t.Context(), "bob"); err != nil {
			t.Fatal(err)
		}
		expect(t, w, "gone")
		if err := s.Restore(t.Context(), "bob", ""); err != nil {
			t.Fatal(err)
		}
		deliver(t, bob, fmt.Sprint(i))
		expect(t, w, fmt.Sprint(i))
		appendEvent(t, bob, "turn_idle")
		expect(t, w, fmt.Sprint("turn_idle ", i+2))
	}
	// Another of that name meanwhile: its log is another, and the first one goes
	// on where it was.
	if _, err := s.Retire(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	expect(t, w, "gone")
	if err := s.Create(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	appendEvent(t, bob, "another")
	expect(t, w, "another 1")
	if err := os.RemoveAll(bob.Path()); err != nil {
		t.Fatal(err)
	}
	expect(t, w, "gone")
	if err := s.Restore(t.Context(), "bob", ""); err != nil {
		t.Fatal(err)
	}
	appendEvent(t, bob, "again")
	expect(t, w, "again 5")
	nothing(t, w, bob)
}

func TestMessagesOfARetiredAgentWaitForItsReturn(t *testing.T) {
	s, bob := bobs(t)
	w := watch(t, Options{Messages: true}, bob)
	deliver(t, bob, "one")
	deliver(t, bob, "two")
	expect(t, w, "one")
	if _, err := s.Retire(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	for word(next(t, w)) != "gone" { // "two" may come first
	}
	if err := s.Restore(t.Context(), "bob", ""); err != nil {
		t.Fatal(err)
	}
	deliver(t, bob, "three")
	for word(next(t, w)) != "three" {
	}
	nothing(t, w, bob)
}

func TestAgentThatComesAfterOpen(t *testing.T) {
	s, bob := bobs(t)
	appendEvent(t, bob, "old")
	deliver(t, bob, "unread")
	if _, err := s.Retire(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	w := watch(t, Options{Messages: true, Events: true}, bob)
	expect(t, w, "gone")
	if err := s.Restore(t.Context(), "bob", ""); err != nil {
		t.Fatal(err)
	}
	expect(t, w, "unread")
	appendEvent(t, bob, "new")
	expect(t, w, "new 2")
	nothing(t, w, bob)
}

func TestNoWatchesLeft(t *testing.T) {
	_, bob := bobs(t)
	t.Cleanup(func() { addWatch = (*fsnotify.Watcher).Add })
	addWatch = func(w *fsnotify.Watcher, path string) error {
		if filepath.Base(path) != "inbox" {
			return &os.PathError{Op: "add", Path: path, Err: syscall.ENOSPC}
		}
		return w.Add(path)
	}
	w := watch(t, Options{Messages: true, Events: true}, bob)
	if !strings.Contains(w.Polling(), "max_user_watches") {
		t.Errorf("polls because %q", w.Polling())
	}
	deliver(t, bob, "one")
	expect(t, w, "one")
	appendEvent(t, bob, "turn_idle")
	expect(t, w, "turn_idle 1")
}

func TestLinkIsNotFollowed(t *testing.T) {
	_, bob := bobs(t)
	if err := os.Rename(bob.Path(), filepath.Join(filepath.Dir(bob.Path()), ".elsewhere")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".elsewhere", bob.Path()); err != nil {
		t.Skip(err)
	}
	w := watch(t, Options{Messages: true, Existing: true}, bob)
	if e := next(t, w); e.Err == nil || errors.Is(e.Err, mailbox.ErrNoAgent) {
		t.Fatal(word(e))
	}
}

func TestGoneWhileReading(t *testing.T) {
	// Retired and restored at random while messages come: each once.
	s, bob := bobs(t)
	w := watch(t, Options{Messages: true, rescan: 100 * time.Millisecond}, bob)
	const n = 300
	var sender sync.WaitGroup
	defer sender.Wait()
	sender.Go(func() {
		for i := range n {
			if i%10 == 0 {
				if _, err := s.Retire(t.Context(), "bob"); err != nil {
					t.Error(err)
				}
				if err := s.Restore(t.Context(), "bob", ""); err != nil {
					t.Error(err)
				}
			}
			deliver(t, bob, fmt.Sprint(i))
		}
	})
	count := map[string]int{}
	for len(count) < n {
		if e := next(t, w); e.Message != nil {
			if count[word(e)]++; count[word(e)] > 1 {
				t.Fatal(word(e), "came twice")
			}
		}
	}
}

func TestMovedAwayAndRemovedAtOnce(t *testing.T) {
	// fsnotify fails to let go of a directory that is gone, and tells so.
	s, bob := bobs(t)
	w := watch(t, Options{Messages: true, Events: true}, bob)
	away := filepath.Join(filepath.Dir(bob.Path()), ".away")
	for i := range 20 {
		if err := os.Rename(bob.Path(), away); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(away); err != nil {
			t.Fatal(err)
		}
		expect(t, w, "gone")
		if err := s.Create(t.Context(), "bob"); err != nil {
			t.Fatal(err)
		}
		deliver(t, bob, fmt.Sprint(i))
		expect(t, w, fmt.Sprint(i))
	}
}

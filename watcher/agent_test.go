package watcher

import (
	"fmt"
	"os"
	"testing"

	"github.com/agentteammail/atm/internal/maildir"
)

func TestReplacedWhileNobodyLooks(t *testing.T) {
	s, bob := bobs(t)
	w := watch(t, Options{Messages: true, Events: true}, bob)
	for i := range 5 {
		must(t, os.RemoveAll(bob.Path()))
		must(t, s.Create(t.Context(), "bob"))
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
		_, err := s.Restore(t.Context(), "bob")
		must(t, err)
		deliver(t, bob, fmt.Sprint(i))
		expect(t, w, fmt.Sprint(i))
		appendEvent(t, bob, "turn_idle")
		expect(t, w, fmt.Sprint("turn_idle ", i+2))
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
	_, err := s.Restore(t.Context(), "bob")
	must(t, err)
	expect(t, w, "unread")
	appendEvent(t, bob, "new")
	expect(t, w, "new 2")
	nothing(t, w, bob)
}

func TestAgentThatIsAddedAfterOpen(t *testing.T) {
	s, bob := bobs(t)
	team := func() (boxes []*maildir.Box, err error) {
		names, err := s.Agents()
		for _, n := range names {
			boxes = append(boxes, s.Box(n))
		}
		return boxes, err
	}
	w := watch(t, Options{Messages: true, Events: true, Boxes: team}, bob)
	must(t, s.Create(t.Context(), "carol"))
	carol := s.Box("carol")
	deliver(t, carol, "one")
	expect(t, w, "one")
	appendEvent(t, carol, "turn_started")
	expect(t, w, "turn_started 1")
	deliver(t, bob, "two")
	expect(t, w, "two")
	nothing(t, w, carol)
}

package watcher

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/wire"
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
		if _, err := keep.Retire(t.Context(), s, "bob"); err != nil {
			t.Fatal(err)
		}
		expect(t, w, "gone")
		err := keep.Restore(t.Context(), s, "bob")
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
	if _, err := keep.Retire(t.Context(), s, "bob"); err != nil {
		t.Fatal(err)
	}
	w := watch(t, Options{Messages: true, Events: true}, bob)
	expect(t, w, "gone")
	err := keep.Restore(t.Context(), s, "bob")
	must(t, err)
	expect(t, w, "unread")
	appendEvent(t, bob, "new")
	expect(t, w, "new 2")
	nothing(t, w, bob)
}

func TestAgentThatIsAddedAfterOpen(t *testing.T) {
	s, bob := bobs(t)
	team := func() (boxes []Mailbox, err error) {
		names, err := s.Agents()
		for _, n := range names {
			boxes = append(boxes, s.Box(n))
		}
		return boxes, err
	}
	w := watch(t, Options{Messages: true, Events: true, Mailboxes: team}, bob)
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

// OpenTeam needs a directory and nothing else: all agents, those that come later too, or the named ones.
func TestOpenTeam(t *testing.T) {
	dir := testtree.Memory(t)
	s := openStore(t, dir, "bob")
	for _, named := range [][]wire.Name{nil, {"bob", "carol"}} {
		w, err := OpenTeam(t.Context(), dir, Options{Messages: true}, named...)
		must(t, err)
		must(t, s.Create(t.Context(), "carol"))
		for _, b := range []*maildir.Box{s.Box("bob"), s.Box("carol")} {
			id := deliver(t, b, "hello")
			e := next(t, w)
			for e.Err != nil { // carol was not there
				e = next(t, w)
			}
			if e.Message == nil || e.Message.ID != id || e.Address.Agent != b.Agent() {
				t.Fatalf("%+v", e)
			}
		}
		must(t, w.Close())
		must(t, os.RemoveAll(s.Box("carol").Path()))
	}
	t.Chdir(dir)
	if _, err := OpenTeam(t.Context(), "", Options{}); err == nil {
		t.Error("a directory without a name was opened")
	}
	here, err := OpenTeam(t.Context(), ".", Options{Messages: true, Existing: true}, "bob")
	must(t, err)
	defer here.Close()
	if e, err := here.Next(t.Context()); err != nil || e.Address.Team != wire.Name(filepath.Base(dir)) {
		t.Error(e.Address, err)
	}
	if _, err := OpenTeam(t.Context(), dir+"/none", Options{}); err == nil {
		t.Fatal("a directory that is not there was opened")
	}
}

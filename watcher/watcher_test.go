package watcher

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/wire"
)

// children are what the test binary does when it is started as another
// process.
var children = map[string]func(){}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	if f := children[os.Getenv("ATM_WATCHER_TEST")]; f != nil {
		f()
		return
	}
	flag.Set("test.parallel", "6") // tests mostly wait
	os.Exit(m.Run())
}

// openStore is a team in a directory, with some agents.
func openStore(t testing.TB, path string, agents ...wire.Name) *maildir.Store {
	t.Helper()
	s, err := openStoreIn(path)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	for _, a := range agents {
		must(t, s.Create(t.Context(), a))
	}
	return s
}

func openStoreIn(path string) (*maildir.Store, error) {
	root, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	return maildir.NewStore(root, "main"), root.MkdirAll(".locks")
}

func bobs(t testing.TB) (*maildir.Store, *maildir.Box) {
	s := openStore(t, testtree.Memory(t), "bob")
	return s, s.Box("bob")
}

func message(from wire.Name, body string) *wire.Message {
	return &wire.Message{ID: wire.NewID(), From: wire.Address{Agent: from, Team: "main"}, Body: body}
}

func deliver(t testing.TB, b *maildir.Box, body string) wire.ID {
	t.Helper()
	p := &maildir.Post{Message: message("alice", body), To: []*maildir.Box{b}}
	maildir.Deliver(context.Background(), p)
	must(t, p.Outcomes[0].Err)
	return p.Message.ID
}

func appendEvent(t testing.TB, b *maildir.Box, kind string) {
	t.Helper()
	must(t, b.Log().Append(context.Background(), wire.Event{Kind: kind, Source: "cli"}))
}

func readAll(t testing.TB, b *maildir.Box) {
	t.Helper()
	_, err := inbox.Read(t.Context(), b, inbox.ReadOptions{}, func(b inbox.Batch) (int, error) { return len(b.Items), nil })
	must(t, err)
}

// noEvents is an Options.openDirs: the kernel tells the watcher nothing.
func noEvents() (*Dirs, error) { return nil, syscall.EMFILE }

// watch opens a watcher that looks without a hint never, unless o says how
// often: what a test sees came by a hint.
func watch(t testing.TB, o Options, boxes ...Mailbox) *Watcher {
	t.Helper()
	if o.rescan == 0 {
		o.rescan = time.Hour
	}
	o.poll = 20 * time.Millisecond
	w := Open(t.Context(), boxes, o)
	t.Cleanup(func() { w.Close() })
	return w
}

func next(t testing.TB, w *Watcher) Entry {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := w.Next(ctx)
	must(t, err)
	return e
}

// word is an entry in a word: a message's body, an event's kind and number, an
// error's nature.
func word(e Entry) string {
	switch {
	case e.Message != nil:
		return e.Message.Body
	case e.Event != nil:
		return fmt.Sprintf("%s %d", e.Event.Kind, e.Event.Seq)
	case errors.Is(e.Err, maildir.ErrNoMailbox):
		return "gone"
	}
	return fmt.Sprint(e.Err)
}

// expect compares the next entries with what they should be.
func expect(t testing.TB, w *Watcher, words ...string) {
	t.Helper()
	for _, want := range words {
		if got := word(next(t, w)); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// nothing makes sure that nothing waits before a message that is sent now.
func nothing(t testing.TB, w *Watcher, b *maildir.Box) {
	t.Helper()
	deliver(t, b, "the last one")
	expect(t, w, "the last one")
}

func TestArrivalsDuringOpenAreSeenOnce(t *testing.T) {
	for range 20 {
		_, bob := bobs(t)
		sent := make(chan wire.ID, 100)
		begun := make(chan bool)
		go func() {
			defer close(sent)
			for i := range 60 {
				sent <- deliver(t, bob, "m")
				if i == 10 {
					close(begun)
				}
			}
		}()
		<-begun
		w := watch(t, Options{Messages: true, Existing: true}, bob)
		count := map[wire.ID]int{}
		for range 60 {
			count[next(t, w).Message.ID]++
		}
		for id := range sent {
			if count[id] != 1 {
				t.Fatalf("%s came %d times", id, count[id])
			}
		}
		nothing(t, w, bob)
		w.Close()
	}
}

func TestMessageReadMeanwhileIsStillAnEntry(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("its events do not name what has come and gone")
	}
	_, bob := bobs(t)
	w := watch(t, Options{Messages: true}, bob)
	deliver(t, bob, "quick")
	readAll(t, bob)
	if e := next(t, w); word(e) != "quick" {
		t.Fatal(word(e), e.Message)
	}
	nothing(t, w, bob)
}

func TestPollingSeesEverythingToo(t *testing.T) {
	t.Parallel()
	s, bob := bobs(t)
	w := watch(t, Options{Messages: true, Events: true, openDirs: noEvents}, bob)
	deliver(t, bob, "one")
	expect(t, w, "one")
	appendEvent(t, bob, "turn_idle")
	expect(t, w, "turn_idle 1")
	must(t, os.WriteFile(filepath.Join(bob.Path(), "inbox", "note.txt"), []byte("dropped"), 0o600))
	expect(t, w, "dropped")
	if _, err := keep.Retire(t.Context(), s, "bob"); err != nil {
		t.Fatal(err)
	}
	expect(t, w, "gone")
	must(t, s.Create(t.Context(), "bob"))
	deliver(t, bob, "two")
	expect(t, w, "two")
	appendEvent(t, bob, "turn_started")
	expect(t, w, "turn_started 1")
}

func TestTornFileIsAnEntryOnceItIsWhole(t *testing.T) {
	_, bob := bobs(t)
	w := watch(t, Options{Messages: true}, bob)
	m := message("alice", "whole")
	data, _ := m.Encode()
	f, err := os.Create(filepath.Join(bob.Path(), "inbox", "new", string(m.ID)+".json"))
	must(t, err)
	f.Write(data[:20])
	deliver(t, bob, "good")
	expect(t, w, "good")
	f.Write(data[20:])
	f.Close()
	expect(t, w, "whole")
	nothing(t, w, bob)
}

// A message that is not due is reported when it is, without a hint.
func TestNotBefore(t *testing.T) {
	t.Parallel()
	_, bob := bobs(t)
	w := watch(t, Options{Messages: true}, bob)
	m := message("alice", "later")
	m.NotBefore = time.Now().Add(300 * time.Millisecond)
	p := &maildir.Post{Message: m, To: []*maildir.Box{bob}}
	maildir.Deliver(t.Context(), p)
	must(t, p.Outcomes[0].Err)
	deliver(t, bob, "now")
	if e := next(t, w); e.Message == nil || e.Message.Body != "now" {
		t.Errorf("%+v", e)
	}
	if e := next(t, w); e.Message == nil || e.Message.Body != "later" || time.Now().Before(m.NotBefore) {
		t.Errorf("%+v", e)
	}
}

package maildir_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/wire"
)

// A stray file with the name of a day hides no mail: lookups ignore it, and it is moved to bad when the day is needed.
func TestFileNamedLikeADay(t *testing.T) {
	t.Parallel()
	today := wire.NewID().Day()
	for _, day := range []string{"2026-01-02", today} {
		s := newStore(t, "alice", "bob")
		bob := s.Box("bob")
		old := readOn(t, bob, 10, 1)[0]
		strays := []string{"inbox/done/" + day, "sent/" + day, "../.archive/bob/done/" + day}
		for _, stray := range strays {
			write(t, filepath.Join(bob.Path(), stray), "stray")
		}
		h, err := keep.Examine(bob, false)
		if err != nil || len(h.Files["drop.misplaced"]) != 3 {
			t.Error("the doctor is told of ", h.Files, err)
		}
		m := message("x")
		maildir.Deliver(ctx, &maildir.Post{Message: m, To: []*maildir.Box{bob}, Sender: bob})
		equal(t, "read", read(t, bob), m.ID)
		n := 0
		if found, err := inbox.Walk(ctx, bob, maildir.Range{Unread: true, Done: true, Archive: true, Sent: true}, func(*wire.Item) bool { n++; return true }); err != nil || found.Bad > 0 || n != 3 {
			t.Error("walk: ", n, found, err)
		}
		frag, _ := wire.ParseFragment(string(old[:13]))
		if ids, err := bob.Match(frag); err != nil || len(ids) != 1 {
			t.Error("match: ", ids, err)
		}
		if _, err := bob.Get(past); !errors.Is(err, maildir.ErrNotFound) {
			t.Error(err)
		}
		if list, err := keep.ListAll(ctx, bob); err != nil || len(list) != 2 {
			t.Error("list: ", list, err)
		}
		if sent, err := bob.Sent(m.ID); err != nil || sent.Body != "x" {
			t.Error(sent, err)
		}
		if _, err := keep.GC(ctx, bob, keep.GCOptions{Before: time.Now().AddDate(0, 0, 2)}); err != nil {
			t.Error("gc: ", err)
		}
		takeCensus(t, bob).is(t, map[wire.ID]string{old: "archive", m.ID: "archive"})
		// Only the file with today's name was in the way.
		bad, err := drop.BadFiles(bob)
		if want := 3 * count(day == today); err != nil || len(bad) != want || want > 0 && (bad[0].Size != 5 || !strings.HasPrefix(bad[0].Name, day) || !strings.Contains(bad[0].Reason, "in the place of a directory for messages")) {
			t.Error(bad, err)
		}
	}
}

// A file in place of a directory of the mailbox is reported, and nothing is lost: once that is mended, everything is
// there.
func TestFileInPlaceOfADirectory(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"inbox", "inbox/new", "inbox/done"} {
		s := newStore(t, "alice", "bob")
		bob := s.Box("bob")
		old, id := readOn(t, bob, 3, 1)[0], deliverN(t, bob, 1)[0]
		at := filepath.Join(bob.Path(), part)
		must(t, os.Rename(at, at+".away"))
		write(t, at, "in the way")
		o := post(bob, withID(past, message("x")), true)
		b, readErr := inbox.Read(ctx, bob, inbox.ReadOptions{}, receiveAll)
		_, gcErr := keep.GC(ctx, bob, keep.GCOptions{Before: time.Now()})
		_, listErr := keep.ListAll(ctx, bob)
		_, walkErr := inbox.Walk(ctx, bob, maildir.Range{Unread: true, Done: true}, func(*wire.Item) bool { return true })
		plain := map[string]error{"gc": gcErr, "list": listErr, "walk": walkErr}
		if part == "inbox/done" { // messages are delivered and shown, but cannot be marked
			if plain["read"] = readErr; o.Err != nil || len(b.Items) != 2 {
				t.Error(part, o.Err)
			}
		} else {
			plain["deliver"], plain["read"] = o.Err, readErr
			_, plain["get"] = bob.Get(id)
			_, plain["count"] = inbox.Count(ctx, bob)
			_, plain["retire"] = keep.Retire(ctx, s, "bob")
			if agents, err := s.Agents(); err != nil || len(agents) != 2 { // a damaged agent is still listed
				t.Error(part, agents, err)
			}
		}
		for what, err := range plain {
			if !errors.Is(err, durable.ErrNotDirectory) || !strings.Contains(err.Error(), "bob/"+part) {
				t.Errorf("%s, %s: %v", part, what, err)
			}
		}
		must(t, errors.Join(os.Remove(at), os.Rename(at+".away", at)))
		want := map[wire.ID]string{old: "done", id: "new"}
		if part == "inbox/done" {
			want[past] = "new"
		}
		takeCensus(t, bob).is(t, want)
		if got := read(t, bob); len(got) != len(want)-1 {
			t.Error(part, got)
		}
	}
}

// A message that cannot be read is reported, stays where it is, and hides no other.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	var broken atomic.Pointer[string]
	s := faultyStore(t, func(op, name string) error {
		if file := broken.Load(); file != nil && op == "read" && strings.HasSuffix(name, *file) {
			return syscall.EIO
		}
		return nil
	}, "bob")
	bob := s.Box("bob")
	ids := deliverN(t, bob, 3)
	file := nameOf(ids[1])
	broken.Store(&file)
	b, err := inbox.Read(ctx, bob, inbox.ReadOptions{}, receiveAll)
	if err != nil || len(b.Items) != 2 || b.Bad != 1 {
		t.Error(b, err)
	}
	broken.Store(nil)
	if got := read(t, bob); len(got) != 1 {
		t.Error(got)
	}
}

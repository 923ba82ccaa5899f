package maildir_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

// While a reader shows messages it holds no lock: others read and lease what it shows, and what is still unread then is
// marked.
func TestReadWithASlowOutput(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	list := deliverN(t, bob, 4)
	b, err := inbox.Read(ctx, bob, inbox.ReadOptions{}, func(inbox.Batch) (int, error) {
		other, err := inbox.Read(ctx, bob, inbox.ReadOptions{IDs: list[:1]}, receiveAll)
		if err != nil || len(other.Items) != 1 {
			t.Error(other, err)
		}
		if it := leaseFor(t, bob, "carol", time.Minute); it == nil || it.ID != list[1] {
			t.Error(it)
		}
		return 3, nil
	})
	if err != nil || len(b.Items) != 4 {
		t.Error(b, err)
	}
	takeCensus(t, bob).is(t, map[wire.ID]string{list[0]: "done", list[1]: "new", list[2]: "done", list[3]: "new"})
	equal(t, "events", logged(t, bob), "message_read "+string(list[0]), "message_read "+string(list[2]))
}

// A message counts as read, and its event is logged, if the reader is interrupted after it has received the message.
func TestReadIsInterrupted(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	list := deliverN(t, bob, 1)
	ctx, interrupt := context.WithCancel(ctx)
	b, err := inbox.Read(ctx, bob, inbox.ReadOptions{}, func(inbox.Batch) (int, error) { interrupt(); return 1, nil })
	if err != nil {
		t.Error(b, err)
	}
	equal(t, "events", logged(t, bob), "message_read "+string(list[0]))
}

// An empty batch has no sender.
func TestSenderOfNothing(t *testing.T) {
	if got := (&inbox.Batch{}).Sender(); got != "" {
		t.Error(got)
	}
}

// On a read-only disk messages are shown but not marked. If none are shown there is nothing to report.
func TestReadOnAReadOnlyDisk(t *testing.T) {
	t.Parallel()
	bob := faultyStore(t, func(op, name string) error {
		if op == "publish" && name == ".locks/bob.reader" {
			return syscall.EROFS
		}
		return nil
	}, "bob").Box("bob")
	for n := range 2 {
		if b, err := inbox.Read(ctx, bob, inbox.ReadOptions{}, receiveAll); (err != nil) != (n > 0) || len(b.Items) != n {
			t.Error(b, err)
		}
		deliver(t, bob, message("x"))
	}
}

// ways are the ways in which an unread message is read.
var ways = map[string]func(testing.TB, *maildir.Box, wire.ID) error{
	"read": func(_ testing.TB, b *maildir.Box, _ wire.ID) error {
		_, err := inbox.Read(ctx, b, inbox.ReadOptions{}, receiveAll)
		return err
	},
	"reply": func(_ testing.TB, b *maildir.Box, id wire.ID) error { return b.MarkRead(ctx, id) },
	"type": func(t testing.TB, b *maildir.Box, id wire.ID) error {
		r, err := claim.HoldRunner(ctx, b.Store(), b.Agent())
		must(t, err)
		defer r.Release()
		c, err := r.Claim(ctx, []wire.ID{id})
		must(t, err)
		return c.Typed(ctx)
	},
}

// A message that was acknowledged and put back is owed again, however it is read then.
func TestUnreadAfterAck(t *testing.T) {
	t.Parallel()
	for way, read := range ways {
		bob := newBob(t)
		id := deliver(t, bob, withAck(message(way)))[0]
		must(t, bob.MarkAcked(ctx, id, bob.Address()))
		for range 2 {
			must(t, bob.MarkUnread(ctx, id))
			takeCensus(t, bob).is(t, map[wire.ID]string{id: "new"})
			must(t, read(t, bob, id))
			takeCensus(t, bob).is(t, map[wire.ID]string{id: "cur"})
			must(t, bob.MarkAcked(ctx, id, bob.Address()))
			takeCensus(t, bob).is(t, map[wire.ID]string{id: "done"})
		}
	}
}

// If another place has a message with the same id, the copy that is to move goes to bad, wherever it was to move.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	acts := maps.Clone(ways)
	acts["ack"] = func(_ testing.TB, b *maildir.Box, id wire.ID) error { return b.MarkAcked(ctx, id, b.Address()) }
	acts["withdraw"] = func(_ testing.TB, b *maildir.Box, id wire.ID) error {
		_, err := b.WithdrawRead(ctx, id, b.Address(), nil)
		return err
	}
	for _, where := range []string{"inbox/cur", "inbox/done", "inbox/withdrawn", "../.archive/bob/done"} {
		for act, do := range acts {
			for _, m := range []*wire.Message{message("first"), withAck(message("first"))} {
				name, bob, dir := act+" beside "+where, newBob(t), where
				if strings.HasSuffix(where, "done") {
					dir += "/" + m.ID.Day()
				}
				put(t, bob, dir, m)
				m.Body = "second"
				put(t, bob, "inbox/new", m)
				if n, err := inbox.Count(ctx, bob); err != nil || n.Unread != 1 {
					t.Errorf("%s: %+v, %v", name, n, err)
				}
				if err := do(t, bob, m.ID); err != nil && !errors.Is(err, maildir.ErrWithdrawn) {
					t.Errorf("%s: %v", name, err)
				}
				c := takeCensus(t, bob)
				c.sound(t)
				if c.texts[m.ID] == nil || c.texts[m.ID].Body != "first" || c.place(m.ID) == "new" || c.place(m.ID) == "cur" && act == "ack" {
					t.Errorf("%s: %v", name, c.places)
				}
				bad, _ := drop.BadFiles(bob)
				if len(bad) != 1 || bad[0].Reason != "a duplicate of the message in "+filepath.ToSlash(filepath.Join("bob", dir)) {
					t.Errorf("%s: %v", name, bad)
				}
			}
		}
	}
}

// Large mail is not held as a whole: a batch ends with MaxBytes.
func TestLargeMail(t *testing.T) {
	b := newBob(t)
	text := strings.Repeat("x", 1<<20)
	var ids []wire.ID
	for range 30 {
		ids = append(ids, deliver(t, b, message(text))...)
	}
	held := func(items []*wire.Item) (n int) {
		for _, it := range items {
			n += len(it.Body)
		}
		return n
	}
	page, err := inbox.Peek(t.Context(), b, inbox.ReadOptions{Limit: 2})
	must(t, err)
	if n := held(page.Items); len(page.Items) != 2 || page.More != 28 || n != 2*len(text) {
		t.Errorf("%d items, %d more, %d bytes", len(page.Items), page.More, n)
	}
	var shown []wire.ID
	for rest := ids; ; {
		batch, err := inbox.Peek(t.Context(), b, inbox.ReadOptions{MaxBytes: 7 << 20, IDs: rest, Limit: 29 - len(shown)})
		must(t, err)
		if held(batch.Items) > 8<<20 {
			t.Errorf("%d messages at a time", len(batch.Items))
		}
		rest = rest[len(batch.Items):]
		if shown = append(shown, idsOf(batch.Items)...); !batch.IsCut {
			break
		}
	}
	equal(t, "shown", shown, ids[:29]...)
}

// More counts what another call would show, also behind a full batch: no expired message if only current ones are
// wanted.
func TestMoreOfCurrent(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	for i := range 6 {
		m := message("x")
		if i%2 == 1 {
			m.ExpiresAt = time.Now().Add(-time.Minute)
		}
		deliver(t, bob, m)
	}
	for opt, want := range map[*inbox.ReadOptions]int{
		{Limit: 1}: 5, {Limit: 1, Current: true}: 2, {Limit: 1, Current: true, Match: func(*wire.Item) bool { return true }}: 2,
		{Limit: 3, Current: true}: 0,
	} {
		if b, err := inbox.Peek(ctx, bob, *opt); err != nil || b.More != want {
			t.Errorf("%+v: %d more, %v", opt, b.More, err)
		}
	}
}

// The first message that does not fit ends the batch: no later one is read before it.
func TestReadInOrder(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	ids := deliver(t, bob, message("a"), message("bb"), message("c"), message("ddd"), message("e"))
	asked := 0
	fits := func(m *wire.Message) bool { asked++; return len(m.Body) == 1 }
	for _, opt := range []inbox.ReadOptions{{Fits: fits}, {Fits: fits, Current: true}, {Fits: fits, Match: func(*wire.Item) bool { return true }}} {
		asked = 0
		batch, err := inbox.Peek(ctx, bob, opt)
		must(t, err)
		equal(t, "the batch", idsOf(batch.Items), ids[0])
		if batch.More != 4 || asked != 2 {
			t.Errorf("%d more, %d asked", batch.More, asked)
		}
	}
}

// IDs lists no more than its limit, also within a day.
func TestIDsWithLimit(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	deliverN(t, bob, 5)
	read(t, bob)
	deliverN(t, bob, 5)
	for _, limit := range []int{1, 4, 7, 10, 20} {
		if ids, err := bob.IDs(maildir.Range{Unread: true, Done: true, Limit: limit}); err != nil || len(ids) != min(limit, 10) {
			t.Errorf("%d of %d, %v", len(ids), limit, err)
		}
	}
}

// A look lists new once.
func TestNewIsListedOnce(t *testing.T) {
	t.Parallel()
	var lists atomic.Int32
	bob := faultyStore(t, func(op, name string) error {
		if op == "list" && name == "bob/inbox/new" {
			lists.Add(1)
		}
		return nil
	}, "bob").Box("bob")
	deliverN(t, bob, 3)
	for about, look := range map[string]func() (int, error){
		"count": func() (int, error) { c, err := inbox.Count(ctx, bob); return c.Unread, err },
		"peek":  func() (int, error) { b, err := inbox.Peek(ctx, bob, inbox.ReadOptions{}); return len(b.Items), err },
		"walk": func() (n int, err error) {
			_, err = inbox.Walk(ctx, bob, maildir.Range{Unread: true}, func(*wire.Item) bool { n++; return true })
			return n, err
		},
	} {
		lists.Store(0)
		if n, err := look(); n != 3 || err != nil || lists.Load() != 1 {
			t.Errorf("%s: %d messages, new is listed %d times, %v", about, n, lists.Load(), err)
		}
	}
}

// What is shown together has one sender, or is atm's.
func TestSender(t *testing.T) {
	t.Parallel()
	from := func(names ...wire.Name) (b inbox.Batch) {
		for _, name := range names {
			b.Items = append(b.Items, &wire.Item{Message: &wire.Message{From: wire.Address{Agent: name}}})
		}
		return b
	}
	for want, b := range map[string]inbox.Batch{"alice": from("alice", "alice"), "atm": from("alice", "carol")} {
		if got := b.Sender(); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}

// A message that becomes unread again while it is looked for is found.
func TestFindWhatIsPutBack(t *testing.T) {
	t.Parallel()
	bob, m := newBob(t), message("x")
	unread, owed := filepath.Join(bob.Path(), "inbox/new", nameOf(m.ID)), filepath.Join(bob.Path(), "inbox/cur", nameOf(m.ID))
	must(t, os.WriteFile(owed, encoded(t, m), 0o600))
	whole, _ := wire.ParseFragment(string(m.ID))
	for range 3000 {
		done := make(chan error, 1)
		go func() { done <- os.Rename(owed, unread) }()
		if found, err := bob.Match(whole); err != nil || len(found) != 1 {
			t.Fatalf("found %v, %v", found, err)
		}
		must(t, <-done)
		must(t, os.Rename(unread, owed))
	}
}

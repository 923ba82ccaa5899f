package mailbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

// Walk goes through each place, oldest first, or newest; Since leaves out days by the
// time of their directory.
func TestWalk(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	at := func(where string, days int, body string) wire.ID {
		m := withID(daysAgo(days), message(body))
		if strings.HasSuffix(where, "/") {
			where += m.ID.Day()
		}
		put(t, bob, where, m)
		return m.ID
	}
	fresh, fresher, owed := at("inbox/new", 1, "x"), at("inbox/new", 0, "y"), at("inbox/cur", 1, "x")
	withdrawn, old := at("inbox/withdrawn", 1, "x"), at("../.archive/bob/done/", 9, "x")
	read, sent := at("inbox/done/", 3, "x"), at("sent/", 4, "x")
	long := time.Now().Add(-time.Hour)
	os.Chtimes(filepath.Join(bob.Path(), "inbox/done", read.Day()), long, long)
	all := Range{Unread: true, Owed: true, Withdrawn: true, Archive: true, Done: true, Sent: true}
	walk := func(about string, rg Range, more int, want ...wire.ID) {
		t.Helper()
		var got []wire.ID
		left, bad, err := bob.Walk(ctx, rg, func(it *Item) bool { got = append(got, it.ID); return true })
		if err != nil || bad != 0 || left != more {
			t.Error(about, left, bad, err)
		}
		equal(t, about, got, want...)
	}
	walk("all", all, 0, fresh, fresher, owed, withdrawn, old, read, sent)
	walk("two", Range{Unread: true, Owed: true, Limit: 2}, 1, fresh, fresher)
	walk("newest", Range{Unread: true, Newest: true}, 0, fresher, fresh)
	all.Since = time.Now().Add(-time.Minute)
	walk("since", all, 0, fresh, fresher, owed, withdrawn, old, sent)
	all.Keep = func(raw []byte) bool { return strings.Contains(string(raw), `"y"`) }
	walk("kept", all, 0, fresher)
}

// Due are those whose answer was expected before a moment, and which nobody replaced.
func TestDue(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	now := time.Now().UTC()
	due := func(where string, at time.Duration, edit func(*wire.Message)) wire.ID {
		m := message(`no "due_at" here`)
		m.DueAt = now.Add(at)
		if edit != nil {
			edit(m)
		}
		put(t, bob, where, m)
		return m.ID
	}
	put(t, bob, "inbox/new", message(`"due_at"`))
	unread, owed, read := due("inbox/new", -time.Hour, nil), due("inbox/cur", -time.Hour, nil), due("inbox/done/"+wire.NewID().Day(), -time.Hour, nil)
	due("inbox/new", time.Hour, nil)
	due("inbox/new", -time.Hour, func(m *wire.Message) { m.ExpiresAt = now.Add(-time.Minute) })
	replaced := due("inbox/new", -time.Hour, nil)
	due("inbox/new", time.Hour, func(m *wire.Message) { m.Supersedes = replaced })
	due("inbox/new", time.Hour, func(m *wire.Message) { m.Supersedes, m.From = unread, addr("mallory") })
	items, err := bob.Due(ctx, now)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "due", idsOf(items), unread, owed, read)
}

// A mailbox, or a part of one, that is a symbolic link is refused, and nothing behind
// it is read or written.
func TestLinkedMailbox(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"", "inbox", "inbox/new", "inbox/tmp", "inbox/cur", "inbox/bad", "inbox/done", "events", "sent"} {
		for _, inside := range []bool{false, true} { // the team, or not
			t.Run(fmt.Sprint("bob/", part, inside), func(t *testing.T) {
				s := newStore(t, "bob", "alice")
				bob := s.Box("bob")
				m := withAck(message("x"))
				put(t, bob, "inbox/new", m)
				put(t, s.Box("alice"), "inbox/new", message("for alice"))
				at, to := filepath.Join(bob.Path(), part), filepath.Join(scratch(t), "outside")
				if err := os.Rename(at, to); err != nil {
					t.Fatal(err)
				}
				link := to
				if inside {
					to = s.root.Join("alice/" + part)
					link, _ = filepath.Rel(filepath.Dir(at), to)
				}
				if err := os.Symlink(link, at); err != nil {
					t.Skip("no links here: ", err)
				}
				before := tree(t, to)
				p := &Post{Message: message("y"), To: []*Box{bob}, Sender: bob}
				Deliver(ctx, p)
				_, readErr := bob.Read(ctx, ReadOptions{}, receiveAll)
				if part == "" || part == "inbox" || part == "inbox/new" {
					if !errors.Is(p.Outcomes[0].Err, durable.ErrNotDirectory) || p.Outcomes[0].Stored {
						t.Error("delivered: ", p.Outcomes[0])
					}
					if !errors.Is(readErr, durable.ErrNotDirectory) || bob.Exists() {
						t.Error("read: ", readErr)
					}
					if agents, err := s.Agents(); err != nil || slices.Contains(agents, "bob") {
						t.Error(agents, err)
					}
				}
				bob.TakeIn(ctx)
				bob.Log().Append(ctx, wire.Event{Kind: "a"})
				bob.GC(ctx, GCOptions{})
				bob.MarkAcked(ctx, m.ID, bob.Address(), true)
				equal(t, "behind the link", tree(t, to), before...)
			})
		}
	}
}

func tree(t testing.TB, top string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(top, func(p string, e os.DirEntry, err error) error {
		if err == nil {
			info, _ := e.Info()
			out = append(out, fmt.Sprint(strings.TrimPrefix(p, top), info.Size(), info.Mode()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// People quote any prefix or suffix; the first place with a match decides.
func TestMatch(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	id := func(prefix, suffix string) wire.ID {
		return wire.ID("0190" + prefix + "-0000-7000-8000-00000000" + suffix)
	}
	at := func(where string, id wire.ID) wire.ID {
		put(t, bob, where, withID(id, message("x")))
		return id
	}
	fresh, owed, read := at("inbox/new", id("1111", "aaaa")), at("inbox/cur", id("2222", "aaaa")), id("3333", "aaaa")
	at("inbox/done/"+read.Day(), read)
	at("inbox/withdrawn", id("4444", "bbbb"))
	at("sent/"+past.Day(), id("5555", "cccc"))
	at("sent/"+id("5555", "cccc").Day(), id("5555", "cccc"))
	at("../.archive/bob/done/"+id("6666", "dddd").Day(), id("6666", "dddd"))
	for f, want := range map[string][]wire.ID{
		"aaaa": {fresh, owed}, "01901111": {fresh}, "01903333": {read}, "3333-0000": nil, "0190": {fresh, owed},
		"bbbb": {id("4444", "bbbb")}, "cccc": {id("5555", "cccc")}, "dddd": {id("6666", "dddd")}, "eeee": nil,
		string(read): {read}, strings.ToUpper(string(read)): {read}, string(id("5555", "cccc")): {id("5555", "cccc")},
		string(id("9999", "aaaa")): nil,
	} {
		frag, err := wire.ParseFragment(f)
		if err != nil {
			t.Fatal(f, err)
		}
		got, err := bob.Match(frag)
		if err != nil {
			t.Error(f, err)
		}
		equal(t, f, got, want...)
	}
}

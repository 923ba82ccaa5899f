package mailbox

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

// The errors that callers tell apart.
func TestErrors(t *testing.T) {
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "main", "bob")
	is := func(about string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, not %v", about, err, want)
		}
	}
	_, err := Open(dir)
	is("open nothing", err, ErrNoMailbox)
	bob, err := Create(ctx, dir)
	is("create", err, nil)
	t.Cleanup(func() { bob.Close() })
	_, err = Create(ctx, dir)
	is("create again", err, ErrExists)
	_, err = Open(filepath.Join(filepath.Dir(dir), "carol"))
	is("open nobody's", err, ErrNoMailbox)

	alice, carol := wire.Address{Agent: "alice", Team: "main"}, wire.Address{Agent: "carol", Team: "main"}
	out, err := bob.Deliver(ctx, wire.Message{From: alice, Body: "hi"})
	is("deliver", err, nil)
	_, err = bob.Deliver(ctx, wire.Message{ID: out.ID, From: carol, Body: "hi"})
	is("another of that id", err, ErrIDTaken)
	again, err := bob.Deliver(ctx, wire.Message{ID: out.ID, From: alice, Body: "hi, and more"})
	if is("another text of that id", err, ErrIDTaken); again.IsStored || again.WasDelivered {
		t.Errorf("%+v", again)
	}
	for about, change := range map[string]func(*wire.Message){
		"subject": func(m *wire.Message) { m.Subject = "another" }, "payload": func(m *wire.Message) { m.Payload = []byte(`{"a": 1}`) },
		"priority": func(m *wire.Message) { m.Priority = "urgent" }, "ack": func(m *wire.Message) { m.RequiresAck = true },
	} {
		m := wire.Message{ID: out.ID, From: alice, Body: "hi"}
		if change(&m); about == "payload" {
			_, err = bob.Deliver(ctx, wire.Message{ID: m.ID, From: alice, Body: "hi", SentAt: time.Now().Add(-time.Hour), DueAt: time.Now()})
			is("the same one, later", err, nil)
		}
		again, err := bob.Deliver(ctx, m)
		if is("another "+about+" under that id", err, ErrIDTaken); again.IsStored {
			t.Errorf("%s: %+v", about, again)
		}
	}
	if _, err = bob.Deliver(ctx, wire.Message{From: alice, Body: "a\x00b"}); err == nil {
		t.Error("a NUL was delivered")
	}
	_, err = bob.Get(wire.NewID())
	is("get nothing", err, ErrNotFound)

	// What fails stays unread.
	failed := errors.New("failed")
	is("a failed read", bob.Read(ctx, 0, func(*wire.Message) error { return failed }), failed)
	if it, err := bob.Get(out.ID); err != nil || it.State != wire.Unread {
		t.Error(it.State, err)
	}
}

// A message that cannot be marked is said, and where that is known before, not used; the error of whoever uses one stays his.
func TestReadErrors(t *testing.T) {
	for _, fails := range []string{"rename", "check"} {
		ctx, dir := context.Background(), filepath.Join(t.TempDir(), "main", "bob")
		m, err := Create(ctx, dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Deliver(ctx, wire.Message{From: wire.Address{Agent: "alice", Team: "main"}, Body: "hi"}); err != nil {
			t.Fatal(err)
		}
		own := m.Read(ctx, 0, func(*wire.Message) error { _, err := os.Open(filepath.Join(dir, "no such file")); return err })
		if errors.Is(own, ErrNoMailbox) || !errors.Is(own, fs.ErrNotExist) {
			t.Error(own)
		}
		m.Close()
		if fails == "check" { // a file where the directory for what is read would be
			if err := errors.Join(os.RemoveAll(filepath.Join(dir, "inbox/done")), os.WriteFile(filepath.Join(dir, "inbox/done"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		root, err := durable.OpenFaulty(filepath.Dir(dir), func(op, name string) error {
			if fails == "rename" && op == "rename" && strings.Contains(name, "inbox/new/") {
				return syscall.EDQUOT
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		m = (*Mailbox)(maildir.NewStore(root, "main").Box("bob"))
		t.Cleanup(func() { m.Close() })
		used := 0
		if err := m.Read(ctx, 0, func(*wire.Message) error { used++; return nil }); err == nil || used != map[string]int{"rename": 1}[fails] {
			t.Errorf("%s: used %d times, %v", fails, used, err)
		}
	}
}

// Nothing is made for a mailbox or a team whose name no message could have.
func TestCreateBadName(t *testing.T) {
	for _, name := range []string{"deep/new/Bad Name", "deep/New Team/bob"} {
		dir := t.TempDir()
		_, err := Create(context.Background(), filepath.Join(dir, name))
		if left, _ := os.ReadDir(dir); err == nil || len(left) != 0 {
			t.Errorf("%s: %v; %v is left", name, err, left)
		}
	}
}

// A message that a program cannot handle holds up none behind it, and can be marked by itself.
func TestOneThatFails(t *testing.T) {
	ctx := t.Context()
	bob, err := Create(ctx, filepath.Join(t.TempDir(), "main", "bob"))
	if err != nil {
		t.Fatal(err)
	}
	defer bob.Close()
	var ids []wire.ID
	for _, body := range []string{"bad", "one", "two", "three"} {
		out, err := bob.Deliver(ctx, wire.Message{From: wire.Address{Agent: "alice", Team: "main"}, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, out.ID)
	}
	cannot := errors.New("cannot handle it")
	read := func(limit int) (bodies []string, err error) {
		err = bob.Read(ctx, limit, func(m *wire.Message) error {
			if m.Body == "bad" {
				return cannot
			}
			bodies = append(bodies, m.Body)
			return nil
		})
		return bodies, err
	}
	if got, err := read(2); !slices.Equal(got, []string{"one", "two"}) || !errors.Is(err, cannot) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := read(0); !slices.Equal(got, []string{"three"}) || !errors.Is(err, cannot) {
		t.Errorf("%q, %v", got, err)
	}
	if err := bob.MarkRead(ctx, ids...); err != nil {
		t.Error(err)
	}
	if got, err := read(0); len(got) > 0 || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// What a program is given is read once it has it. It is claimed meanwhile, and what a killed process gave may be a repeat.
func TestHandOver(t *testing.T) {
	ctx, alice := t.Context(), wire.Address{Agent: "alice", Team: "main"}
	dir := filepath.Join(t.TempDir(), "main", "bob")
	bob, err := Create(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer bob.Close()
	for _, m := range []wire.Message{{Body: "one", RequiresAck: true}, {Body: "old", ExpiresAt: time.Now().Add(-time.Hour)}, {Body: "two"}} {
		m.From = alice
		if _, err := bob.Deliver(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	isFull, got := errors.New("full"), []string(nil)
	give := func(m *wire.Message, mayBeRepeat bool) error {
		if mayBeRepeat {
			m.Body += " again"
		}
		got = append(got, m.Body)
		return bob.HandOver(ctx, func(other *wire.Message, _ bool) error { // by another process
			got = append(got, other.Body)
			return isFull
		})
	}
	if err := bob.HandOver(ctx, give); !errors.Is(err, isFull) || !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("%q, %v", got, err)
	}
	box := bob.box()
	claimed, err := claim.Lease(ctx, box, bob.Address(), time.Millisecond, inbox.ReadOptions{}, func(*wire.Item, wire.Lease) (bool, error) { return true, nil })
	if err != nil || claimed.Body != "one" {
		t.Fatal(claimed, err)
	}
	for it := claimed; it.Lease != nil || it.TimesHandedOut == 0; { // until the lease of the process that was killed is over
		if it, err = box.Get(claimed.ID); err != nil {
			t.Fatal(err)
		}
	}
	got = nil
	if err := bob.HandOver(ctx, give); err == nil || !slices.Equal(got, []string{"one again", "two"}) {
		t.Errorf("%q, %v", got, err)
	}
	got, give = nil, func(m *wire.Message, _ bool) error { got = append(got, m.Body); return nil }
	if err := bob.HandOver(ctx, give); err != nil || !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("%q, %v", got, err)
	}
	states := map[string]wire.State{"one": wire.Owed, "old": wire.Unread, "two": wire.Done}
	for it, err := range bob.List(ctx, wire.Unread, wire.Owed, wire.Done) {
		if err != nil || it.State != states[it.Body] {
			t.Error(it.Body, it.State, err)
		}
		delete(states, it.Body)
	}
	if len(states) > 0 {
		t.Errorf("%v are missing", states)
	}
}

// What a member of the team is said to send is among its sent mail.
func TestSender(t *testing.T) {
	ctx, team := t.Context(), filepath.Join(t.TempDir(), "main")
	boxes := map[wire.Name]*Mailbox{}
	for _, name := range []wire.Name{"alice", "bob"} {
		m, err := Create(ctx, filepath.Join(team, string(name)))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		boxes[name] = m
	}
	for _, from := range []string{"alice@main", "carol@main", "alice@other"} {
		address, err := wire.ParseAddress(from, "main")
		if err != nil {
			t.Fatal(err)
		}
		out, err := boxes["bob"].Deliver(ctx, wire.Message{From: address, Body: "hi"})
		if err != nil {
			t.Fatal(err)
		}
		if sent, err := boxes["alice"].box().Sent(out.ID); (err == nil) != (from == "alice@main") {
			t.Error(from, sent, err)
		}
	}
}

// An outsider's first mistakes are errors, and an id counts in whatever form it is written.
func TestOutsider(t *testing.T) {
	ctx, alice := t.Context(), wire.Address{Agent: "alice", Team: "main"}
	if _, err := Create(ctx, ""); err == nil {
		t.Error("a mailbox without a directory was made")
	}
	bob, err := Create(ctx, filepath.Join(t.TempDir(), "main", "bob"))
	if err != nil {
		t.Fatal(err)
	}
	defer bob.Close()
	id := wire.NewID()
	for range 3 {
		out, err := bob.Deliver(ctx, wire.Message{ID: wire.ID(strings.ToUpper(string(id))), From: alice, Body: "x"})
		if err != nil || out.ID != id {
			t.Error(out, err)
		}
	}
	n := 0
	for it, err := range bob.List(ctx) {
		if n++; err != nil || it.ID != id {
			t.Error(it, err)
		}
	}
	if n != 1 {
		t.Errorf("%d messages", n)
	}
	for _, m := range []wire.Message{{From: alice}, {From: alice, ID: "x", Body: "x"}} {
		if out, err := bob.Deliver(ctx, m); err == nil || out.IsStored {
			t.Errorf("%+v: %+v", m, out)
		}
	}
	if err := bob.MarkRead(ctx, wire.NewID()); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	it, err := bob.Get(id)
	if err != nil || it.State != wire.Unread {
		t.Fatal(it, err)
	}
	data, err := json.Marshal(it)
	var again wire.Item
	if err != nil || json.Unmarshal(data, &again) != nil || again.State != wire.Unread || again.ID != id || again.Body != "x" {
		t.Errorf("%s, %v: %+v", data, err, again)
	}
	if _, err := json.Marshal(wire.Item{State: wire.Done}); err != nil {
		t.Error(err)
	}
}

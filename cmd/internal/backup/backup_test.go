package backup

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/teamtest"
	"github.com/agentteammail/atm/wire"
)

// newTeam makes a team main in a new root.
func newTeam(t *testing.T, members ...wire.Name) (*teamdir.Root, *teamdir.Team) {
	t.Helper()
	r := teamtest.NewRoot(t, notices.Tell)
	return r, teamtest.NewTeam(t, r, members...)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// save returns a backup of a root.
func save(t *testing.T, r *teamdir.Root) []byte {
	t.Helper()
	var file bytes.Buffer
	_, missing, err := Write(t.Context(), r, &file, func(int) {})
	must(t, cmp.Or(missing, err))
	return file.Bytes()
}

// open opens a directory.
func open(t *testing.T, path string, fault durable.Fault) *durable.Root {
	t.Helper()
	in, err := durable.OpenFaulty(path, fault)
	must(t, err)
	t.Cleanup(func() { in.Close() })
	return in
}

// restore restores a backup into a new place, and returns its team main.
func restore(t *testing.T, data []byte) (Size, *teamdir.Team) {
	t.Helper()
	above := t.TempDir()
	size, err := Restore(t.Context(), open(t, above, nil), ".atm", "", bytes.NewReader(data), func(int) {})
	must(t, err)
	r, err := teamdir.Open(filepath.Join(above, ".atm"), notices.Tell)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	if r.CheckAccepted(t.Context()) == nil {
		t.Error("what was restored acts at once")
	}
	team, err := r.Team("main")
	must(t, err)
	return size, team
}

func postMail(t *testing.T, team *teamdir.Team, from, to wire.Name, body string, attachments ...wire.Attachment) wire.ID {
	t.Helper()
	m := &wire.Message{ID: wire.NewID(), From: team.Box(from).Address(), To: []wire.Address{team.Box(to).Address()}, Body: body, Attachments: attachments}
	p := &maildir.Post{Message: m, To: []*maildir.Box{team.Box(to)}, Sender: team.Box(from)}
	maildir.Deliver(context.Background(), p)
	must(t, p.Outcomes[0].Err)
	return m.ID
}

type onWrite func([]byte) (int, error)

func (f onWrite) Write(p []byte) (int, error) { return f(p) }

// While mail with attachments arrives and is read, each message of a backup is in one place, with its attachments, and so
// is each that its sender's copies tell of.
func TestBackupWhileTheyWork(t *testing.T) {
	ctx := t.Context()
	r, team := newTeam(t, "alice", "bob")
	last := postMail(t, team, "alice", "bob", "the first")
	var file bytes.Buffer
	sent := 0
	_, missing, err := Write(ctx, r, onWrite(func(p []byte) (int, error) {
		if sent++; sent < 60 {
			a, err := filestore.Add(team.Dir(), "a.txt", strings.NewReader(time.Now().String()))
			must(t, err)
			if sent%2 == 0 {
				must(t, team.Box("bob").MarkRead(ctx, last))
			}
			last = postMail(t, team, "alice", "bob", "one more", a)
		}
		return file.Write(p)
	}), func(int) {})
	must(t, cmp.Or(missing, err))
	size, again := restore(t, file.Bytes())
	if size.Messages < 2 {
		t.Errorf("%d messages arrived meanwhile: this shows nothing", size.Messages)
	}
	there := map[wire.ID]int{}
	_, err = inbox.Walk(ctx, again.Box("bob"), maildir.Everywhere, func(it *wire.Item) bool {
		there[it.ID]++
		for _, a := range it.Attachments {
			f, err := filestore.Open(again.Dir(), a)
			must(t, err)
			f.Close()
		}
		return true
	})
	must(t, err)
	copies, err := again.Box("alice").IDs(maildir.Range{Sent: true})
	must(t, err)
	for _, id := range copies {
		if there[id] != 1 {
			t.Errorf("%s was sent, and is there %d times", id, there[id])
		}
	}
	if len(there) != size.Messages {
		t.Errorf("%d messages of %d", len(there), size.Messages)
	}
}

// A backup has members without mail, and retired ones with read mail or none.
func TestBackupRestore(t *testing.T) {
	ctx := context.Background()
	r, team := newTeam(t, "alice", "bob", "empty", "gone", "bare")
	unread := postMail(t, team, "alice", "bob", "unread")
	read := postMail(t, team, "alice", "gone", "read")
	must(t, team.Box("gone").MarkRead(ctx, read))
	for _, n := range []wire.Name{"gone", "bare"} {
		if _, err := team.Retire(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	size, back := restore(t, save(t, r))
	if size.Messages != 1 {
		t.Error(size)
	}
	for _, n := range []wire.Name{"alice", "bob", "empty"} {
		if !back.Box(n).Exists() {
			t.Errorf("%s did not come back", n)
		}
	}
	for _, n := range []wire.Name{"gone", "bare"} {
		if err := keep.Restore(ctx, back.Store, string(n)); err != nil {
			t.Errorf("%s: %v", n, err)
		} else if !back.Box(n).Exists() {
			t.Errorf("%s is back and no agent", n)
		}
	}
	if it, err := back.Box("bob").Get(unread); err != nil || it.State != wire.Unread {
		t.Error(it, err)
	}
	if it, err := back.Box("gone").Get(read); err != nil || it.State != wire.Done {
		t.Error(it, err)
	}
	old, _ := team.Box("bob").Log().LastSeq()
	if seq, err := back.Box("bob").Log().LastSeq(); err != nil || seq != old {
		t.Errorf("event %d, not %d: %v", seq, old, err)
	}
}

// A leased message is in the backup as unread, one for later still waits, and a shared inbox stays shared. What a runner
// has is not there.
func TestBackupOfHeld(t *testing.T) {
	ctx := context.Background()
	r, team := newTeam(t, "alice", "bob", "jobs")
	must(t, claim.Share(team.Box("jobs")))
	id := postMail(t, team, "alice", "jobs", "held")
	_, err := claim.Lease(ctx, team.Box("jobs"), team.Box("bob").Address(), time.Minute, inbox.ReadOptions{},
		func(*wire.Item, wire.Lease) (bool, error) { return true, nil })
	must(t, err)
	later := &wire.Message{ID: wire.NewID(), From: team.Box("alice").Address(), To: []wire.Address{team.Box("bob").Address()}, Body: "later", NotBefore: time.Now().Add(time.Hour).UTC()}
	p := &maildir.Post{Message: later, To: []*maildir.Box{team.Box("bob")}, Sender: team.Box("alice")}
	maildir.Deliver(ctx, p)
	must(t, p.Outcomes[0].Err)
	must(t, team.Dir().MkdirAll("bob/run"))
	must(t, os.WriteFile(team.Dir().Join("bob/run/run.json"), []byte("{}"), 0o600))
	_, again := restore(t, save(t, r))
	if it, err := again.Box("jobs").Get(id); err != nil || it.State != wire.Unread || it.Lease != nil {
		t.Error(it, err)
	}
	if it, err := again.Box("bob").Get(later.ID); err != nil || it.State != wire.Later {
		t.Error(it, err)
	}
	if shared, err := claim.Shared(again.Box("jobs")); err != nil || !shared {
		t.Error(shared, err)
	}
	if names, err := again.Dir().Names("bob/run"); err != nil || len(names) > 0 {
		t.Error(names, err)
	}
}

// What cannot be read is named, and does not keep the rest from being saved.
func TestBackupLacks(t *testing.T) {
	r, team := newTeam(t, "alice", "bob")
	postMail(t, team, "alice", "bob", "whole")
	must(t, os.Mkdir(filepath.Join(team.Box("bob").Path(), "inbox/new", string(wire.NewID())+".json"), 0o700))
	var file bytes.Buffer
	messages, missing, err := Write(t.Context(), r, &file, func(int) {})
	must(t, err)
	if messages != 1 || missing == nil || !strings.Contains(missing.Error(), "the backup lacks a part of the mailbox of bob: ") {
		t.Error(messages, missing)
	}
	if size, _ := restore(t, file.Bytes()); size.Messages != 1 {
		t.Error(size)
	}
}

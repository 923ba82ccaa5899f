package backup

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

func restore(root *teamdir.Root, data []byte) (Restored, error) {
	return Restore(context.Background(), root, bytes.NewReader(data), func(int) {})
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

// While mail with attachments arrives, no message in a backup lacks its attachments.
func TestAttachmentsOfArrivingMail(t *testing.T) {
	ctx := t.Context()
	r, team := newTeam(t, "alice", "bob")
	postMail(t, team, "alice", "bob", "the first")
	var file bytes.Buffer
	sent := 0
	_, _, err := Write(ctx, r, onWrite(func(p []byte) (int, error) {
		if sent++; sent < 60 {
			a, err := filestore.Add(team.Dir(), "a.txt", strings.NewReader(time.Now().String()))
			must(t, err)
			postMail(t, team, "alice", "bob", "one more", a)
		}
		return file.Write(p)
	}), func(int) {})
	must(t, err)
	other, again := newTeam(t)
	total, err := restore(other, file.Bytes())
	must(t, err)
	if total.Messages < 2 {
		t.Errorf("%d messages arrived meanwhile: this shows nothing", total.Messages)
	}
	_, err = inbox.Walk(ctx, again.Box("bob"), maildir.Range{Unread: true}, func(it *maildir.Item) bool {
		for _, a := range it.Attachments {
			f, err := filestore.Open(again.Dir(), a)
			must(t, err)
			f.Close()
		}
		return true
	})
	must(t, err)
}

// A restore brings back members without mail and retired ones with read mail or none; a second changes nothing.
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
	must(t, os.WriteFile(filepath.Join(team.Box("bob").Path(), "inbox", "note.json"), []byte(`{"body":"dropped"}`), 0o600))
	must(t, team.Dir().MkdirAll(teamdir.ReceivedDir))
	for _, name := range []string{"2026-11-26.taken", string(unread) + ".bob"} {
		must(t, os.WriteFile(team.Dir().Join(teamdir.ReceivedDir+"/"+name), []byte(name), 0o600))
	}
	var file bytes.Buffer
	total, _, err := Write(ctx, r, &file, func(int) {})
	if err != nil || total.Messages != 2 { // an unread message and the ingested drop
		t.Fatal(total, err)
	}

	again, back := newTeam(t)
	for round, want := range []int{2, 0} {
		got, err := restore(again, file.Bytes())
		if err != nil || got.Messages != want {
			t.Fatalf("round %d: %+v, %v", round, got, err)
		}
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
	if it, err := back.Box("bob").Get(unread); err != nil || it.State != maildir.Unread {
		t.Error(it, err)
	}
	if it, err := back.Box("gone").Get(read); err != nil || it.State != maildir.Done {
		t.Error(it, err)
	}
	if names, err := back.Dir().Names(teamdir.ReceivedDir); err != nil || len(names) != 1 || names[0] != "2026-11-26.taken" {
		t.Error(names, err)
	}
	old, _ := team.Box("bob").Log().LastSeq()
	if seq, err := back.Box("bob").Log().LastSeq(); err != nil || seq != old {
		t.Errorf("event %d, not %d: %v", seq, old, err)
	}
}

// A leased message is in the backup as unread, and a shared inbox stays shared.
func TestBackupOfTaken(t *testing.T) {
	ctx := context.Background()
	r, team := newTeam(t, "alice", "bob", "jobs")
	must(t, claim.Share(team.Box("jobs")))
	id := postMail(t, team, "alice", "jobs", "held")
	_, err := claim.Lease(ctx, team.Box("jobs"), team.Box("bob").Address(), time.Minute, inbox.ReadOptions{},
		func(*maildir.Item, maildir.Lease) (bool, error) { return true, nil })
	must(t, err)
	var b bytes.Buffer
	if _, _, err := Write(ctx, r, &b, func(int) {}); err != nil {
		t.Fatal(err)
	}
	other, again := newTeam(t)
	for range 2 {
		if _, err := restore(other, b.Bytes()); err != nil {
			t.Fatal(err)
		}
		if it, err := again.Box("jobs").Get(id); err != nil || it.State != maildir.Unread {
			t.Fatal(it, err)
		}
		if shared, err := claim.Shared(again.Box("jobs")); err != nil || !shared {
			t.Fatal(shared, err)
		}
	}
}

package teams

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

func newRoot(t *testing.T) *Root {
	t.Helper()
	path := filepath.Join(t.TempDir(), "root")
	if _, err := Make(path); err != nil {
		t.Fatal(err)
	}
	r, err := Open(Found{Path: path, Source: FromFlag, Accepted: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func newTeam(t *testing.T, r *Root, members ...wire.Name) *Team {
	t.Helper()
	if _, err := r.CreateTeam("main"); err != nil {
		t.Fatal(err)
	}
	team, err := r.Team("main")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		if err := team.Create(context.Background(), m); err != nil {
			t.Fatal(err)
		}
	}
	return team
}

func post(t *testing.T, team *Team, from, to wire.Name, body string) wire.ID {
	t.Helper()
	m := &wire.Message{ID: wire.NewID(), From: wire.Address{Agent: from, Team: team.Name}, To: []wire.Address{{Agent: to, Team: team.Name}}, Body: body}
	p := &mailbox.Post{Message: m, To: []*mailbox.Box{team.Box(to)}, Sender: team.Box(from)}
	mailbox.Deliver(context.Background(), p)
	if err := p.Outcomes[0].Err; err != nil {
		t.Fatal(err)
	}
	return m.ID
}

// TestBackupRestore brings back members without mail, retired ones with only
// read mail, and ones that were retired empty; a second restore changes
// nothing.
func TestBackupRestore(t *testing.T) {
	ctx := context.Background()
	r := newRoot(t)
	team := newTeam(t, r, "alice", "bob", "empty", "gone", "bare")
	unread := post(t, team, "alice", "bob", "unread")
	read := post(t, team, "alice", "gone", "read")
	if err := team.Box("gone").MarkRead(ctx, read); err != nil {
		t.Fatal(err)
	}
	for _, n := range []wire.Name{"gone", "bare"} {
		if _, err := team.Retire(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(team.Box("bob").Path(), "inbox", "note.txt"), []byte("dropped"), 0o600); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	total, err := r.Backup(ctx, &file)
	if err != nil || total.Messages != 2 { // unread, and the drop that was taken in
		t.Fatal(total, err)
	}

	again := newRoot(t)
	for round, want := range []int{2, 0} {
		got, err := again.Restore(ctx, bytes.NewReader(file.Bytes()))
		if err != nil || got.Messages != want {
			t.Fatalf("round %d: %+v, %v", round, got, err)
		}
	}
	back, err := again.Team("main")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []wire.Name{"alice", "bob", "empty"} {
		if !back.Box(n).Exists() {
			t.Errorf("%s did not come back", n)
		}
	}
	for _, n := range []wire.Name{"gone", "bare"} {
		if err := back.Store.Restore(ctx, n); err != nil {
			t.Errorf("%s: %v", n, err)
		} else if !back.Box(n).Exists() {
			t.Errorf("%s is back and no agent", n)
		}
	}
	if it, err := back.Box("bob").Get(unread); err != nil || it.State != mailbox.Unread {
		t.Error(it, err)
	}
	if it, err := back.Box("gone").Get(read); err != nil || it.State != mailbox.Done {
		t.Error(it, err)
	}
	old, _ := team.Box("bob").Log().LastSeq()
	if seq, err := back.Box("bob").Log().LastSeq(); err != nil || seq != old {
		t.Errorf("event %d, not %d: %v", seq, old, err)
	}
}

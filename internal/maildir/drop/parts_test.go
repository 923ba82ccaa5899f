package drop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/wire"
)

// newBob makes bob's mailbox, into which files were dropped a while ago.
func newBob(t *testing.T, files map[string][]byte, fault durable.Fault) *maildir.Box {
	t.Helper()
	root, err := durable.OpenFaulty(t.TempDir(), fault)
	if err == nil {
		err = root.MkdirAll(".locks")
	}
	if err != nil {
		t.Fatal(err)
	}
	store := maildir.NewStore(root, "main")
	t.Cleanup(func() { store.Close() })
	if err := store.Create(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	bob := store.Box("bob")
	for name, content := range files {
		writeOld(t, filepath.Join(bob.Path(), "inbox", name), content)
	}
	return bob
}

// writeOld writes a file that has not changed for a minute.
func writeOld(t *testing.T, path string, content []byte) {
	t.Helper()
	old := time.Now().Add(-time.Minute)
	if err := errors.Join(os.WriteFile(path, content, 0o600), os.Chtimes(path, old, old)); err != nil {
		t.Fatal(err)
	}
}

func waiting(t *testing.T, ctx context.Context, bob *maildir.Box, want int) {
	t.Helper()
	in, err := Ingest(ctx, bob, 0)
	found, _ := List(bob)
	if err != nil || len(found.Drops) != want || in.Again.IsZero() != (want == 0) {
		t.Errorf("%d wait, not %d, until %v: %v", len(found.Drops), want, in.Again, err)
	}
}

// Ingest stops after a while, and the next call continues.
func TestDropInParts(t *testing.T) {
	old := lookTime
	lookTime = 0
	t.Cleanup(func() { lookTime = old })
	files := map[string][]byte{}
	for i := range 3 {
		files[fmt.Sprint(i)] = []byte("text")
	}
	bob := newBob(t, files, nil)
	for want := 2; want >= 0; want-- {
		waiting(t, t.Context(), bob, want)
	}
}

// A call whose context ends while it copies leaves a large file for the next call.
func TestDropInterrupted(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	bob := newBob(t, map[string][]byte{"big": make([]byte, 5<<20)}, func(op, name string) error {
		if op == "write" && strings.HasPrefix(name, filestore.Dir) {
			end()
		}
		return nil
	})
	waiting(t, ended, bob, 1)
	waiting(t, t.Context(), bob, 0)
	ids, err := bob.UnreadIDs()
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	if it, err := bob.Get(ids[0]); err != nil || it.Attachments[0].Size != 5<<20 {
		t.Error(it, err)
	}
}

// A file that has changed between its message and the kill of the process that took it in is set aside, and not tried for
// ever.
func TestDropChanged(t *testing.T) {
	t.Parallel()
	id := wire.NewID()
	begun := "tmp/" + string(id) + ".note.drop"
	bob := newBob(t, map[string][]byte{begun: []byte("first")}, nil)
	waiting(t, t.Context(), bob, 0)
	writeOld(t, filepath.Join(bob.Path(), "inbox", begun), []byte("first and second"))
	waiting(t, t.Context(), bob, 0)
	it, err := bob.Get(id)
	bad, _ := filepath.Glob(filepath.Join(bob.Path(), "inbox/bad/*note"))
	if err != nil || it.Body != "first" || len(bad) != 1 {
		t.Errorf("%+v, %v; set aside: %q", it, err, bad)
	}
}

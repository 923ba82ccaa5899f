package drop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// newBob makes bob's mailbox, into which files were dropped a while ago, and skips the test where there are no leases: there
// files wait.
func newBob(t *testing.T, files map[string][]byte) *maildir.Box {
	t.Helper()
	root, err := durable.Open(t.TempDir())
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
	bob, written := store.Box("bob"), time.Now().Add(-time.Minute)
	for name, content := range files {
		path := filepath.Join(bob.Path(), "inbox", name)
		if err := errors.Join(os.WriteFile(path, content, 0o600), os.Chtimes(path, written, written)); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		_, certain := durable.BeingWritten(f)
		f.Close()
		if !certain {
			t.Skip("no leases here")
		}
	}
	return bob
}

// small are files that are messages.
func small(n int) map[string][]byte {
	files := map[string][]byte{}
	for i := range n {
		files[fmt.Sprint(i)] = []byte("text")
	}
	return files
}

func waiting(t *testing.T, what string, ingest func(context.Context, *maildir.Box) (Ingested, error), bob *maildir.Box, want int) {
	t.Helper()
	if in, err := ingest(t.Context(), bob); err != nil || in.Waiting != want {
		t.Errorf("%s: %d wait, not %d: %v", what, in.Waiting, want, err)
	}
}

// Ingest stops after a while, and the next call continues.
func TestDropInParts(t *testing.T) {
	old := ingestTime
	ingestTime = 0
	t.Cleanup(func() { ingestTime = old })
	bob := newBob(t, small(3))
	for want := 2; want >= 0; want-- {
		waiting(t, "at all", Ingest, bob, want)
	}
}

// Who hands mail over stops after a while if there is some; who only looks stops then in any case.
func TestDropBriefly(t *testing.T) {
	old := brieflyTime
	brieflyTime = 0
	t.Cleanup(func() { brieflyTime = old })
	bob := newBob(t, small(6))
	waiting(t, "for a look", IngestBriefly, bob, 5)
	waiting(t, "with mail", IngestUnlessMail, bob, 4)
	waiting(t, "at all", Ingest, bob, 0)
}

// endsAfter is a context that ends at the n-th look at it.
type endsAfter struct {
	context.Context
	n int
}

func (c *endsAfter) Err() error {
	if c.n--; c.n < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// A call whose context ends in the middle of a large file leaves it for the next call.
func TestDropInterrupted(t *testing.T) {
	t.Parallel()
	content := make([]byte, 5<<20)
	rand.NewChaCha8([32]byte{}).Read(content)
	bob := newBob(t, map[string][]byte{"big": content})
	f, err := os.Open(filepath.Join(bob.Path(), "inbox/big"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	ended := &endsAfter{Context: t.Context(), n: 3}
	if _, err := attachDropped(ended, bob.Store().Dir(), "big", &openDrop{File: f, info: info, certain: true}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	f.Close()
	waiting(t, "afterwards", Ingest, bob, 0)
	var sizes []int64
	_, err = bob.Walk(maildir.Range{Unread: true}, func(it *maildir.Item) bool {
		sizes = append(sizes, it.Attachments[0].Size)
		return true
	})
	if err != nil || len(sizes) != 1 || sizes[0] != int64(len(content)) {
		t.Error(sizes, err)
	}
}

// A file that has changed between its message and the kill of the process that took it in is set aside, and not tried for
// ever.
func TestDropChanged(t *testing.T) {
	t.Parallel()
	id := wire.NewID()
	bob := newBob(t, map[string][]byte{"tmp/" + string(id) + ".note.drop": []byte("first")})
	waiting(t, "the first text", Ingest, bob, 0)
	path := filepath.Join(bob.Path(), "inbox/tmp", string(id)+".note.drop")
	written := time.Now().Add(-time.Minute)
	if err := errors.Join(os.WriteFile(path, []byte("first and second"), 0o600), os.Chtimes(path, written, written)); err != nil {
		t.Fatal(err)
	}
	waiting(t, "the changed one", Ingest, bob, 0)
	it, err := bob.Get(id)
	bad, _ := filepath.Glob(filepath.Join(bob.Path(), "inbox/bad/*note"))
	if err != nil || it.Body != "first" || len(bad) != 1 {
		t.Errorf("%+v, %v; set aside: %q", it, err, bad)
	}
}

//go:build unix

package maildir_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/wire"
)

// noise returns bytes that are not text and that no other call returns.
func noise(n int) string {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte(bytes.Repeat([]byte{byte(rand.Int())}, 32)))
	r.Read(b)
	return string(b)
}

// attachments lists the files in .files, also temporary ones.
func attachments(t tb, b *maildir.Box) []string {
	return filesIn(t, b.Store().Dir().Join(filestore.Dir))
}

// A file that is too large is set aside at once, whatever it is, without being read. Other files are ingested.
func TestDropTooLarge(t *testing.T) {
	t.Parallel()
	bob := faultyStore(t, func(op, name string) error {
		if op == "link" || op == "write" && strings.HasPrefix(name, filestore.Dir) {
			t.Errorf("%s %s", op, name)
		}
		return nil
	}, "bob").Box("bob")
	names := []string{"big", "big.json", "\xff" + strings.Repeat("n", 254)}
	for _, name := range names {
		dropFile(t, bob, "inbox", name, "x")
		must(t, os.Truncate(filepath.Join(bob.Path(), "inbox", name), drop.MaxSize+1)) // a hole counts
	}
	dropFile(t, bob, "inbox", "huge", "x")
	must(t, os.Truncate(filepath.Join(bob.Path(), "inbox", "huge"), 1<<40))
	must(t, os.WriteFile(begunFile(bob, wire.NewID(), "begun"), nil, 0o600))
	for _, f := range filesIn(t, filepath.Join(bob.Path(), "inbox/tmp")) {
		must(t, os.Truncate(filepath.Join(bob.Path(), "inbox/tmp", f), drop.MaxSize+1))
	}
	dropFile(t, bob, "inbox", "note", "a good one")
	settleDrops(t, bob)
	bad, err := drop.BadFiles(bob)
	must(t, err)
	if len(bad) != len(names)+2 {
		t.Fatal(bad)
	}
	for _, f := range bad {
		if f.Size <= drop.MaxSize || !strings.Contains(f.Reason, "atm send bob --attach FILE") {
			t.Errorf("%d bytes: %s", f.Size, f.Reason)
		}
	}
	if got := read(t, bob); len(got) != 1 || len(attachments(t, bob)) > 0 {
		t.Errorf("%d messages, files %q", len(got), attachments(t, bob))
	}
}

// hasAttachment fails the test unless the mailbox has exactly one message, with this content attached.
func hasAttachment(t testing.TB, b *maildir.Box, content string) {
	t.Helper()
	c := takeCensus(t, b)
	if len(c.texts) != 1 || len(c.tmp)+len(c.inbox) > 0 {
		t.Fatal(c.places, c.tmp, c.inbox)
	}
	for _, m := range c.texts {
		if !says(t, b.Store(), m, []byte(content), nil) {
			t.Fatalf("it has %v", m.Attachments)
		}
	}
	if files := attachments(t, b); len(files) != 1 {
		t.Errorf("files %q", files)
	}
}

// A large file is copied: what is done to the original later, under whatever name, does not change the message.
func TestDropIsCopied(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	content, other := noise(5<<20), bob.Store().Dir().Join(".other")
	dropFile(t, bob, "inbox", "big", content)
	must(t, os.Link(filepath.Join(bob.Path(), "inbox/big"), other))
	settleDrops(t, bob)
	must(t, os.WriteFile(other, []byte("changed"), 0))
	hasAttachment(t, bob, content)
}

// A failed sync is not repeated with the same file: the next call copies the original again.
func TestDropAfterAFailedSync(t *testing.T) {
	t.Parallel()
	var synced []string
	failing := true
	bob := faultyStore(t, func(op, name string) error {
		if op == "fsync" && strings.Contains(name, filestore.Dir) {
			if synced = append(synced, filepath.Base(name)); failing {
				return syscall.EIO
			}
		}
		return nil
	}, "bob").Box("bob")
	content := noise(5 << 20)
	dropFile(t, bob, "inbox", "big", content)
	if in := takeIn(t, bob); in.Again.IsZero() {
		t.Fatal(in)
	}
	failing = false
	settleDrops(t, bob)
	hasAttachment(t, bob, content)
	if len(synced) != 2 {
		t.Errorf("synced %q", synced)
	}
}

// Content of a known hash takes the place of what a killed process has left; other content leaves nothing.
func TestAttachKnown(t *testing.T) {
	t.Parallel()
	bob := newBob(t)
	s := bob.Store()
	a, err := filestore.Add(s.Dir(), "x", strings.NewReader("content"))
	must(t, err)
	stored := s.Dir().Join(filestore.Path(a))
	must(t, os.Remove(stored))
	write(t, s.Dir().Join(filestore.Dir+"/."+a.SHA256+".tmp"), "a part of an earlier try")
	if err := filestore.AddKnown(s.Dir(), a, strings.NewReader("other")); !errors.Is(err, filestore.ErrOtherContent) || len(attachments(t, bob)) > 0 {
		t.Errorf("other content: %v, files %q", err, attachments(t, bob))
	}
	write(t, s.Dir().Join(filestore.Dir+"/."+a.SHA256+".tmp"), "a part of an earlier try")
	must(t, filestore.AddKnown(s.Dir(), a, strings.NewReader("content")))
	if got, err := os.ReadFile(stored); err != nil || string(got) != "content" || len(attachments(t, bob)) != 1 {
		t.Errorf("%q, %v, files %q", got, err, attachments(t, bob))
	}
}

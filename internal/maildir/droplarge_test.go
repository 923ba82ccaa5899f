//go:build unix

package maildir_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

// noise returns bytes that are not text and that no other call returns.
func noise(n int) string {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte(bytes.Repeat([]byte{byte(rand.Int())}, 32)))
	r.Read(b)
	return string(b)
}

// blocks returns how many bytes of disk the files below a directory take, a file with two names once.
func blocks(t tb, dir string) (n int64) {
	t.Helper()
	seen := map[uint64]bool{}
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, _ error) error {
		info, err := os.Lstat(path)
		if err != nil {
			return nil
		}
		if is := info.Sys().(*syscall.Stat_t); !seen[is.Ino] {
			seen[is.Ino] = true
			n += is.Blocks * 512
		}
		return nil
	})
	return n
}

// attachments lists the files in .files, also temporary ones.
func attachments(t tb, b *maildir.Box) []string {
	return filesIn(t, b.Store().Dir().Join(filestore.Dir))
}

// A file that is too large is set aside at once, whatever it is, without being read. Other files are ingested.
func TestDropTooLarge(t *testing.T) {
	t.Parallel()
	bob := openStore(t, scratch(t), func(op, name string) error {
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

// A large file becomes an attachment without being copied: it is the attachment. At no moment it takes its size twice.
func TestDropIsNotCopied(t *testing.T) {
	t.Parallel()
	const size = 6 << 20
	path := scratch(t)
	most := int64(0)
	bob := openStore(t, path, func(op, name string) error {
		most = max(most, blocks(t, path))
		return nil
	}, "bob").Box("bob")
	needLeases(t, bob)
	content := noise(size)
	dropFile(t, bob, "inbox", "big", content)
	dropped, err := os.Stat(filepath.Join(bob.Path(), "inbox", "big"))
	must(t, err)
	must(t, os.Chmod(filepath.Join(bob.Path(), "inbox", "big"), 0o444))
	settleDrops(t, bob)
	files := attachments(t, bob)
	if len(files) != 1 {
		t.Fatal(files)
	}
	stored, err := os.Stat(bob.Store().Dir().Join(filestore.Dir + "/" + files[0]))
	must(t, err)
	if !os.SameFile(dropped, stored) || stored.Mode() != 0o600 || stored.Sys().(*syscall.Stat_t).Nlink != 1 {
		t.Errorf("it is not the attachment, or not as one should be: %v", stored.Mode())
	}
	if most > size+1<<20 {
		t.Errorf("%d bytes of disk for %d", most, size)
	}
	hasAttachment(t, bob, content)
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

// A file with another name, which may be changed or relied on there, is copied, and keeps its rights. So is one where
// the file system has no second names.
func TestDropIsCopied(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{"other name": nil, "no links": syscall.EPERM, "other device": syscall.EXDEV, "unsupported": syscall.EOPNOTSUPP} {
		t.Run(name, func(t *testing.T) {
			bob := openStore(t, scratch(t), func(op, _ string) error {
				if op == "link" {
					return fault
				}
				return nil
			}, "bob").Box("bob")
			content, other := noise(5<<20), bob.Store().Dir().Join(".other")
			dropFile(t, bob, "inbox", "big", content)
			if fault == nil {
				must(t, os.Link(filepath.Join(bob.Path(), "inbox/big"), other))
				must(t, os.Chmod(other, 0o644))
			}
			settleDrops(t, bob)
			if fault == nil {
				info, err := os.Stat(other)
				must(t, err)
				if info.Mode() != 0o644 {
					t.Errorf("the other name has the mode %v", info.Mode())
				}
				must(t, os.WriteFile(other, []byte("changed"), 0))
			}
			hasAttachment(t, bob, content)
		})
	}
}

// A failed sync is not repeated with the same file: the next call copies it.
func TestDropAfterAFailedSync(t *testing.T) {
	t.Parallel()
	var synced []string
	failing := true
	bob := openStore(t, scratch(t), func(op, name string) error {
		if op == "fsync" && (strings.HasSuffix(name, ".drop") || strings.Contains(name, filestore.Dir)) {
			if synced = append(synced, filepath.Base(name)); failing {
				return syscall.EIO
			}
		}
		return nil
	}, "bob").Box("bob")
	needLeases(t, bob)
	content := noise(5 << 20)
	dropFile(t, bob, "inbox", "big", content)
	if in := takeIn(t, bob); in.Waiting != 1 {
		t.Fatal(in)
	}
	failing = false
	settleDrops(t, bob)
	hasAttachment(t, bob, content)
	if len(synced) != 2 || synced[0] == synced[1] {
		t.Errorf("synced %q", synced)
	}
}

// Mail that is there comes first: whoever hands it over reads a large file only if there is no other mail, and whoever
// only looks does not read it.
func TestGoodMailFirst(t *testing.T) {
	t.Parallel()
	handOver := func(b *maildir.Box) (n int, err error) {
		h, err := claim.HandOver(ctx, b, holder.New(holder.Session, "s", string(wire.NewID()), time.Now()), false, inbox.ReadOptions{})
		if err == nil {
			_, err = h.Sent(ctx)
		}
		return len(h.Items), err
	}
	for name, c := range map[string]struct {
		call func(*maildir.Box) (int, error)
		want []int // messages that the calls give
	}{
		"hook": {handOver, []int{1, 1, 0}},
		"read": {func(b *maildir.Box) (int, error) {
			got, err := inbox.Read(ctx, b, inbox.ReadOptions{}, func(got inbox.Batch) (int, error) { return len(got.Items), nil })
			return len(got.Items), err
		}, []int{1, 1, 0}},
		"peek": {func(b *maildir.Box) (int, error) {
			got, err := inbox.Peek(ctx, b, inbox.ReadOptions{})
			return len(got.Items), err
		}, []int{1, 1}},
		"lease": {func(b *maildir.Box) (int, error) {
			it, err := claim.Lease(ctx, b, addr("bob"), time.Minute, inbox.ReadOptions{}, func(*maildir.Item, maildir.Lease) (bool, error) { return true, nil })
			return count(it != nil), err
		}, []int{1, 1, 0}},
		"count": {func(b *maildir.Box) (int, error) {
			c, err := inbox.Count(ctx, b)
			return c.Unread, err
		}, []int{1, 1}},
		"walk": {func(b *maildir.Box) (n int, err error) {
			_, err = inbox.Walk(ctx, b, maildir.Range{Unread: true}, func(*maildir.Item) bool { n++; return true })
			return n, err
		}, []int{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bob := newBob(t)
			needLeases(t, bob)
			dropFile(t, bob, "inbox", "big", noise(5<<20))
			deliver(t, bob, message("a good one"))
			var got []int
			for range c.want {
				n, err := c.call(bob)
				must(t, err)
				got = append(got, n)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v messages, not %v", got, c.want)
			}
		})
	}
}

// A process that begins to open a file for writing while the file is renamed is waited for: what it writes is ingested.
func TestDropOpenedWhileItIsRenamed(t *testing.T) {
	t.Parallel()
	var bob *maildir.Box
	opens := 0
	bob = openStore(t, scratch(t), func(op, name string) error {
		if op == "rename" && strings.HasSuffix(name, "/note") {
			_, err := os.OpenFile(bob.Store().Dir().Join(name), os.O_WRONLY|syscall.O_NONBLOCK, 0)
			opens += count(errors.Is(err, syscall.EAGAIN))
		}
		return nil
	}, "bob").Box("bob")
	needLeases(t, bob)
	dropFile(t, bob, "inbox", "note", "hello")
	in := takeIn(t, bob)
	if c := takeCensus(t, bob); opens != 1 || in.Waiting != 1 || len(c.places) != 0 || len(c.tmp) != 1 {
		t.Fatalf("%d opens, %+v, %v, tmp %q", opens, in, c.places, c.tmp)
	}
	must(t, os.WriteFile(filepath.Join(bob.Path(), "inbox/tmp", takeCensus(t, bob).tmp[0]), []byte("hello and more"), 0))
	settleDrops(t, bob)
	if c := takeCensus(t, bob); len(c.texts) != 1 || c.texts[c.ids()[0]].Body != "hello and more" {
		t.Errorf("%v, bad %q", c.texts, c.bad)
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

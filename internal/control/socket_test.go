//go:build linux || darwin || freebsd

package control

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSocketIsPrivate(t *testing.T) {
	dir := t.TempDir()
	old := unix.Umask(0)
	defer unix.Umask(old)
	startIn(t, dir, &fake{})
	info, err := os.Lstat(filepath.Join(dir, SocketName))
	if err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Error(info, err)
	}
}

// A dead runner's socket is replaced; one that lives is not, nor is what is no
// socket.
func TestStale(t *testing.T) {
	dir := t.TempDir()
	dead(t, dir)
	startIn(t, dir, &fake{})
	if _, err := Listen(dir); !errors.Is(err, ErrInUse) {
		t.Error("beside one that lives:", err)
	}
	if _, err := connectTo(t, dir).Status(t.Context()); err != nil {
		t.Error("the one that lives:", err)
	}
	other := t.TempDir()
	path := filepath.Join(other, SocketName)
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(other); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Error(err)
	}
	if data, _ := os.ReadFile(path); string(data) != "precious" {
		t.Error("the file is gone")
	}
}

// Close leaves a socket alone that somebody else made in the meantime.
func TestCloseRemovesItsOwn(t *testing.T) {
	dir := t.TempDir()
	s, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, SocketName)); err != nil {
		t.Fatal(err)
	}
	startIn(t, dir, &fake{})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := connectTo(t, dir).Status(t.Context()); err != nil {
		t.Error(err)
	}
}

// A path may be longer than a socket's address.
func TestLongPath(t *testing.T) {
	dir := t.TempDir()
	for len(dir) < 300 {
		dir = filepath.Join(dir, strings.Repeat("long", 12))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	startIn(t, dir, &fake{})
	if _, err := connectTo(t, dir).Status(t.Context()); err != nil {
		t.Error(err)
	}
	// The way that works without /proc.
	t.Setenv("TMPDIR", "/tmp")
	name, release, err := throughLink(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode()&fs.ModeSocket == 0 || len(name) > 100 {
		t.Error(name, info, err)
	}
	release()
	if _, err := os.Lstat(filepath.Dir(filepath.Dir(name))); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the link is still there:", err)
	}
	t.Setenv("TMPDIR", dir)
	if _, _, err := throughLink(dir); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Error(err)
	}
}

// A directory that others may write is no place for it.
func TestOpenDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(dir); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	if _, err := Dial(t.Context(), dir); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	if _, err := Listen(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Two hundred runners, one after the other, leave no descriptor behind.
func TestNothingLeaks(t *testing.T) {
	dir := t.TempDir()
	run := func() {
		s, err := Listen(dir)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, &fake{}) }()
		c, err := Dial(ctx, dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Status(ctx); err != nil {
			t.Fatal(err)
		}
		c.Close()
		cancel()
		if err := <-served; err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	run()
	before := descriptors(t)
	for range 200 {
		run()
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors became %d", before, after)
	}
	noneLeft(t)
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

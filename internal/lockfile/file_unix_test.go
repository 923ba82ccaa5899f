//go:build unix

package lockfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentteammail/atm/internal/durable"
)

func TestOnlyARegularFileIsLocked(t *testing.T) {
	for what, put := range map[string]func(path string) error{
		"link to a file": func(p string) error {
			if err := os.WriteFile(p+".x", nil, 0o600); err != nil {
				return err
			}
			return os.Symlink(filepath.Base(p)+".x", p)
		},
		"dangling link": func(p string) error { return os.Symlink("nowhere", p) },
		"FIFO":          func(p string) error { return unix.Mkfifo(p, 0o600) },
		"directory":     func(p string) error { return os.Mkdir(p, 0o700) },
	} {
		d, path := team(t)
		if err := put(filepath.Join(path, ".locks", "bob.reader")); err != nil {
			t.Fatal(err)
		}
		_, err := d.Try("bob.reader", Exclusive, nil)
		if err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s, Try: %v", what, err)
		}
		_, err = d.Lock(context.Background(), "bob.reader", Shared, time.Second, nil)
		if err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s, Lock: %v", what, err)
		}
		if _, err := d.Held("bob.reader"); err == nil {
			t.Errorf("%s: Held says nothing", what)
		}
	}
}

func TestLocksDirectoryIsNoLink(t *testing.T) {
	path := t.TempDir()
	locks := filepath.Join(path, ".locks")
	os.Mkdir(filepath.Join(path, "elsewhere"), 0o700)
	d := open(t, path)
	for what, put := range map[string]func() error{
		"none": func() error { return nil },
		"link": func() error { return os.Symlink("elsewhere", locks) },
		"file": func() error { return os.WriteFile(locks, nil, 0o600) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		_, err := d.Try("bob.reader", Exclusive, nil)
		if what == "none" != errors.Is(err, fs.ErrNotExist) || what != "none" != errors.Is(err, durable.ErrNotDirectory) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := d.Held("bob.reader"); err == nil {
			t.Errorf("%s: Held says nothing", what)
		}
		os.Remove(locks)
	}
	if names, _ := os.ReadDir(filepath.Join(path, "elsewhere")); len(names) != 0 {
		t.Errorf("made through a link: %v", names)
	}
}

func TestRightsUnderAnyUmask(t *testing.T) {
	for _, umask := range []int{0, 0o077, 0o777} {
		for _, dir := range []fs.FileMode{0o700, 0o770, 0o750} {
			path := t.TempDir()
			locks := filepath.Join(path, ".locks")
			if err := os.Mkdir(locks, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(locks, dir); err != nil {
				t.Fatal(err)
			}
			d := open(t, path)
			old := unix.Umask(umask)
			l, err := d.Try("bob.reader", Exclusive, nil)
			unix.Umask(old)
			if err != nil {
				t.Fatal(err)
			}
			l.Unlock()
			file := filepath.Join(locks, "bob.reader")
			want := 0o600 | dir&0o060
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
				t.Errorf("umask %03o, directory %v: %v, %v", umask, dir, info.Mode(), err)
			}
			// A maker killed before it gave the rights: the next one does.
			os.Chmod(file, 0o600)
			mustTry(t, d, "bob.reader", Exclusive).Unlock()
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
				t.Errorf("not mended: %v, %v", info.Mode(), err)
			}
		}
	}
}

func TestRootMakesItForTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	path := t.TempDir()
	locks := filepath.Join(path, ".locks")
	if err := os.Mkdir(locks, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(locks, 4711, 4712); err != nil {
		t.Fatal(err)
	}
	mustTry(t, open(t, path), "bob.reader", Exclusive)
	info, err := os.Stat(filepath.Join(locks, "bob.reader"))
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != 4711 || st.Gid != 4712 {
		t.Errorf("owner %d:%d", st.Uid, st.Gid)
	}
}

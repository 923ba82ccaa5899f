//go:build unix

package lockfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
		_, try := d.Lock(context.Background(), "bob.reader", Exclusive, 0, nil)
		_, lock := d.Lock(context.Background(), "bob.reader", Shared, time.Second, nil)
		_, held := d.Held("bob.reader")
		for _, err := range []error{try, lock, held} {
			if err == nil || !strings.Contains(err.Error(), "not a regular file") {
				t.Errorf("%s: %v", what, err)
			}
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
		_, err := d.Lock(context.Background(), "bob.reader", Exclusive, 0, nil)
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

// The maker of a shared lock file may be killed before it shared it: the next one does.
func TestRightsAreMended(t *testing.T) {
	d, path := team(t)
	locks := filepath.Join(path, ".locks")
	os.Chmod(locks, 0o770)
	for range 2 {
		mustTry(t, d, "bob.reader", Exclusive).Unlock()
		if info, err := os.Stat(filepath.Join(locks, "bob.reader")); err != nil || info.Mode().Perm() != 0o660 {
			t.Fatal(info, err)
		}
		os.Chmod(filepath.Join(locks, "bob.reader"), 0o600)
	}
}

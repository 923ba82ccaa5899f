//go:build unix

package lockfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentteammail/atm/internal/durable"
)

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

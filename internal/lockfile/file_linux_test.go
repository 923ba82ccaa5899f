package lockfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadOnlyFileSystem(t *testing.T) {
	path := t.TempDir()
	if err := unix.Mount("atm", path, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip(err)
	}
	defer unix.Unmount(path, unix.MNT_DETACH)
	if err := os.Mkdir(filepath.Join(path, ".locks"), 0o700); err != nil {
		t.Fatal(err)
	}
	mustTry(t, open(t, path), "bob.reader", Exclusive).Unlock()
	if err := unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skip(err)
	}
	d := open(t, path)
	mustTry(t, d, "bob.reader", Exclusive).Unlock() // one that is there works
	if _, err := d.Try("bob.inbox", Exclusive, nil); !errors.Is(err, syscall.EROFS) {
		t.Errorf("got %v", err)
	}
	if held, err := d.Held("bob.inbox"); held || err != nil {
		t.Errorf("Held: %v, %v", held, err)
	}
}

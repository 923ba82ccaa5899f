package setup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/agentteammail/atm/internal/durable"
)

// A backup gets its name where the file system has no second names, and replaces nothing.
func TestPublishWithoutLinks(t *testing.T) {
	path := t.TempDir()
	dir, err := durable.OpenFaulty(path, func(op, name string) error {
		if op == "link" {
			return syscall.EPERM
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for i, want := range []error{nil, fs.ErrExist} {
		if err := os.WriteFile(filepath.Join(path, "temp"), []byte{byte('a' + i)}, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := publish(dir, "temp", "all.tar"); !errors.Is(err, want) {
			t.Errorf("%v, not %v", err, want)
		}
	}
	if got, err := os.ReadFile(filepath.Join(path, "all.tar")); string(got) != "a" {
		t.Errorf("%q, %v", got, err)
	}
}

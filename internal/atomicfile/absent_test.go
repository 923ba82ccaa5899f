package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestAbsent asks of every error what errors.Is says.
func TestAbsent(t *testing.T) {
	_, missing := os.Open(filepath.Join(t.TempDir(), "missing"))
	_, below := os.Lstat(filepath.Join(os.Args[0], "below"))
	for _, err := range []error{
		nil, missing, below, fs.ErrNotExist, fs.ErrExist, syscall.ENOENT, syscall.ENOTDIR, syscall.EACCES, ErrNotDirectory,
		&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, &fs.PathError{Op: "open", Path: "x", Err: ErrNotRegular},
		&os.LinkError{Op: "link", Err: syscall.ENOENT}, fmt.Errorf("no: %w", missing), fmt.Errorf("no: %w", fs.ErrClosed),
		errors.Join(fs.ErrClosed, missing), &fs.PathError{Op: "open", Path: "x", Err: fmt.Errorf("%w", missing)},
	} {
		if got, want := Absent(err), errors.Is(err, fs.ErrNotExist); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

//go:build linux || darwin

package durable

import (
	"errors"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// renameOnly renames an entry in one step that never replaces another; errors.ErrUnsupported if the file system cannot.
func (r *Root) renameOnly(old, new string) error {
	from, err := r.root.OpenFile(path.Dir(old), os.O_RDONLY|dirOnly, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := r.root.OpenFile(path.Dir(new), os.O_RDONLY|dirOnly, 0)
	if err != nil {
		return err
	}
	defer to.Close()
	err = renameNew(int(from.Fd()), path.Base(old), int(to.Fd()), path.Base(new))
	switch err {
	case nil:
		return nil
	case unix.EINVAL, unix.ENOSYS, unix.ENOTSUP:
		return errors.ErrUnsupported
	}
	return &os.LinkError{Op: "rename", Old: old, New: new, Err: err}
}

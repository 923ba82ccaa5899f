package atomicfile

import (
	"golang.org/x/sys/unix"
)

func renameNoReplace(from *Dir, name string, to *Dir, as string) error {
	err := unix.RenameatxNp(from.fd(), name, to.fd(), as, unix.RENAME_EXCL)
	if err == unix.ENOTSUP || err == unix.EINVAL {
		return errUnsupported
	}
	return err
}

func (d *Dir) openUnnamed() (draftFile, error) { return -1, errUnsupported }
func (dr *Draft) unnamed() bool                { return false }
func (dr *Draft) linkUnnamed(*Dir, string) error {
	return errUnsupported
}
func flushHint(draftFile) {}

package atomicfile

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// openUnnamed makes a file without a name: nothing is left of it after a
// crash, and linking it cannot replace anything.
func (d *Dir) openUnnamed() (*os.File, error) {
	fd, err := unix.Openat(d.fd(), ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	switch err {
	case nil:
		return os.NewFile(uintptr(fd), filepath.Join(d.path, "(unnamed)")), nil
	case unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOENT:
		// ENOENT and EISDIR: a kernel or file system older than O_TMPFILE.
		return nil, errUnsupported
	}
	return nil, err
}

func (dr *Draft) unnamed() bool { return true }

func (dr *Draft) linkUnnamed(to *Dir, as string) error {
	err := unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(dr.f.Fd())), to.fd(), as, unix.AT_SYMLINK_FOLLOW)
	if err == unix.ENOENT {
		if _, e := os.Stat("/proc/self/fd"); e != nil { // no /proc here
			return unix.Linkat(int(dr.f.Fd()), "", to.fd(), as, unix.AT_EMPTY_PATH)
		}
	}
	return err
}

func renameNoReplace(from *Dir, name string, to *Dir, as string) error {
	err := unix.Renameat2(from.fd(), name, to.fd(), as, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL || err == unix.ENOSYS {
		return errUnsupported
	}
	return err
}

func flushHint(f *os.File) {
	unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
}

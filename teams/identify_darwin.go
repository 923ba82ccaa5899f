package teams

import (
	"io/fs"
	"syscall"
)

// identify tells a directory from others at the same path: its inode number, and
// when it was made.
func identify(path string) (ino uint64, born int64, err error) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return 0, 0, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		return 0, 0, &fs.PathError{Op: "lstat", Path: path, Err: syscall.ENOTDIR}
	}
	return st.Ino, max(0, st.Birthtimespec.Nano()), nil
}

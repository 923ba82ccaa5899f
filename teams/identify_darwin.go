package teams

import "syscall"

// identify tells a directory from others at the same path: its inode number, and
// when it was made.
func identify(path string) (ino uint64, born int64, err error) {
	var st syscall.Stat_t
	err = syscall.Lstat(path, &st)
	return st.Ino, max(0, st.Birthtimespec.Nano()), err
}

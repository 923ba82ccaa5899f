package rootdir

import "syscall"

// identify is documented in identify_linux.go.
func identify(path string) (ino uint64, born int64, err error) {
	var st syscall.Stat_t
	err = syscall.Lstat(path, &st)
	return st.Ino, max(0, st.Birthtimespec.Nano()), err
}

package rootdir

import "golang.org/x/sys/unix"

// identify returns a directory's inode number and birth time (0 if the file system does not record it), which tell it
// from a later one at the same path.
func identify(path string) (ino uint64, born int64, err error) {
	var st unix.Statx_t
	err = unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &st)
	if st.Mask&unix.STATX_BTIME != 0 {
		born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return st.Ino, born, err
}

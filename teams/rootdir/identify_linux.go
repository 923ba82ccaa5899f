package rootdir

import "golang.org/x/sys/unix"

// identify tells a directory from others at the same path: its inode number, and
// when it was made (0 where the file system does not keep that).
func identify(path string) (ino uint64, born int64, err error) {
	var st unix.Statx_t
	err = unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &st)
	if st.Mask&unix.STATX_BTIME != 0 {
		born = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return st.Ino, born, err
}

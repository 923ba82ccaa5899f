package teams

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// birth gives when a directory was made, in Unix nanoseconds; 0 where the file
// system keeps no such time, or a sandbox forbids the call.
func birth(path string, _ *syscall.Stat_t) int64 {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
}

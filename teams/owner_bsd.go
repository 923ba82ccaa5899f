//go:build darwin || freebsd || netbsd

package teams

import "syscall"

// birth gives when a directory was made, in Unix nanoseconds; not above 0
// where the file system keeps no such time.
func birth(_ string, st *syscall.Stat_t) int64 { return st.Birthtimespec.Nano() }

//go:build darwin || freebsd

package watcher

import "golang.org/x/sys/unix"

// foreignFS names the kind of the file system at a path if others than this
// kernel may change it, "" if not.
func foreignFS(path string) string {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil || uint64(st.Flags)&unix.MNT_LOCAL != 0 {
		return ""
	}
	return unix.ByteSliceToString(st.Fstypename[:])
}

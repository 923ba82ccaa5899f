package teams

import "golang.org/x/sys/unix"

// isReadOnly reports whether the file system at path is mounted read-only.
func isReadOnly(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Flags&unix.ST_RDONLY != 0
}

// freeBytes is the space that this user may still fill.
func freeBytes(path string) (uint64, bool) {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}

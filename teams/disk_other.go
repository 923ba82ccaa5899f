//go:build !linux

package teams

// isReadOnly reports whether the file system is read-only; not asked here.
func isReadOnly(string) bool { return false }

// freeBytes is the space that this user may still fill; not asked here.
func freeBytes(string) (uint64, bool) { return 0, false }

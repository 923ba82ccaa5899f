//go:build !linux

package teams

// freeBytes is the space that this user may still fill; not asked here.
func freeBytes(string) (uint64, bool) { return 0, false }

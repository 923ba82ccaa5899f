//go:build !linux

package teams

// FileSystem names the kind of file system that a path lies on; this system
// is not asked.
func FileSystem(string) (kind string, remote bool) { return "", false }

func freeBytes(string) (uint64, bool) { return 0, false }

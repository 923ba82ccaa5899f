//go:build !linux

package atomicfile

// unjournaled is about files without a name, which are Linux' alone.
func (d *Dir) unjournaled() bool { return false }

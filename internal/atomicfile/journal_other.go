//go:build !linux

package atomicfile

// journal is about files without a name, which are Linux' alone.
func (d *Dir) journal() journal { return hasJournal }

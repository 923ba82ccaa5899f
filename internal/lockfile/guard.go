//go:build !race

package lockfile

func (l *Lock) noteHeld() {}

func (l *Lock) noteFree() {}

// Waits says that this goroutine is about to wait for more than the file system. Tests with the race detector look whether
// it holds a lock.
func Waits(what string) {}

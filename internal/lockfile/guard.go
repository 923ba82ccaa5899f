//go:build !race

package lockfile

func (l *Lock) noteHeld() {}

func (l *Lock) noteFree() {}

// Waits says that this goroutine is about to wait for more than the file system. Tests with the race detector look whether
// it holds a lock.
func Waits(what string) {}

// Reads says that this goroutine is about to read what grows: a log, a mailbox. Tests with the race detector look whether it
// holds the lock team, for which all members of a team wait.
func Reads(what string) {}

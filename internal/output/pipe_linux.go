package output

import (
	"os"

	"golang.org/x/sys/unix"
)

const fionread = unix.TIOCINQ

// Unread returns how many bytes a pipe holds, at either end; ok is false for other files.
func Unread(f *os.File) (n int, ok bool) { return inPipe(f) }

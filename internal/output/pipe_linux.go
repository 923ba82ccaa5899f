package output

import (
	"os"

	"golang.org/x/sys/unix"
)

const fionread = unix.TIOCINQ

// Unread is how many bytes are in a pipe, at either end; ok is false for anything else.
func Unread(f *os.File) (n int, ok bool) { return inPipe(f) }

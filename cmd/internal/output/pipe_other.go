//go:build !linux && !darwin

package output

import (
	"io"
	"os"
	"time"
)

// These systems tell neither what a pipe holds nor whether it has a reader; the next write fails without one.
func Unread(*os.File) (n int, ok bool)              { return 0, false }
func BytesWaiting(r io.Reader, _ time.Duration) int { return bytesLeft(file(r)) }
func ReaderGone(io.Writer) bool                     { return false }

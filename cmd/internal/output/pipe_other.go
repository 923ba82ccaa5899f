//go:build !linux && !darwin

package output

import (
	"os"
	"time"
)

// These systems tell neither what a pipe holds nor whether it has a reader; the next write fails without one.
func Unread(*os.File) (n int, ok bool)             { return 0, false }
func BytesWaiting(f *os.File, _ time.Duration) int { return bytesLeft(f) }
func ReaderGone(*os.File) bool                     { return false }

//go:build !linux

package output

import (
	"os"
	"time"
)

// Unread is known on Linux only.
func Unread(*os.File) (n int, ok bool) { return 0, false }

// Waiting is known on Linux only.
func Waiting(*os.File, time.Duration) int { return 0 }

// ReaderGone is known on Linux only: elsewhere the next write tells.
func ReaderGone(*os.File) bool { return false }

//go:build !linux && !darwin

package output

import (
	"os"
	"time"
)

// What is in a pipe, and whether somebody reads it, is not known here: the next write tells.
func Unread(*os.File) (n int, ok bool)    { return 0, false }
func Waiting(*os.File, time.Duration) int { return 0 }
func ReaderGone(*os.File) bool            { return false }

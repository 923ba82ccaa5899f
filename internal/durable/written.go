package durable

import (
	"os"
	"time"
)

// BeingWritten reports whether some process has the file open for writing. If the system does not tell (certain is
// false), a file counts as being written until it has not changed for a second. Until f is closed, a process that opens
// it for writing waits.
func BeingWritten(f *os.File) (writing, certain bool) {
	certain, busy := readLease(f)
	if certain || busy {
		return busy, certain
	}
	info, err := f.Stat()
	return err != nil || time.Since(info.ModTime()).Abs() < time.Second, false
}

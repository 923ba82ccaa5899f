package durable

import (
	"os"

	"golang.org/x/sys/unix"
)

// readLease takes a read lease, which the kernel grants only while no process has the file open for writing. It ends
// when f is closed. busy says that a process has. Neither is true where leases are not available.
func readLease(f *os.File) (leased, busy bool) {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	return err == nil, err == unix.EAGAIN
}

// HasReadLease reports whether f still has its lease, and no process waits for its end to open the file for writing.
func HasReadLease(f *os.File) bool {
	kind, err := unix.FcntlInt(f.Fd(), unix.F_GETLEASE, 0)
	return err == nil && kind == unix.F_RDLCK
}

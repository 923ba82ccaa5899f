package mailbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// readLease asks for a read lease, which the kernel grants only while no process has the file open for writing, and
// which ends with f. busy means that one has. Neither: this file system, or this user, gets no leases.
func readLease(f *os.File) (leased, busy bool) {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	return err == nil, err == unix.EAGAIN
}

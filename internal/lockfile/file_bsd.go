//go:build unix && !linux

package lockfile

import (
	"os"
	"syscall"
)

// Opened as flock needs it, no link followed, and no FIFO waited for; os adds
// O_CLOEXEC.
const openFlags = os.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// refusesLinks says that openFlags do.
const refusesLinks = true

func (e *entry) owner() (uid, gid int) {
	if st, ok := e.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid)
	}
	return -1, -1
}

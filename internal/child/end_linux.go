package child

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// siginfo is siginfo_t as waitid fills it in.
type siginfo struct {
	signo, errno, code int32
	_                  [unsafe.Sizeof(uintptr(0)) - 4]byte // the union is aligned as a pointer
	pid                int32
	uid                uint32
	status             int32
	_                  [128]byte
}

func waitid(kind, id int, info *siginfo, options int) error {
	for {
		err := unix.Waitid(kind, id, (*unix.Siginfo)(unsafe.Pointer(info)), options, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// await waits for the program's end and leaves it a zombie, so that its number,
// and with it the session's and the group's, stays its own until release.
func (c *Child) await() Exit {
	var info siginfo
	if err := waitid(unix.P_PID, c.pid, &info, unix.WEXITED|unix.WNOWAIT); err != nil {
		return Exit{Code: -1} // reaped by somebody else: how it ended is not to be had
	}
	const exited = 1 // CLD_EXITED
	if info.code == exited {
		return Exit{Code: int(info.status)}
	}
	return signalled(unix.Signal(info.status))
}

// release gives the number away.
func (c *Child) release() {
	c.holding.Lock()
	defer c.holding.Unlock()
	if !c.released {
		c.released = true
		c.cmd.Wait() // its status was taken by await
	}
}

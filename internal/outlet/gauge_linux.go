package outlet

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

func gaugeOf(fd int, kind uint32) gauge {
	switch kind {
	case unix.S_IFIFO:
		if _, err := unix.IoctlGetInt(fd, unix.TIOCINQ); err == nil {
			return pipeGauge
		}
	case unix.S_IFSOCK:
		domain, err1 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		typ, err2 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
		if err1 == nil && err2 == nil && domain == unix.AF_UNIX && typ == unix.SOCK_STREAM {
			return socketGauge
		}
	}
	return nil
}

// pipeGauge asks a pipe how much is in it: FIONREAD answers at the writing end
// too, and what the last reader left stays there. POLLERR: no reader has it
// open.
func pipeGauge(fd int) (unread int, gone bool, err error) {
	unread, err = unix.IoctlGetInt(fd, unix.TIOCINQ) // FIONREAD
	if err != nil || unread == 0 {
		return unread, false, err
	}
	gone, err = polled(fd, unix.POLLERR)
	return unread, gone, err
}

// socketGauge asks a socket how much memory what was sent still takes: 0 when
// all of it was read, else no measure of it. A reader that closes throws away
// what it did not read, which makes it 0 as well, but is marked as gone before,
// so asking for that comes second.
func socketGauge(fd int) (unread int, gone bool, err error) {
	unread, err = unix.IoctlGetInt(fd, unix.TIOCOUTQ)
	if err != nil {
		return 0, false, err
	}
	gone, err = polled(fd, unix.POLLERR|unix.POLLHUP)
	if unread > 0 || gone {
		unread = math.MaxInt
	}
	return unread, gone, err
}

func polled(fd int, events int16) (bool, error) {
	fds := []unix.PollFd{{Fd: int32(fd)}}
	for {
		_, err := unix.Poll(fds, 0)
		if err != unix.EINTR {
			return fds[0].Revents&events != 0, err
		}
	}
}

// A pause is what to do while the reader reads: some microseconds give the
// processor away and look again, since a reader that waits is back that soon;
// then sleep, longer each time. The first sleep alone would cost more than the
// whole output of a command.
type pause struct {
	start time.Time
	sleep time.Duration
}

const (
	spin       = 60 * time.Microsecond
	firstSleep = 20 * time.Microsecond
	lastSleep  = 2 * time.Millisecond
)

func (p *pause) wait(fd int, most time.Duration) {
	if p.start.IsZero() {
		p.start = time.Now()
	}
	if p.sleep == 0 {
		if time.Since(p.start) < spin {
			unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			return
		}
		p.sleep = firstSleep
	}
	// poll, since it ends when the reader goes.
	ts := unix.NsecToTimespec(int64(min(p.sleep, most)))
	unix.Ppoll([]unix.PollFd{{Fd: int32(fd)}}, &ts, nil)
	p.sleep = min(2*p.sleep, lastSleep)
}

//go:build darwin || freebsd

package child

import (
	"time"

	"golang.org/x/sys/unix"
)

// handle is a process that is known by number and start time, which are
// compared before each signal: there is nothing here to hold it by.
type handle struct{ entry }

// hold takes hold of a process; false: it has ended.
func hold(e entry) (handle, bool) {
	h := handle{e}
	return h, h.same()
}

func (h handle) same() bool {
	now, ok := look(h.pid)
	return ok && now.start == h.start && !now.zombie
}

func (h handle) signal(sig unix.Signal) error {
	if !h.same() {
		return unix.ESRCH
	}
	return unix.Kill(h.pid, sig)
}

func (h handle) close() {}

// awaitEnd waits until all have ended, or for d, and returns those that run. It
// looks every 20 ms, which nothing but an end in progress makes it do.
func awaitEnd(hs []handle, d time.Duration) []handle {
	until := time.Now().Add(d)
	for {
		var left []handle
		for _, h := range hs {
			if h.same() {
				left = append(left, h)
			}
		}
		if len(left) == 0 || !time.Now().Before(until) {
			return left
		}
		hs = left
		time.Sleep(min(20*time.Millisecond, time.Until(until)))
	}
}

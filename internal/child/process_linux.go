package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// census reads the process table. Processes that end meanwhile are left out.
func census() ([]entry, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	names, err := dir.Readdirnames(-1)
	dir.Close()
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	all := make([]entry, 0, len(names))
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if e, ok := look(pid); ok {
			all = append(all, e)
		}
	}
	return all, nil
}

// look reads one process's line.
func look(pid int) (entry, bool) {
	var buf [1024]byte
	text := readInto(buf[:], "/proc/"+strconv.Itoa(pid)+"/stat")
	// The name may hold blanks and parentheses of its own.
	open, shut := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || shut < open {
		return entry{}, false
	}
	f := strings.Fields(string(text[shut+1:]))
	if len(f) < 20 {
		return entry{}, false
	}
	e := entry{pid: pid, name: string(text[open+1 : shut]), zombie: f[0] == "Z" || f[0] == "X"}
	for i, to := range []*int{&e.ppid, &e.pgid, &e.sid} {
		n, err := strconv.Atoi(f[1+i])
		if err != nil {
			return entry{}, false
		}
		*to = n
	}
	start, err := strconv.ParseUint(f[19], 10, 64)
	e.start = start
	return e, err == nil
}

// readInto reads what fits of a file of /proc. os.ReadFile would take three
// times as long, and a census reads hundreds.
func readInto(buf []byte, path string) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil || n < 0 {
		return nil
	}
	return buf[:n]
}

// carries says whether a process's environment holds the assignment. That of
// another user's process, or of one that keeps its memory to itself as ssh-agent
// does, can only be read by root, and so carries nothing.
func carries(pid int, assignment string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && holdsLine(env, assignment)
}

func cmdline(pid int) string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return joinArguments(text)
}

// handle holds on to a process, so that nothing sent to it can reach another.
type handle struct {
	entry
	fd int // a pidfd, or -1 where the kernel has none
}

// hold takes hold of a process; false: it has ended.
func hold(e entry) (handle, bool) {
	fd, err := unix.PidfdOpen(e.pid, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return handle{}, false
	}
	if err != nil { // before Linux 5.3, or forbidden: number and start time must do
		fd = -1
	}
	h := handle{e, fd}
	if !h.same() {
		h.close()
		return handle{}, false
	}
	return h, true
}

// same finds out whether the number still belongs to the process and it runs.
func (h handle) same() bool {
	now, ok := look(h.pid)
	return ok && now.start == h.start && !now.zombie
}

func (h handle) signal(sig unix.Signal) error {
	if h.fd >= 0 {
		return unix.PidfdSendSignal(h.fd, sig, nil, 0)
	}
	if !h.same() {
		return unix.ESRCH
	}
	return unix.Kill(h.pid, sig)
}

func (h handle) close() {
	if h.fd >= 0 {
		unix.Close(h.fd)
	}
}

// awaitEnd waits until all have ended, or for d, and returns those that run.
func awaitEnd(hs []handle, d time.Duration) []handle {
	until := time.Now().Add(d)
	for {
		fds := make([]unix.PollFd, 0, len(hs))
		var left []handle
		for _, h := range hs {
			if h.fd < 0 && !h.same() {
				continue
			}
			left = append(left, h)
			fds = append(fds, unix.PollFd{Fd: int32(h.fd), Events: unix.POLLIN})
		}
		wait := int(max(0, time.Until(until)).Milliseconds()) + 1 // else the last part of a millisecond is spun away
		for _, h := range left {
			if h.fd < 0 {
				wait = min(wait, 20)
			}
		}
		if len(left) == 0 {
			return nil
		}
		if _, err := unix.Poll(fds, wait); err != nil && !errors.Is(err, unix.EINTR) {
			return left
		}
		hs = hs[:0:0]
		for i, h := range left {
			if fds[i].Revents == 0 {
				hs = append(hs, h)
			}
		}
		if len(hs) == 0 || !time.Now().Before(until) {
			return hs
		}
	}
}

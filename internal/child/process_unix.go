//go:build linux || darwin || freebsd

package child

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// stuckAfter is how long a killed process may take to be gone. One that sleeps
// in the kernel on a dead disk takes for ever.
const stuckAfter = 5 * time.Second

// entry is a line of the process table.
type entry struct {
	pid, ppid, pgid, sid int
	start                uint64
	zombie               bool
	name                 string
}

// holdsLine says whether NUL-separated text has the line.
func holdsLine(text []byte, line string) bool {
	for len(text) > 0 {
		one, rest, _ := bytes.Cut(text, []byte{0})
		if string(one) == line {
			return true
		}
		text = rest
	}
	return false
}

func joinArguments(text []byte) string {
	return string(bytes.ReplaceAll(bytes.TrimRight(text, "\x00"), []byte{0}, []byte{' '}))
}

// process is what a census knows of a process, and its arguments.
func (e entry) process() Process {
	return Process{PID: e.pid, Name: e.name, Cmdline: cmdline(e.pid), Start: e.start}
}

// parents is this process and those above it, which are never ended.
func parents(all []entry) map[int]bool {
	up := make(map[int]int, len(all))
	for _, e := range all {
		up[e.pid] = e.ppid
	}
	line := map[int]bool{0: true, 1: true}
	for pid := os.Getpid(); !line[pid]; pid = up[pid] {
		line[pid] = true
	}
	return line
}

// Leftovers finds the running processes that carry the mark of a run, oldest
// first: what a runner that was killed could not end. This process and those
// above it are not among them.
func Leftovers(mark string) ([]Process, error) { return Marked(markName, mark) }

// Marked is Leftovers for processes that carry a value of another variable in
// their environment.
func Marked(name, value string) ([]Process, error) {
	if value == "" {
		return nil, fmt.Errorf("look for processes by %s: it has no value", name)
	}
	all, err := census()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.pid, b.pid))
	})
	above := parents(all)
	var found []Process
	for _, e := range all {
		if !above[e.pid] && !e.zombie && carries(e.pid, name+"="+value) {
			found = append(found, e.process())
		}
	}
	return found, nil
}

// End ends processes: SIGTERM, which wakes the stopped ones too, and after grace
// SIGKILL. One that has ended already, whoever has its number now, is no error.
func End(ps []Process, grace time.Duration) error {
	var hs []handle
	for _, p := range ps {
		if h, ok := hold(entry{pid: p.PID, start: p.Start, name: p.Name}); ok {
			hs = append(hs, h)
		}
	}
	defer closeAll(hs)
	var denied []error
	for _, h := range hs {
		if err := terminate(h); errors.Is(err, unix.EPERM) {
			denied = append(denied, fmt.Errorf("end process %d (%s): %w", h.pid, h.name, err))
		}
	}
	left := awaitEnd(hs, grace)
	for _, h := range left {
		h.signal(unix.SIGKILL)
	}
	if len(denied) > 0 {
		return errors.Join(denied...)
	}
	for _, h := range awaitEnd(left, stuckAfter) {
		denied = append(denied, fmt.Errorf("end process %d (%s): it is still there after SIGKILL", h.pid, h.name))
	}
	return errors.Join(denied...)
}

// terminate asks a process to end. SIGCONT comes second: SIGTERM waits for a
// stopped process to be woken.
func terminate(h handle) error {
	err := h.signal(unix.SIGTERM)
	h.signal(unix.SIGCONT)
	return err
}

func closeAll(hs []handle) {
	for _, h := range hs {
		h.close()
	}
}

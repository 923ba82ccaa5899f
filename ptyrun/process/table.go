//go:build linux || darwin

package process

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// entry is a line of the process table.
type entry struct {
	Info
	ppid, pgid, sid int
	zombie          bool
}

// runs says whether the process still runs, and not another one of its number.
func (e entry) isRunning() bool {
	now, ok := readEntry(e.PID)
	return ok && now.Start == e.Start && !now.zombie
}

// signalAll sends signals to processes. SIGTERM waits for a stopped process to be woken by SIGCONT. Between the look at
// a process and its signal is a gap of microseconds, in which its number is not given to another.
func signalAll(entries []entry, signals ...unix.Signal) {
	for _, e := range entries {
		for _, sig := range signals {
			if e.isRunning() {
				unix.Kill(e.PID, sig)
			}
		}
	}
}

func awaitAll(ctx context.Context, entries []entry, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for ctx.Err() == nil && slices.ContainsFunc(entries, entry.isRunning) {
		time.Sleep(10 * time.Millisecond)
	}
}

// infos is what callers may know of processes, oldest first.
func infos(entries []entry) (list []Info) {
	for _, e := range entries {
		list = append(list, e.Info)
	}
	slices.SortFunc(list, func(a, b Info) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID)) })
	return list
}

// Ancestors are a process and those that started it, the nearest first, as far as they can be seen.
func Ancestors(pid int) (pids []int) {
	for pid > 1 && len(pids) < 64 {
		pids = append(pids, pid)
		e, _ := readEntry(pid)
		pid = e.ppid
	}
	return pids
}

// spared are this process and those above it, which are never ended.
func protected() []int { return append(Ancestors(os.Getpid()), 1) }

// Environment is the environment of a process. That of another user's is empty, and that of one which keeps its memory
// to itself, as ssh-agent does.
func Environment(pid int) []string { return strings.Split(environment(pid), "\x00") }

func hasMark(pid int, mark string) bool { return slices.Contains(Environment(pid), "ATM_RUN="+mark) }

// killWait is how long a killed process may take to be gone. One that sleeps in the kernel on a dead disk takes
// for ever.
const killWait = 5 * time.Second

// endAll ends what find finds, and returns that: first with SIGTERM and then with SIGKILL, again and again,
// because a process may fork before it dies. Those of group are killed at once, so that one that keeps forking
// there forks no more; 0: there is none.
func endAll(ctx context.Context, grace time.Duration, group int, find func() ([]entry, error)) (found []Info, err error) {
	isPolite := grace > 0
	for until := time.Now().Add(grace + killWait); ; isPolite = false {
		entries, err := find()
		if err != nil {
			return found, err
		}
		left := infos(entries)
		for _, p := range left {
			if !slices.ContainsFunc(found, func(f Info) bool { return f.PID == p.PID }) {
				found = append(found, p)
			}
		}
		switch {
		case len(left) == 0:
			return found, nil
		case time.Now().After(until):
			return found, fmt.Errorf("still there after SIGKILL: %v", left)
		case isPolite && ctx.Err() == nil:
			signalAll(entries, unix.SIGTERM, unix.SIGCONT)
			awaitAll(ctx, entries, grace)
			continue
		case group > 0 && slices.ContainsFunc(entries, func(e entry) bool { return e.pgid == group }):
			unix.Kill(-group, unix.SIGKILL)
		}
		signalAll(entries, unix.SIGKILL)
		awaitAll(context.Background(), entries, time.Until(until))
	}
}

// Leftovers finds the running processes that carry the mark of a run, oldest first: what a runner that was
// killed could not end. This process and those above it are not among them.
func Leftovers(mark string) ([]Info, error) {
	left, err := leftovers(mark)
	return infos(left), err
}

// EndLeftovers ends the processes that Leftovers finds, and names them: SIGTERM, which wakes the stopped ones too, and
// after grace SIGKILL.
func EndLeftovers(mark string, grace time.Duration) (ended []Info, err error) {
	return endAll(context.Background(), grace, 0, func() ([]entry, error) { return leftovers(mark) })
}

func leftovers(mark string) ([]entry, error) {
	if mark == "" {
		return nil, nil // of no run
	}
	all, err := readTable()
	above := protected()
	return slices.DeleteFunc(all, func(e entry) bool {
		return slices.Contains(above, e.PID) || e.zombie || !hasMark(e.PID, mark)
	}), err
}

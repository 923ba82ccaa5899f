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

// IsRunning reports whether the process still runs. Another process with its PID does not count.
func (i Info) IsRunning() bool {
	now, ok := readInfo(i.PID)
	return ok && now.Start == i.Start && !now.isZombie
}

// Find returns a process that runs.
func Find(pid int) (p Info, ok bool) {
	p, ok = readInfo(pid)
	return p, ok && !p.isZombie
}

// Arguments returns the words that a process was started with, unless it has changed them.
func Arguments(pid int) []string {
	return strings.Split(strings.TrimSuffix(arguments(pid), "\x00"), "\x00")
}

func isOlder(a, b Info) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID)) }

// signalAll sends signals to processes. SIGTERM reaches a suspended process only with SIGCONT. The microseconds between
// check and signal are too short for the kernel to reuse a PID.
func signalAll(processes []Info, signals ...unix.Signal) {
	for _, p := range processes {
		for _, sig := range signals {
			if p.IsRunning() {
				unix.Kill(p.PID, sig)
			}
		}
	}
}

func awaitAll(ctx context.Context, processes []Info, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for ctx.Err() == nil && slices.ContainsFunc(processes, Info.IsRunning) {
		time.Sleep(10 * time.Millisecond)
	}
}

// Ancestors returns a process and its ancestors, the nearest first, as far as they are visible.
func Ancestors(pid int) (pids []int) {
	for pid > 1 {
		pids = append(pids, pid)
		p, _ := readInfo(pid)
		pid = p.ppid
	}
	return pids
}

// shells are programs that start what others have them start.
var shells = []string{"sh", "bash", "dash", "ash", "busybox", "zsh", "ksh", "mksh", "fish"}

// Program returns the program that has started this process, perhaps through shells.
func Program() (p Info, ok bool) {
	for pid := Parent(); pid > 1; pid = p.ppid {
		if p, ok = readInfo(pid); ok && !slices.Contains(shells, p.Name) {
			return p, true
		}
	}
	return Info{}, false
}

// Inherited returns the environments that this process's ancestors in its session were started with, the nearest first.
// What a shell has set since is not in them.
func Inherited() (all [][]string) {
	parent := Parent()
	own, _ := readInfo(parent)
	for _, pid := range Ancestors(parent) {
		if p, _ := readInfo(pid); p.sid != own.sid {
			break
		}
		all = append(all, Environment(pid))
	}
	return all
}

// Named returns the running processes whose program has a name, the oldest first. A child that is still a copy of such a one,
// since it has not begun its own program yet, is none.
func Named(name string) []Info {
	all, _ := readTable()
	named := slices.DeleteFunc(all, func(p Info) bool { return p.Name != name || p.isZombie })
	return slices.DeleteFunc(slices.Clone(named), func(p Info) bool {
		return slices.ContainsFunc(named, func(parent Info) bool {
			return parent.PID == p.ppid && arguments(parent.PID) == arguments(p.PID)
		})
	})
}

// protected returns this process and its ancestors, which are never ended.
func protected() []int { return append(Ancestors(os.Getpid()), 1) }

// Environment returns a process's environment. It is empty for another user's process and for one that protects its
// memory, like ssh-agent.
func Environment(pid int) []string {
	all, _ := environment(pid)
	return strings.Split(all, "\x00")
}

// hasMark reports whether a process carries a run's mark. While one begins another program, on a busy machine for tens of
// milliseconds, its environment is not there.
func hasMark(pid int, mark string) bool {
	for until := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		all, isCertain := environment(pid)
		if isCertain || time.Now().After(until) {
			return slices.Contains(strings.Split(all, "\x00"), "ATM_RUN="+mark)
		}
	}
}

// killWait is how long a killed process may take to disappear. One that waits for a dead disk never does.
const killWait = 5 * time.Second

// endAll ends the processes that find finds, and returns them. It sends SIGTERM once and then SIGKILL until find finds
// none, because a process may fork before it dies. A group (0: none) is killed at once, so that it cannot go on
// forking.
func endAll(ctx context.Context, grace time.Duration, group int, find func() ([]Info, error)) (found []Info, err error) {
	isPolite := grace > 0
	for until := time.Now().Add(grace + killWait); ; isPolite = false {
		left, err := find()
		if err == nil && len(left) > 0 {
			err = CheckTable()
		}
		if err != nil {
			return found, err
		}
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
			signalAll(left, unix.SIGTERM, unix.SIGCONT)
			awaitAll(ctx, left, grace)
			continue
		case group > 0 && slices.ContainsFunc(left, func(p Info) bool { return p.pgid == group }):
			unix.Kill(-group, unix.SIGKILL)
		}
		signalAll(left, unix.SIGKILL)
		awaitAll(context.Background(), left, time.Until(until))
	}
}

// Leftovers returns the running processes that carry a run's mark, oldest first: those of a runner that was killed.
// This process and its ancestors are not among them.
func Leftovers(mark string) ([]Info, error) {
	if mark == "" {
		return nil, nil
	}
	all, err := readTable()
	above := protected()
	return slices.DeleteFunc(all, func(p Info) bool {
		return slices.Contains(above, p.PID) || p.isZombie || !hasMark(p.PID, mark)
	}), err
}

// EndLeftovers ends what Leftovers finds, and returns it: with SIGTERM and SIGCONT, and after two seconds with SIGKILL.
func EndLeftovers(mark string) (ended []Info, err error) {
	return endAll(context.Background(), 2*time.Second, 0, func() ([]Info, error) { return Leftovers(mark) })
}

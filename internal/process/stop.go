//go:build linux || darwin

package process

import (
	"context"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const maxLastGrace = time.Second // for what is left when the program has exited or its terminal is closed

// Stop ends the program and everything that it started, and returns when they are gone. It sends SIGTERM to the
// foreground group and the program's own, and SIGCONT so that suspended processes get it; after grace, or at once if a
// program in the foreground ignores SIGTERM, as a shell at its prompt does, it closes the terminal, which sends SIGHUP, or
// the pipe to stdin, and sends everything else SIGTERM and SIGCONT; after up to another second it sends SIGKILL until
// nothing is left. When ctx ends there is no more grace. A second Stop waits for the first.
//
// It returns the processes that had not ended with the program. An error names those that survived SIGKILL: stuck in
// the kernel, or another user's.
func (c *Child) Stop(ctx context.Context, grace time.Duration) (others []Info, err error) {
	c.stopping.Lock()
	defer c.stopping.Unlock()
	if !isClosed(c.done) {
		foreground, _ := c.Foreground()
		for _, group := range slices.Compact([]int{c.pid, foreground}) {
			if group > 1 {
				unix.Kill(-group, unix.SIGTERM)
				unix.Kill(-group, unix.SIGCONT)
			}
		}
		if foreground != c.pid || !ignoresTerm(c.pid) {
			c.awaitEnd(ctx, grace)
		}
	}
	if !isClosed(c.done) {
		c.in.Close()
	}
	ended, err := endAll(ctx, min(grace, maxLastGrace), c.pid, c.findTree)
	others = slices.DeleteFunc(ended, func(p Info) bool { return p.PID == c.pid })
	c.awaitEnd(context.Background(), killWait)
	if isClosed(c.done) {
		late := time.After(killWait) // for a reader that is slow, or none
		for _, o := range c.outputs {
			select {
			case <-o.drained:
			case <-late:
				late = time.After(0)
			}
		}
		c.closeFiles()
		c.forget()
	}
	reapOrphans()
	return others, err
}

func (c *Child) awaitEnd(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-c.done:
	case <-ctx.Done():
	}
}

// findTree finds the running processes of this program's tree. Zombies do not count.
func (c *Child) findTree() ([]Info, error) {
	all, err := readTable()
	if err != nil {
		c.cmd.Process.Kill() // at least end the program
		return nil, err
	}
	runningLock.Lock()
	defer runningLock.Unlock()
	spared, isAlone := protected(), true
	for pid, of := range running {
		if of != c {
			spared, isAlone = append(spared, pid), false
		}
	}
	isReused := slices.ContainsFunc(all, func(p Info) bool { return p.PID == c.pid && p.Start != c.start })
	ours := map[int]bool{c.pid: !isReused}
	isOurs := func(p Info) bool {
		inSession, isMarked := p.sid == c.pid && !isReused, c.mark != "" && hasMark(p.PID, c.mark)
		// If several programs run, an orphan may belong to any of them: then only the mark counts.
		return inSession || isMarked || isAlone && isOrphan(p)
	}
	for _, p := range all {
		if !slices.Contains(spared, p.PID) && isOurs(p) {
			ours[p.PID] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if ours[p.ppid] && !ours[p.PID] && !slices.Contains(spared, p.PID) {
				ours[p.PID], grown = true, true
			}
		}
	}
	return slices.DeleteFunc(all, func(p Info) bool { return !ours[p.PID] || p.isZombie }), nil
}

// adoptsOrphans says that Subreaper was called.
var adoptsOrphans atomic.Bool

// isOrphan reports whether a process became our child when it lost its parent: it is in another session, where this
// process has none but the programs that are started here. The caller excludes those.
func isOrphan(p Info) bool {
	session, err := unix.Getsid(0)
	return adoptsOrphans.Load() && err == nil && p.ppid == os.Getpid() && p.sid != session
}

//go:build linux || darwin

package process

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	closeGrace   = 250 * time.Millisecond // Close's
	maxLastGrace = time.Second            // for what is left when the program has ended or its terminal is gone
)

// Stop ends the program and everything that it started, and returns when they are gone. In this order:
// SIGTERM to the foreground group and the program's own, SIGCONT so that stopped processes get it, and
// grace; the terminal is closed, which sends SIGHUP, everything else gets SIGTERM and SIGCONT, and up to a
// second of grace; SIGKILL until nothing is left. The end of ctx ends all grace.
//
// It returns what the program had started that did not end with it. An error names what did not even end
// when it was killed: stuck in the kernel, or another user's.
func (c *Child) Stop(ctx context.Context, grace time.Duration) (others []Info, err error) {
	c.stopping.Lock()
	defer c.stopping.Unlock()
	if !c.hasEnded() {
		foreground, _ := c.Foreground()
		for _, group := range slices.Compact([]int{c.pid, foreground}) {
			if group > 1 {
				unix.Kill(-group, unix.SIGTERM)
				unix.Kill(-group, unix.SIGCONT)
			}
		}
		c.awaitEnd(ctx, grace)
	}
	if !c.hasEnded() {
		c.master.Close()
	}
	ended, err := endAll(ctx, min(grace, maxLastGrace), c.pid, c.findTree)
	others = slices.DeleteFunc(ended, func(p Info) bool { return p.PID == c.pid })
	c.awaitEnd(context.Background(), killWait)
	if c.hasEnded() {
		select {
		case <-c.drained: // the reader has the rest
		case <-time.After(2 * readGrace):
		}
		c.master.Close()
		runningLock.Lock()
		delete(running, c.pid)
		runningLock.Unlock()
	}
	reapAdopted()
	return others, err
}

// Close stops with little grace. It waits for a Stop that is under way.
func (c *Child) Close() error {
	if _, err := c.Stop(context.Background(), closeGrace); err != nil {
		return fmt.Errorf("end what %s started: %w", c.cmd.Args[0], err)
	}
	return nil
}

func (c *Child) awaitEnd(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-c.done:
	case <-ctx.Done():
	}
}

// tree is what runs of this program and of what it started. A zombie runs no more.
func (c *Child) findTree() ([]entry, error) {
	all, err := readTable()
	if err != nil {
		c.cmd.Process.Kill() // at least that
		return nil, err
	}
	runningLock.Lock()
	defer runningLock.Unlock()
	spared := slices.AppendSeq(protected(), maps.Keys(running))
	isReused := slices.ContainsFunc(all, func(e entry) bool { return e.PID == c.pid && e.Start != c.start })
	ours := map[int]bool{c.pid: !isReused}
	for _, e := range all {
		// With several programs an adopted process could be any one's: then the mark decides.
		isOurs := e.sid == c.pid && !isReused || len(running) == 1 && isAdopted(e) || c.mark != "" && hasMark(e.PID, c.mark)
		if isOurs && !slices.Contains(spared, e.PID) {
			ours[e.PID] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, e := range all {
			if ours[e.ppid] && !ours[e.PID] && !slices.Contains(spared, e.PID) {
				ours[e.PID], grown = true, true
			}
		}
	}
	return slices.DeleteFunc(all, func(e entry) bool { return !ours[e.PID] || e.zombie }), nil
}

// isAdopted says whether a process became our child when it lost its parent: it is in another session then.
// What was started here is for the caller to exclude.
func isAdopted(e entry) bool {
	session, err := unix.Getsid(0)
	return err == nil && e.ppid == os.Getpid() && e.sid != session
}

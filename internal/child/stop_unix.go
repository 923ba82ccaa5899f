//go:build linux || darwin || freebsd

package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lastGrace is the most that those get who are left when the program has
	// ended or its terminal is gone.
	lastGrace = time.Second

	// closeGrace is Close's.
	closeGrace = 250 * time.Millisecond
)

// Signal sends a signal to the foreground group, as a key would.
func (c *Child) Signal(sig unix.Signal) error {
	pgid := c.foreground()
	if pgid <= 0 {
		return fmt.Errorf("send %s: %w", unix.SignalName(sig), os.ErrProcessDone)
	}
	if c.control(func(fd int) error { return signalTerminal(fd, sig) }) == nil {
		return nil
	}
	if err := c.signalGroup(pgid, sig); err != nil {
		return fmt.Errorf("send %s: %w", unix.SignalName(sig), err)
	}
	return nil
}

// signalGroup signals a group of the program's session. The program's own group
// is known by a number that is kept; of another one each member is held first.
func (c *Child) signalGroup(pgid int, sig unix.Signal) error {
	if pgid == c.pid {
		c.holding.Lock()
		defer c.holding.Unlock()
		if c.released {
			return os.ErrProcessDone
		}
		return unix.Kill(-c.pid, sig)
	}
	all, err := census()
	if err != nil {
		return err
	}
	err = os.ErrProcessDone
	for _, e := range all {
		if e.pgid != pgid || e.sid != c.pid || e.zombie {
			continue
		}
		if h, ok := hold(e); ok {
			err = h.signal(sig)
			h.close()
		}
	}
	return err
}

// Stop ends the program and everything that it started, and returns when they
// are gone. In this order: ask, which may type a farewell and must return by
// itself (nil: nothing), and grace to end; SIGTERM to the foreground group and
// the program's own, SIGCONT so that stopped ones hear it, and grace; the
// terminal is closed, which sends SIGHUP, everybody else gets SIGTERM and
// SIGCONT, and up to a second of grace; SIGKILL until nothing is left.
//
// The end of ctx, or another Stop without grace, takes all grace away. What has
// been written when the program ends is still to be read. A second Stop waits
// for the first and says the same.
func (c *Child) Stop(ctx context.Context, ask func(), grace time.Duration) Ended {
	if grace <= 0 {
		c.hasten.Do(func() { close(c.hurry) })
	}
	c.stopping.Lock()
	defer c.stopping.Unlock()
	if c.ended == nil {
		e := c.stop(ctx, ask, grace)
		c.ended = &e
	}
	return *c.ended
}

// Close takes everything back: it ends what is left, with little grace, closes
// the terminal and reaps the program. Without it a zombie stays.
func (c *Child) Close() error {
	e := c.Stop(context.Background(), nil, closeGrace)
	if len(e.Left) == 0 {
		return nil
	}
	var names []string
	for _, p := range e.Left {
		names = append(names, p.String())
	}
	return fmt.Errorf("end what %s started: still there after SIGKILL: %s", c.cmd.Args[0], strings.Join(names, ", "))
}

func (c *Child) stop(ctx context.Context, ask func(), grace time.Duration) Ended {
	how := HowExited
	if !c.over() && ask != nil {
		how = HowAsked
		ask()
		c.wait(ctx, grace)
	}
	if !c.over() {
		how = HowTerminated
		if fg := c.foreground(); fg > 0 && fg != c.pid {
			c.signalGroup(fg, unix.SIGTERM)
			c.signalGroup(fg, unix.SIGCONT)
		}
		c.signalGroup(c.pid, unix.SIGTERM)
		c.signalGroup(c.pid, unix.SIGCONT)
		c.wait(ctx, grace)
	}
	if !c.over() {
		how = HowHungUp
		c.hangUp()
	}
	others, left := c.endFamily(ctx, min(grace, lastGrace), &how)

	select {
	case <-c.done:
	case <-time.After(stuckAfter):
		// Stuck in the kernel. It is named among the left; the goroutine that
		// waits for it ends when it does.
	}
	if c.over() {
		c.awaitReader()
		c.hangUp()
		c.release()
		kin.Lock()
		delete(kin.of, c.pid)
		kin.Unlock()
	}
	reapAdopted()
	return Ended{How: how, Others: others, Left: left}
}

// wait waits for the program's end for at most d.
func (c *Child) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
	case <-ctx.Done():
	case <-c.hurry:
	}
}

// hangUp closes the terminal.
func (c *Child) hangUp() {
	c.window.Lock()
	c.window.closed = true
	c.window.settle()
	c.window.Unlock()
	c.master.Close()
}

// awaitReader lets whoever reads have the rest.
func (c *Child) awaitReader() {
	if !c.read.Load() {
		return
	}
	timer := time.NewTimer(2 * readGrace)
	defer timer.Stop()
	select {
	case <-c.drained:
	case <-timer.C:
	}
}

// endFamily ends what runs, first with SIGTERM and then with SIGKILL, again and
// again, because those found may fork before they die. It returns what was there
// besides the program, and what is still there.
func (c *Child) endFamily(ctx context.Context, grace time.Duration, how *string) (others, left []Process) {
	named := make(map[Process]bool)
	until := time.Now().Add(grace + stuckAfter)
	for round := 0; ; round++ {
		found, err := c.family()
		if err != nil && round == 0 {
			// Without a process table the program's own group is what is known.
			c.signalGroup(c.pid, unix.SIGKILL)
		}
		var hs []handle
		left = left[:0]
		for _, e := range found {
			h, ok := hold(e)
			if !ok {
				continue
			}
			hs = append(hs, h)
			p := Process{PID: e.pid, Start: e.start}
			if e.pid != c.pid && !named[p] {
				named[p] = true
				others = append(others, e.process())
			}
			left = append(left, e.process())
		}
		if len(hs) == 0 {
			return others, nil
		}
		if !time.Now().Before(until) {
			closeAll(hs)
			return others, left
		}
		if round == 0 && c.leisure(ctx, grace) {
			for _, h := range hs {
				terminate(h)
			}
			awaitEnd(hs, grace)
			closeAll(hs)
			continue
		}
		if !c.over() {
			*how = HowKilled
			c.signalGroup(c.pid, unix.SIGKILL) // all at once: what forks there forks no more
		}
		var denied int
		for _, h := range hs {
			if errors.Is(h.signal(unix.SIGKILL), unix.EPERM) {
				denied++
			}
		}
		awaitEnd(hs, min(stuckAfter, max(0, time.Until(until))))
		closeAll(hs)
		if denied == len(hs) {
			return others, left // only another user's: they will not go
		}
	}
}

// leisure says whether there is time for grace.
func (c *Child) leisure(ctx context.Context, grace time.Duration) bool {
	select {
	case <-c.hurry:
		return false
	default:
		return grace > 0 && ctx.Err() == nil
	}
}

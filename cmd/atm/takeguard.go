package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/child"
	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/wire"
)

// A taker that is killed, or stopped for longer than its lease, can no longer
// end its command, which would go on working on a message that another gets. So
// a second process stands beside it, a guard, which hears from it over a pipe
// each time the lease is renewed, and ends the command when the pipe breaks or
// the lease is about to run out. What belongs to the command is known by a mark
// in the environment, whatever it has forked. Should both be killed at once,
// Linux still ends the command itself.

// guardPipe, in the environment, says that this process is to be a guard and
// over which descriptor it hears; takeMark marks a command and what it starts.
const (
	guardPipe = "ATM_GUARD_PIPE"
	takeMark  = "ATM_TAKE"
)

// guarded is what a taker tells its guard, a line of JSON each.
type guarded struct {
	Agent wire.Name `json:"agent,omitempty"` // whose inbox
	ID    wire.ID   `json:"id,omitempty"`
	Key   wire.ID   `json:"key,omitempty"`
	Until time.Time `json:"until,omitzero"` // the lease runs

	Lease time.Duration `json:"lease,omitempty"` // as long as it is renewed for
	Over  bool          `json:"over,omitempty"`  // nothing is to be guarded any more
}

const (
	guardTick = 200 * time.Millisecond

	// guardMargin is how long before the end of a lease that nobody renews its
	// command is told to end, at most.
	guardMargin = 2 * time.Second

	// wakes is how long a taker may take to renew its lease after the whole
	// machine slept.
	wakes = 2 * time.Second
)

// guard is a process that guards this one's command.
type guard struct {
	pipe  *os.File
	ended chan struct{}
	c     *exec.Cmd
}

// tell tells the guard; one that is gone hears nothing.
func (g *guard) tell(what guarded) {
	line, _ := json.Marshal(what)
	_, _ = g.pipe.Write(append(line, '\n'))
}

// close dismisses the guard and waits for its end.
func (g *guard) close() {
	g.tell(guarded{Over: true})
	g.pipe.Close()
	select {
	case <-g.ended:
	case <-time.After(wakes):
		g.c.Process.Kill()
		<-g.ended
	}
}

// guardEnv is this process's environment for a guard, which is not part of what
// another guard may have to end.
func guardEnv(fd int) []string {
	out := []string{guardPipe + "=" + strconv.Itoa(fd)}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, takeMark+"=") {
			out = append(out, kv)
		}
	}
	return out
}

// guardTaken is the guard.
func (e *env) guardTaken(ctx context.Context, pipe string) error {
	fd, err := strconv.Atoi(pipe)
	if err != nil {
		return cmdline.Usage("%s is no number", guardPipe)
	}
	in := os.NewFile(uintptr(fd), "taker")
	if in == nil {
		return cmdline.Usage("%s names no descriptor", guardPipe)
	}
	defer in.Close()
	heard := make(chan guarded)
	go func() {
		defer close(heard)
		for lines := bufio.NewReader(in); ; {
			line, err := lines.ReadBytes('\n')
			var g guarded
			if err == nil && json.Unmarshal(line, &g) == nil {
				heard <- g
			}
			if err != nil {
				return
			}
		}
	}()
	w := &watchman{}
	tick := time.NewTicker(guardTick)
	defer tick.Stop()
	for {
		select {
		case g, ok := <-heard:
			switch {
			case ok && g.Over:
				return nil
			case !ok && w.told.Key == "":
				return io.ErrUnexpectedEOF // before there was a command
			case !ok:
				return e.takerGone(ctx, w.told)
			}
			w.hears(g)
		case <-tick.C:
			if now := time.Now(); w.at(now, now.Round(0)) {
				// Dead before the lease is: the next holder may begin then.
				endMarked(w.told.Key, max(w.told.Until.Sub(now.Round(0))*3/4, 0))
			}
		}
	}
}

// watchman judges whether a taker still renews its lease.
type watchman struct {
	told  guarded
	lease time.Duration // as long as it is renewed for
	last  time.Time     // the tick before, on the wall
	awake time.Time     // since when this process has not slept
	done  bool          // the command was told to end
}

func (w *watchman) hears(g guarded) {
	if g.Key != "" {
		w.told = g
	}
	if !g.Until.IsZero() {
		w.told.Until, w.done = g.Until, false
		w.lease = max(w.lease, g.Lease)
	}
}

// at is a tick: it reports, once, that the lease is about to run out and that the
// taker has had its chance to renew it. Both clocks count: the lease's is on the
// wall, and where that jumps, this process has slept or the clock was set.
func (w *watchman) at(now, wall time.Time) (late bool) {
	slept := w.last.IsZero() || wall.Sub(w.last).Abs() > wakes
	if w.last = wall; slept {
		w.awake = now
	}
	margin := min(w.lease/6, guardMargin)
	if w.done || w.told.Until.IsZero() || now.Sub(w.awake) < min(wakes, w.lease/2) || wall.Before(w.told.Until.Add(-margin)) {
		return false
	}
	w.done = true
	return true
}

// takerGone ends what a taker that was killed has left, and gives the message
// back.
func (e *env) takerGone(ctx context.Context, g guarded) error {
	endMarked(g.Key, stopPatience)
	box := e.team.Box(g.Agent)
	if err := box.GiveBack(ctx, g.ID, e.me.Address(), g.Key, "its taker was killed"); err != nil {
		return err
	}
	return e.root.Tidy(ctx, box, e.origin())
}

// endMarked ends a command and all that it started: asked first, killed after
// grace. What was being started meanwhile is looked for again.
func endMarked(key wire.ID, grace time.Duration) {
	for range 5 {
		all, err := child.Marked(takeMark, string(key))
		if err != nil || len(all) == 0 {
			return
		}
		if child.End(all, grace) != nil {
			return
		}
	}
}

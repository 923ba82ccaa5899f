package main

import (
	"context"
	"strconv"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
)

// whileEnv, in the environment, names a process. What waits, and what is run,
// then goes on only while that lives: `export ATM_WHILE=$$` in a script, and
// nothing that it started outlives it, however it ends.
const whileEnv = "ATM_WHILE"

// lifeline is a process on whose life this one hangs.
type lifeline struct {
	PID  int    `json:"pid"`
	Born string `json:"born,omitempty"` // tells it from a later one of the same number; "": the system does not tell
}

const (
	lifelineTick = 300 * time.Millisecond // how often it is looked whether it lives
	lifelineFile = "while"                // in a member's run directory: what its runner hangs on

	// orphanEnds is how long a runner may take to end when what it hangs on has.
	orphanEnds = 30 * time.Second
)

// lifeline is what the environment names, nil where it names nothing.
func (e *env) lifeline() (*lifeline, error) {
	s := e.Getenv(whileEnv)
	if s == "" {
		return nil, nil
	}
	pid, err := strconv.Atoi(s)
	if err != nil || pid <= 0 {
		return nil, cmdline.Usage("%s=%q is no process", whileEnv, s).WithHint("export %s=$$", whileEnv)
	}
	born, alive := life(pid)
	if !alive {
		return nil, &cmdline.Error{Exit: cmdline.ExitInterrupted, Code: "failed", Message: "process " + s + " (" + whileEnv + ") is gone"}
	}
	return &lifeline{pid, born}, nil
}

// broken reports whether the process has ended.
func (l *lifeline) broken() bool {
	born, alive := life(l.PID)
	return !alive || born != l.Born && born != "" && l.Born != ""
}

// hanging is a context that ends with the process that the environment names.
func (e *env) hanging(ctx context.Context) (_ context.Context, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	letGo, err := e.whenAlone(cancel)
	if err != nil {
		cancel()
		return ctx, nil, err
	}
	return ctx, func() { cancel(); letGo() }, nil
}

// whenAlone calls f when the process that the environment names has ended. stop
// waits for the goroutine that looks, of which there is none where the
// environment names nothing.
func (e *env) whenAlone(f func()) (stop func(), err error) {
	l, err := e.lifeline()
	if l == nil || err != nil {
		return func() {}, err
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(lifelineTick)
		defer tick.Stop()
		for !l.broken() {
			select {
			case <-over:
				return
			case <-tick.C:
			}
		}
		e.Warn("process %d (%s) is gone", l.PID, whileEnv)
		f()
	}()
	return func() { close(over); <-done }, nil
}

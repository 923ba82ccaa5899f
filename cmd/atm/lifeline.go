package main

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/wire"
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

// noteLifeline notes what the runner of a member hangs on, under its lock.
func (e *env) noteLifeline(name wire.Name) error {
	if err := e.team.Dir().Mkdir(string(name) + "/run"); err != nil {
		return err
	}
	file := string(name) + "/run/" + lifelineFile
	l, err := e.lifeline()
	if err != nil {
		return err
	}
	if l == nil {
		return e.team.Dir().Remove(file)
	}
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return e.team.Dir().Replace(file, append(data, '\n'), false)
}

// orphaned reports whether a member runs for a process that has ended: it is
// about to be stopped by its runner.
func (e *env) orphaned(name wire.Name) bool {
	if running, err := e.team.Running(name); err != nil || !running {
		return false
	}
	data, err := e.team.Dir().ReadFile(string(name)+"/run/"+lifelineFile, 1<<10)
	var l lifeline
	return err == nil && json.Unmarshal(data, &l) == nil && l.PID > 0 && l.broken()
}

// awaitOrphan waits until a member that ran for a process which has ended is
// stopped: who starts the team again is not to rely on what is about to go.
func (e *env) awaitOrphan(ctx context.Context, name wire.Name) error {
	late := time.NewTimer(orphanEnds)
	defer late.Stop()
	tick := time.NewTicker(lifelineTick / 3)
	defer tick.Stop()
	for e.orphaned(name) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return cmdline.Failed("%s runs for a script that has ended, and does not stop", name).WithHint("atm stop %s", name)
		case <-tick.C:
		}
	}
	return nil
}

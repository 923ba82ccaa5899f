package main

import (
	"context"
	"errors"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// errGoneMeanwhile says that a member which ran does so no more.
var errGoneMeanwhile = errors.New("it has ended")

const (
	// readinessEvery is how often a runner is asked whether its program is ready.
	readinessEvery = 50 * time.Millisecond

	// listensWithin is how long a runner may take from holding its lock to
	// listening: it first ends what the last one left.
	listensWithin = 15 * time.Second
)

// awaitReady waits until a member that somebody else has started is ready, or
// says why it is not.
func (e *env) awaitReady(ctx context.Context, n wire.Name) (turnout, error) {
	t := turnout{Name: n, State: "running"}
	b := e.team.Box(n)
	tick := time.NewTicker(readinessEvery)
	defer tick.Stop()
	began := time.Now()
	for {
		s, err := e.runnerStatus(ctx, n)
		var silent *control.NotAnsweringError
		switch {
		case err == nil && s.Ready:
			t.PID = s.ChildPID
			return t, nil
		case err == nil && s.ChildPID > 0 && (s.State == string(reducer.Confirming) || s.State == string(reducer.AwaitingInput)):
			return t, cmdline.Failed("%s runs, and asks before it is ready (%s)", n, s.Detail).WithHint("atm attach %s", n)
		case err == nil && (time.Since(began) > readyWithin || e.unsure(n, s)):
			t.PID, t.Detail = s.ChildPID, "at no prompt that is known"
			return t, nil
		case errors.As(err, &silent):
			return t, e.explainRunner(b, err)
		case ctx.Err() != nil:
			return t, ctx.Err()
		case err != nil && time.Since(began) > listensWithin:
			return t, e.explainRunner(b, err)
		}
		if running, err := e.team.Running(n); err != nil || !running {
			if err == nil {
				err = errGoneMeanwhile
			}
			return t, err
		}
		select {
		case <-ctx.Done():
			return t, ctx.Err()
		case <-tick.C:
		}
	}
}

// unsure reports whether a member's runner has given up to wait for a prompt
// that it knows: it says so in the log.
func (e *env) unsure(n wire.Name, s control.Status) bool {
	if s.ChildPID == 0 {
		return false
	}
	m, err := e.team.Summary(n)
	return err == nil && m.State == reducer.WordUnknown && m.PID == int64(s.ChildPID)
}

// runnerStatus is what a member's runner says about itself.
func (e *env) runnerStatus(ctx context.Context, n wire.Name) (control.Status, error) {
	dialling, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	c, err := control.Dial(dialling, runDir(e.team.Box(n)))
	if err != nil {
		return control.Status{}, err
	}
	defer c.Close()
	return c.Status(ctx)
}

// startTicket, in the environment of a start, is the last stop of the member at
// the time when that start was asked for.
const startTicket = "ATM_RUNNER_TICKET"

// markStopped has who is about to start a member do so no more. On a full disk
// it is stopped all the same.
func (e *env) markStopped(n wire.Name) {
	if err := e.team.MarkStopped(n); err != nil {
		e.Warn("who is just starting %s is not told that it was stopped: %v", n, err)
	}
}

// stillWanted refuses a start that was asked for before the member was stopped.
// The runner asks once it holds its lock: who stops marks that first, and then
// looks for the lock, so that one of the two sees the other.
func (e *env) stillWanted(n wire.Name) error {
	ticket := e.Getenv(startTicket)
	if ticket == "" {
		return nil
	}
	last, err := e.team.LastStop(n)
	if err == nil && last != ticket {
		err = cmdline.Refused("%s was stopped meanwhile", n).WithHint("atm up %s", n)
	}
	return err
}

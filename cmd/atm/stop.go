package main

import (
	"context"
	"errors"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun"
)

var stopVerb = &cmdline.Verb{
	Name: "stop", Args: "NAME", Summary: "end an agent, everything it started, and its runner",
	Examples: []string{"atm stop bob", "atm stop bob --grace 30s"},
	Notes:    []string{"Asks, then TERM, then KILL. Its mail stays. One that does not run: exit 0."},
	Flags: []cmdline.Flag{
		{Name: "grace", Kind: cmdline.Duration, Arg: "D", Usage: "how long it may take to end by itself"},
	},
	Guesses: []string{"kill", "quit", "terminate"},
	MinArgs: 1, MaxArgs: 1,
	Run: long(stopAgent),
}

// releaseWithin is how long a runner may take, after it has said that all is
// ended, to be gone itself.
const releaseWithin = 5 * time.Second

func stopAgent(ctx context.Context, e *env) error {
	if e.Given("grace") && e.Duration("grace") < time.Millisecond {
		return cmdline.Usage("--grace is at least a millisecond").WithHint("atm stop %s --grace 1s", cmdline.Escape(e.Args[0]))
	}
	b, err := e.agent()
	if err != nil {
		return err
	}
	if err := e.mayAct("stop", b.Agent()); err != nil {
		return err
	}
	e.markStopped(b.Agent())
	c, err := e.dialOrGone(ctx, b)
	switch {
	case err != nil:
		return e.stoppedBefore(ctx, b, err)
	case c == nil: // it ended by itself meanwhile
		return e.sayOutcome(b, control.Outcome{Done: "stopped"})
	}
	defer c.Close()
	o, err := c.Stop(ctx, control.StopRequest{Grace: e.Duration("grace")})
	var said *control.Error
	gone := errors.Is(err, control.ErrGone) || errors.As(err, &said) && said.Code == "failed"
	if err != nil && !gone {
		return e.explainRunner(b, err)
	}
	released, bad := e.untilReleased(ctx, b)
	switch {
	case bad != nil:
		return bad
	case err != nil && !released && said != nil:
		return e.explainRunner(b, err)
	case err != nil: // gone is what it was asked to be
		o = control.Outcome{Done: "stopped"}
	}
	if !released {
		e.Warn("the runner of %s has not ended yet", b.Agent())
	}
	return e.sayOutcome(b, o)
}

// dialOrGone connects to a runner, also to one that is about to listen; nil is
// one that has ended meanwhile. That none ran at all is control.ErrNoRunner.
func (e *env) dialOrGone(ctx context.Context, b *mailbox.Box) (*control.Client, error) {
	ran := false
	for end := time.Now().Add(releaseWithin); ; {
		c, err := e.dial(ctx, b)
		if !errors.Is(err, control.ErrNoRunner) {
			return c, err
		}
		running, probe := b.Store().Running(b.Agent())
		switch {
		case probe != nil:
			return nil, probe
		case !running && ran:
			return nil, nil
		case !running || time.Now().After(end):
			return nil, err
		}
		ran = true
		if pause(ctx, releasedEvery); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// releasedEvery is how often a runner's lock is looked at while it is awaited.
const releasedEvery = 10 * time.Millisecond

// stoppedBefore is no error where nothing runs: that is what was asked for. What
// a runner that was killed has left running is ended.
func (e *env) stoppedBefore(ctx context.Context, b *mailbox.Box, err error) error {
	running, probe := b.Store().Running(b.Agent())
	if !errors.Is(err, control.ErrNoRunner) || probe != nil || running {
		return e.explainRunner(b, err)
	}
	hold, err := b.Store().HoldRunner(ctx, b.Agent()) // nobody starts it meanwhile
	if err != nil {
		return err
	}
	defer hold.Release()
	left, err := ptyrun.Leftovers(b)
	if err != nil {
		return err
	}
	grace := e.Duration("grace")
	if grace == 0 {
		grace = 2 * time.Second
	}
	if err := left.End(grace); err != nil {
		return err
	}
	o := control.Outcome{Done: "not running"}
	for _, p := range left.Processes {
		o.Ended = append(o.Ended, p.String())
	}
	return e.sayOutcome(b, o)
}

// untilReleased waits until the runner has let go of its lock, so that the next
// command finds the agent stopped; false says that it does not within a time.
func (e *env) untilReleased(ctx context.Context, b *mailbox.Box) (bool, error) {
	for end := time.Now().Add(releaseWithin); time.Now().Before(end); {
		running, err := b.Store().Running(b.Agent())
		if err != nil || !running {
			return true, err
		}
		if pause(ctx, releasedEvery); ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
	return false, nil
}

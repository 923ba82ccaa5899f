package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/wire"
)

var downVerb = &cmdline.Verb{
	Name: "down", Args: "[NAME…]", Summary: "stop the team, and everything that it started",
	Examples: []string{"atm down", "atm down bob"},
	Notes:    []string{"Their mail and their git worktrees stay."},
	MaxArgs:  -1,
	Guesses:  []string{"stop-all", "shutdown"},
	Run:      long(down),
}

func down(ctx context.Context, e *env) error {
	if err := e.open(); err != nil {
		return err
	}
	names, err := namesOf(e.Args)
	if err != nil {
		return err
	}
	for _, n := range names {
		if _, err := e.team.Member(n); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		if names, err = e.team.Agents(); err != nil {
			return err
		}
	}
	// Stopping depends on nothing that team.toml says.
	c := &crew{env: e, plan: config.Default(), names: names, say: &telling{env: e}}
	return c.stop(ctx)
}

// stop stops members, and what runners that were killed have left of them; the
// one that asks for it last, since this process ends with it.
func (c *crew) stop(ctx context.Context) error {
	names := c.names
	var errs map[wire.Name]error
	if me, agent := c.actor(); agent && slices.Contains(names, me) {
		others := slices.DeleteFunc(slices.Clone(names), func(n wire.Name) bool { return n == me })
		errs = c.stopThese(ctx, others)
		names = []wire.Name{me}
	}
	all := c.stopThese(ctx, names)
	for n, err := range errs {
		all[n] = err
	}
	if len(all) == 0 {
		return c.say.unsaid
	}
	var failed []string
	hint := "atm doctor"
	for _, n := range c.names {
		if err := all[n]; err != nil {
			t := turnout{Name: n}
			if t.failed(err); t.Hint != "" && len(failed) == 0 {
				hint = t.Hint
			}
			failed = append(failed, fmt.Sprintf("%s: %v", n, err))
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return cmdline.Partial("not stopped: %s", strings.Join(failed, "; ")).WithHint("%s", hint)
}

func (c *crew) stopThese(ctx context.Context, names []wire.Name) map[wire.Name]error {
	done := c.say.waitFor(names)
	defer done()
	named := c.Verb.Name == "down" && len(c.Args) > 0
	return config.Default().Start(ctx, names, func(ctx context.Context, n wire.Name) error {
		defer c.say.through(n)
		t := turnout{Name: n, State: "off"}
		ended, err := c.end(ctx, n)
		if err != nil {
			return err
		}
		if ended {
			t.State = "stopped"
		}
		if t.State == "off" && !named {
			return nil
		}
		// Whether anybody reads it or not, it is stopped, and so are the others.
		_ = c.say.turnout(t)
		return nil
	})
}

// end ends a member's runner and all that it has started, and reports whether
// there was anything.
func (c *crew) end(ctx context.Context, n wire.Name) (ended bool, err error) {
	if err := c.team.Box(n).Present(); errors.Is(err, mailbox.ErrNoAgent) {
		return false, nil
	}
	// Before anything is looked at: who is about to start it does so no more.
	c.markStopped(n)
	running, err := c.team.Running(n)
	if err != nil {
		return false, err
	}
	if _, err := os.Lstat(runDir(c.team.Box(n)) + "/run.json"); err != nil && !running {
		return false, nil // it never ran
	}
	var said struct {
		Done  string
		Ended []string
	}
	for began := time.Now(); ; {
		err = c.self(ctx, &said, nil, "stop", string(n))
		if err == nil {
			return ended || said.Done != "not running" || len(said.Ended) > 0, nil
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		_, look := c.runnerStatus(ctx, n)
		var silent *control.NotAnsweringError
		switch {
		case errors.As(look, &silent) && silent.PID > 0:
			// It was stopped, or is stuck: what it leaves is ended by its mark.
			p, e := os.FindProcess(silent.PID)
			if e == nil {
				e = p.Kill()
			}
			if e != nil {
				return false, err
			}
			ended = true
			c.Warn("%s: its runner, process %d, did not answer and was killed", n, silent.PID)
		case errors.Is(look, control.ErrNoRunner): // it is about to listen, or to end
		default:
			return false, err
		}
		if time.Since(began) > listensWithin {
			return false, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(readinessEvery):
		}
	}
}

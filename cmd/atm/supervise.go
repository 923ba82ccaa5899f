package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// foreground starts the team, shows it until it is interrupted or nobody runs
// any more, and stops it. An interrupt cuts none of that short: what a stop
// leaves half done would be nobody's.
func (e *env) foreground(ctx context.Context) error {
	return whileRunning(ctx, func(ctx context.Context) error {
		ctx, letGo, err := e.hanging(ctx)
		if err != nil {
			return err
		}
		defer letGo()
		c, err := e.crew()
		if err != nil {
			return err
		}
		err = c.start(ctx)
		var said *cmdline.Error
		if errors.As(err, &said) && said.Exit == cmdline.ExitPartial {
			e.Warn("%v", err)
			err = nil
		}
		if err == nil {
			err = c.supervise(ctx)
		}
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = nil // interrupted while they were started
		}
		// Whom they come after without a command here is somebody else's to stop.
		c.names = slices.DeleteFunc(slices.Clone(c.names), func(n wire.Name) bool { return len(c.plan.Members[n].Command) == 0 })
		return errors.Join(err, c.stop(context.WithoutCancel(ctx)))
	})
}

const (
	// superviseEvery is how often it is looked whether a runner was killed.
	superviseEvery = time.Second

	// A runner that dies so often within so long is not started again.
	runnerDeaths = 5
	deathsWithin = time.Minute
)

// supervise shows the team and starts those again whose runner was killed, until
// ctx ends or nobody runs any more. (A program that ends is its runner's to
// start again.)
func (c *crew) supervise(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	show := c.narrate
	if c.terminal() && !c.JSON() && c.Getenv("TERM") != "dumb" {
		show = c.paintTeam
		c.say.mute = true // the table says it
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer stop() // nobody is left
		c.revive(watching)
	})
	err := c.following(watching, show)
	stop()
	wg.Wait()
	c.say.mute = false
	if errors.Is(err, context.Canceled) {
		return nil // that is how it ends: interrupted, or nobody runs any more
	}
	return err
}

// revive starts those again whose runner was killed, by the policy of their
// program: never is never. It returns when nobody runs and nobody will.
func (c *crew) revive(ctx context.Context) {
	deaths := map[wire.Name][]time.Time{}
	lost := map[wire.Name]bool{}
	tick := time.NewTicker(superviseEvery)
	defer tick.Stop()
	for {
		left := false
		for _, n := range c.names {
			plan := c.plan.Members[n]
			if len(plan.Command) == 0 {
				continue
			}
			ticket, noTicket := c.team.LastStop(n) // before it is looked at: a stop after that counts
			m, err := c.team.Summary(n)
			if err != nil || m.Running {
				left = true // what cannot be told is no reason to end
				if noTicket == nil {
					c.tickets[n] = ticket // somebody may have stopped and started it
					lost[n] = false
				}
				continue
			}
			if !m.RunnerGone || plan.Restart == "never" || lost[n] {
				continue
			}
			now := time.Now()
			deaths[n] = append(slices.DeleteFunc(deaths[n], func(at time.Time) bool { return now.Sub(at) > deathsWithin }), now)
			if len(deaths[n]) > runnerDeaths {
				lost[n] = true
				c.say.turnout(turnout{Name: n, State: "failed", Detail: "its runner is killed again and again", At: at(now)})
				continue
			}
			left = true
			t, err := c.bring(ctx, n)
			if err != nil {
				var said *selfError
				if ctx.Err() != nil {
					return
				}
				if errors.As(err, &said) && said.Code == "refused" { // it was stopped meanwhile
					lost[n] = true
					continue
				}
				t.failed(err)
				t.Detail = t.Error
			}
			if err == nil {
				t.Detail = "again: its runner had been killed"
			}
			t.At = at(time.Now())
			c.say.turnout(t)
		}
		if !left {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// narrate says in a line each what becomes of the members.
func (c *crew) narrate(ctx context.Context) error {
	before := map[wire.Name]string{}
	return c.eachChange(ctx, 0, func(rows []teams.Member, _ teams.Stats) error {
		for _, m := range rows {
			if !slices.Contains(c.names, m.Name) {
				continue
			}
			now := fmt.Sprint(m.State, m.Detail)
			if before[m.Name] == now {
				continue
			}
			before[m.Name] = now
			t := turnout{Name: m.Name, State: string(m.State), Detail: m.Detail, At: at(time.Now())}
			if m.Running {
				t.PID = int(m.PID)
			}
			if err := c.say.turnout(t); err != nil {
				return err
			}
		}
		return nil
	})
}

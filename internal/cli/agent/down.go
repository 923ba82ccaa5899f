package agent

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/wire"
)

var downCommand = &cli.Command{
	Name: "down", ArgsUsage: "[NAME…]", Usage: "stop the team, and everything that it started",
	UsageText:   "atm down\natm down bob",
	Description: "Their mail and their worktrees stay.",
	Action:      down,
}

// A shutdown stops members, all at once.
type shutdown struct {
	c       *cli.Context
	s       *command.Scope
	names   []wire.Name
	isNamed bool // also those that did not run are said

	mu      sync.Mutex
	stopped int
	failed  []string
	hint    string
}

// down reads no team.toml: whatever is wrong there, what runs can be stopped.
func down(c *cli.Context) error {
	s, err := command.OpenTeam(c)
	if err != nil {
		return err
	}
	d := &shutdown{c: c, s: s, isNamed: c.Args().Present()}
	if !d.isNamed {
		d.names, err = s.Team.Agents()
	}
	if err != nil {
		return err
	}
	for _, word := range c.Args().Slice() {
		box, err := s.Member(word)
		if err != nil {
			return err
		}
		d.names = append(d.names, box.Agent())
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	err = d.stop(ctx)
	if err == nil && d.stopped == 0 && !d.isNamed {
		command.Warn(c, "nobody of team %s was running", s.Team.Name)
	}
	return err
}

// stop stops the member that asks for it last: this process ends with it.
func (d *shutdown) stop(ctx context.Context) error {
	me, isAgent := d.s.Actor()
	var others sync.WaitGroup
	for _, n := range d.names {
		if !isAgent || n != me {
			others.Go(func() { d.stopMember(ctx, n) })
		}
	}
	others.Wait()
	if isAgent && slices.Contains(d.names, me) {
		d.stopMember(ctx, me)
	}
	if ctx.Err() != nil || len(d.failed) == 0 {
		return ctx.Err()
	}
	return &command.Error{Code: "partial", Exit: command.ExitPartial, Message: "not stopped: " + strings.Join(d.failed, "; "), Hint: d.hint}
}

func (d *shutdown) stopMember(ctx context.Context, n wire.Name) {
	r, err := stopAgent(ctx, d.c, d.s, d.s.Team.Box(n))
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		e := command.Explain(d.c, err)
		d.failed, d.hint = append(d.failed, string(n)+": "+e.Message), e.Hint
		return
	}
	if r.State != "not running" {
		d.stopped++
	} else if !d.isNamed {
		return
	}
	command.Print(d.c, memberResult{Name: n, State: r.State}) // that nobody reads it stops nothing
}

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

var downCommand = &cli.Command{
	Name: "down", ArgsUsage: "[NAME…]", Usage: "stop the team, and everything that it started",
	UsageText:   "atm down\natm down bob",
	Description: "Their mail and their worktrees stay.",
	Action:      down,
}

// down reads no team.toml: whatever is wrong there, what runs can be stopped.
func down(c *cli.Context) error {
	s, err := command.OpenTeam(c)
	if err != nil {
		return err
	}
	var names []wire.Name
	for _, word := range c.Args().Slice() {
		box, err := s.Member(word)
		if err != nil {
			return err
		}
		names = append(names, box.Agent())
	}
	named := len(names) > 0
	if !named {
		if names, err = s.Team.Agents(); err != nil {
			return err
		}
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	d := &shutdown{c: c, s: s, names: names, sayOff: named}
	err = d.stop(ctx)
	if err == nil && d.stopped == 0 && !named {
		command.Warn(c, "nobody of team %s was running", s.Team.Name)
	}
	return err
}

// A shutdown stops members, all at once.
type shutdown struct {
	c      *cli.Context
	s      *command.Scope
	names  []wire.Name
	sayOff bool // also of those that did not run

	mu      sync.Mutex
	stopped int
	errs    map[wire.Name]error
}

// stop stops the member that asks for it last: this process ends with it.
func (d *shutdown) stop(ctx context.Context) error {
	d.errs = map[wire.Name]error{}
	others := d.names
	me, isAgent := d.s.Actor()
	last := isAgent && slices.Contains(d.names, me)
	if last {
		others = slices.DeleteFunc(slices.Clone(d.names), func(n wire.Name) bool { return n == me })
	}
	var wg sync.WaitGroup
	for _, n := range others {
		wg.Go(func() { d.stopMember(ctx, n) })
	}
	wg.Wait()
	if last {
		d.stopMember(ctx, me)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return d.failed()
}

func (d *shutdown) stopMember(ctx context.Context, n wire.Name) {
	stopped, err := d.end(ctx, n)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.errs[n] = err
		return
	}
	if stopped {
		d.stopped++
		command.Print(d.c, memberResult{Name: n, State: "stopped"}) // it is, whether anybody reads that or not
	} else if d.sayOff {
		command.Print(d.c, memberResult{Name: n, State: "off"})
	}
}

// end ends a member's runner and all that it started, and reports whether there was
// anything. A runner that does not answer is killed; what it leaves is then ended.
func (d *shutdown) end(ctx context.Context, n wire.Name) (stopped bool, err error) {
	box := d.s.Team.Box(n)
	running, err := d.s.Team.Running(n)
	if err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
		return false, err
	}
	if _, err := os.Lstat(runDir(box) + "/" + control.PaperFile); err != nil && !running {
		if box.Exists() {
			d.s.Team.MarkStopped(n) // for whoever is about to start it
		}
		return false, nil // it never ran
	}
	if err := d.s.MayStop("stop", n); err != nil {
		return false, err
	}
	killed := false
	for began := time.Now(); ; {
		o, err := stopAgent(ctx, d.c, d.s, box, 0)
		if err == nil {
			return killed || o.Done != "not running" || len(o.Ended) > 0, nil
		}
		var silent *control.NotAnsweringError
		if !errors.As(err, &silent) || silent.PID <= 0 || time.Since(began) > stopWithin {
			return false, runnerError(d.s, box, err)
		}
		p, bad := os.FindProcess(silent.PID)
		if bad == nil {
			bad = p.Kill()
		}
		if bad != nil {
			return false, runnerError(d.s, box, err)
		}
		killed = true
		command.Warn(d.c, "%s: its runner, process %d, did not answer and was killed", n, silent.PID)
		if !sleep(ctx, lookEvery) {
			return false, ctx.Err()
		}
	}
}

func (d *shutdown) failed() error {
	var failed []string
	hint := ""
	for _, n := range d.names {
		if err := d.errs[n]; err != nil {
			e := command.Explain(d.c, err)
			failed = append(failed, fmt.Sprintf("%s: %s", n, e.Message))
			if hint == "" {
				hint = e.Hint
			}
		}
	}
	if len(failed) == 0 {
		return nil
	}
	if hint == "" {
		hint = "atm doctor"
	}
	return &command.Error{Code: "partial", Exit: command.ExitPartial, Message: "not stopped: " + strings.Join(failed, "; "), Hint: hint}
}

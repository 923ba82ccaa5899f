package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/reducer"
)

// Times of a start.
const (
	lookEvery    = 50 * time.Millisecond // the runner is asked how its program stands
	knownWithin  = 3 * time.Second       // --detach waits so long for a prompt
	readyWithin  = 30 * time.Second      // and `atm up`
	listenWithin = 15 * time.Second      // from a runner's lock to its socket: it first ends what the last one left
	dialogHolds  = 6                     // looks in a row, until a dialog counts
)

// A runnerProcess is a runner that this process has started.
type runnerProcess struct {
	ended chan struct{}

	// Once ended is closed: how its program ended for good, or why it was not run.
	exit ptyrun.Exit
	err  error
}

// startRunner starts the runner of a spec as a process of its own, with the flags
// of this command. What it says on stderr goes to ours for as long as this process
// lives, and to run/run.log once it has its lock.
func startRunner(c *cli.Context, s *command.Scope, sp *spec) (*runnerProcess, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"runner", string(sp.box.Agent()), "--json", "--root", s.Root.Path, "--team", string(s.Team.Name), "--last-stop", sp.lastStop}
	for _, name := range []string{"as", "driver", "inject", "size", "cwd", "restart"} {
		if value := c.String(name); value != "" {
			args = append(args, "--"+name+"="+value)
		}
	}
	for _, pair := range c.StringSlice("env") {
		args = append(args, "--env="+pair)
	}
	if c.Bool("record-input") {
		args = append(args, "--record-input")
	}
	if c.Command.Name != "up" {
		args = append(append(args, "--"), c.Args().Tail()...)
	}
	cmd := exec.Command(exe, args...)
	cmd.Args[0] = os.Args[0]
	var said bytes.Buffer
	cmd.Stdout = &said
	cmd.Stderr = struct{ io.Writer }{os.Stderr} // not the file itself, which it would keep open
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &runnerProcess{ended: make(chan struct{})}
	go func() {
		waited := cmd.Wait()
		p.readReport(said.Bytes(), waited, cmd.ProcessState.ExitCode())
		close(p.ended)
	}()
	return p, nil
}

// readReport reads what a runner that has ended said.
func (p *runnerProcess) readReport(said []byte, waited error, code int) {
	var r runnerReport
	json.Unmarshal(said, &r)
	switch {
	case r.Exit != nil:
		p.exit = *r.Exit
	case r.Error != nil:
		p.err = &command.Error{Code: r.Error.Code, Exit: code, Message: r.Error.Message, Hint: r.Error.Hint}
	default:
		p.err = command.Failed("the runner ended: %v", waited).WithHint("its run/run.log may say why")
	}
}

// errGone says that an agent which was awaited runs no more.
var errGone = errors.New("it has ended")

// awaitReady waits until an agent is ready, or until it is known that it does not
// become so. p is its runner if this process has started it, else nil. After
// patience it is as it is.
func awaitReady(ctx context.Context, c *cli.Context, s *command.Scope, box *mailbox.Box, p *runnerProcess, patience time.Duration) (memberResult, error) {
	r := memberResult{Name: box.Agent()}
	over := make(chan struct{})
	if p != nil {
		over = p.ended
	}
	asking, restarts := 0, 0
	for began := time.Now(); ; {
		status, err := statusOf(ctx, box)
		r.PID = status.ChildPID
		if err == nil && status.Ready {
			r.State = "ready"
			return r, nil
		}
		asking++
		if err != nil || status.State != string(reducer.Confirming) && status.State != string(reducer.AwaitingInput) {
			asking = 0
		}
		if asking == dialogHolds {
			return r, command.Failed("%s runs, and asks before it is ready: %s", r.Name, letter.Escape(status.Detail)).WithHint("atm attach %s", r.Name)
		}
		if status.Restarts > restarts {
			restarts = status.Restarts
			command.Warn(c, "%s has ended before it was ready, and is started again", r.Name)
		}
		if err == nil && time.Since(began) > patience {
			r.State, r.Detail = "started", "no prompt is shown yet"
			return r, nil
		}
		if errors.Is(err, control.ErrNotAnswering) || err != nil && time.Since(began) > listenWithin {
			return r, runnerError(s, box, err)
		}
		if p == nil {
			if running, err := box.Store().Running(r.Name); err != nil || !running {
				return r, cmp.Or(err, errGone)
			}
		}
		select {
		case <-over:
			if p.err != nil {
				return r, p.err
			}
			return r, ended(box, p.exit)
		case <-ctx.Done():
			return r, ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// ended is the error of a program that has ended, with the last words of its screen.
func ended(box *mailbox.Box, exit ptyrun.Exit) error {
	e := command.Failed("%s ended with %d before it was ready", box.Agent(), exit.Code)
	if exit.Loop {
		e = command.Failed("%s ends again and again, with %d", box.Agent(), exit.Code)
		e.Exit = max(exit.Code, command.ExitFailed)
	}
	if said := oneLine(strings.Join(exit.Tail, " "), 500); said != "" {
		e.Message += ": " + said
	}
	return e.WithHint("asciinema play %s shows its screen", filepath.Join(box.Path(), "run", "screen.cast"))
}

// runDetached starts a runner, and comes back when the agent is ready or it is
// known how it stands.
func runDetached(c *cli.Context, s *command.Scope, sp *spec) error {
	p, err := startRunner(c, s, sp)
	if err != nil {
		return err
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	r, err := awaitReady(ctx, c, s, sp.box, p, knownWithin)
	if err != nil {
		return err
	}
	return command.Print(c, r)
}

// runAttached starts a runner and attaches this terminal to its agent.
func runAttached(c *cli.Context, s *command.Scope, sp *spec) error {
	p, err := startRunner(c, s, sp)
	if err != nil {
		return err
	}
	client, err := dialStarted(c.Context, p, sp.box)
	if err != nil {
		return err
	}
	a := &attachment{c: c, scope: s, box: sp.box, isOwner: true}
	if client != nil {
		end, err := a.follow(client)
		if e, ok := errors.AsType[*command.Error](err); ok && e.Silent {
			return err
		}
		if err == nil && end.Exit == nil {
			return a.printEnd(end)
		}
	}
	// Its program has ended, perhaps before this terminal could join; so does its runner.
	<-p.ended
	if p.err != nil {
		return p.err
	}
	if client == nil {
		fmt.Fprintln(os.Stdout, letter.EscapeBody(strings.Join(p.exit.Tail, "\n")))
	}
	return exitWith(sp.box, p.exit)
}

// dialStarted reaches the runner that this process has started; nil: its program
// has ended already.
func dialStarted(ctx context.Context, p *runnerProcess, box *mailbox.Box) (*control.Client, error) {
	for {
		if status, err := statusOf(ctx, box); err == nil && status.ChildPID != 0 {
			if client, err := dial(ctx, box); err == nil {
				return client, nil
			}
		}
		select {
		case <-p.ended:
			return nil, p.err
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(probeEvery):
		}
	}
}

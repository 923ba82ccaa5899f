package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// runnerCommand is the runner as a process of its own: run and up start it.
var runnerCommand = &cli.Command{
	Name: "runner", ArgsUsage: "NAME [CMD…]", Hidden: true, Usage: "the process behind `atm run --detach`",
	UsageText: "atm run bob --detach -- claude",
	Flags:     append(specFlags(), &cli.StringFlag{Name: "last-stop", Usage: "refuse if `IT` is no longer the agent's last stop"}),
	Action: func(c *cli.Context) error {
		s, sp, err := openSpec(c)
		if err != nil {
			return err
		}
		if c.IsSet("last-stop") {
			sp.lastStop = c.String("last-stop")
		}
		exit, err := runHere(c, s, sp)
		if err != nil {
			return err
		}
		return command.PrintJSON(runnerReport{Exit: &exit})
	},
}

// A runnerReport is what a runner prints when it ends.
type runnerReport struct {
	Exit  *ptyrun.Exit                          `json:"exit,omitempty"`
	Error *struct{ Code, Message, Hint string } `json:"error,omitempty"`
}

// runHere is the runner: it returns when the agent's program has ended for good, and with it all that it
// started. A signal ends it, which may take some seconds and is never cut short.
func runHere(c *cli.Context, s *command.Scope, sp *spec) (exit ptyrun.Exit, err error) {
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	output.IgnoreSIGPIPE()
	name := sp.box.Agent()
	hold, err := sp.box.Store().HoldRunner(ctx, name)
	if err != nil {
		return exit, err
	}
	defer hold.Release()
	// Whoever stops the agent notes that first and then looks for this lock, so that one of the two sees
	// the other.
	if last, err := s.Team.LastStop(name); err != nil || last != sp.lastStop {
		return exit, command.Refused("%s was stopped meanwhile", name).WithHint("atm up %s", name)
	}
	// Only now: the log of a runner that runs is nobody else's. No link is followed, and a crash is written
	// there, too.
	dir := sp.box.Store().Dir()
	if err := dir.Mkdir(string(name) + "/run"); err != nil {
		return exit, err
	}
	log, err := dir.OpenFile(string(name)+"/run/run.log", os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return exit, err
	}
	defer log.Close()
	debug.SetCrashOutput(log, debug.CrashOptions{})
	left, err := endLeftovers(sp.box)
	if err != nil {
		return exit, fmt.Errorf("end what the last runner of %s left: %w", name, err)
	}
	if len(left) > 0 {
		command.Warn(c, "%s: what its last runner left was ended: %s", name, strings.Join(left, ", "))
	}
	state, err := s.Team.State(name)
	if err := errors.Join(err, s.Team.SavePolicy(name, sp.policy)); err != nil {
		return exit, err
	}
	o := sp.options
	o.State, o.Held = *state, hold.StillHeld
	o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	// Whoever answers is told of what the agent asks, and of answers that are overdue.
	origin := &wire.Origin{Via: "runner", Run: o.Run, UID: s.Origin().UID}
	o.Told = func(ctx context.Context, q ptyrun.Question) error {
		d := q.Dialog
		return s.Team.NotifyRequest(ctx, sp.box, teams.DialogRequest{
			ID: q.ID, Kind: d.Kind, Prompt: d.Prompt, Tool: d.Tool, Input: d.Input, Options: q.Options(),
		}, origin)
	}
	o.Answered = func(ctx context.Context, id wire.ID) error { return s.Team.WithdrawRequest(ctx, sp.box, id) }
	o.Overdue = func(ctx context.Context, idle bool) error { return s.Team.Remind(ctx, sp.box, idle, origin) }
	return ptyrun.Run(ctx, o)
}

// endLeftovers ends what a runner that was killed has left running, and names it. The caller holds the
// runner's lock.
func endLeftovers(box *mailbox.Box) (processes []string, err error) {
	left, err := ptyrun.Leftovers(box)
	if err != nil || len(left.Processes) == 0 {
		return nil, err
	}
	for _, p := range left.Processes {
		processes = append(processes, p.String())
	}
	return processes, left.End(leftoversGrace)
}

// dialogHolds is how many looks in a row see a dialog until it counts.
const dialogHolds = 6

// A runnerProcess is a runner that this process has started.
type runnerProcess struct {
	ended chan struct{}

	// Once ended is closed: how its program ended for good, or why it was not run.
	exit ptyrun.Exit
	err  error
}

// startRunner starts the runner of a spec as a process of its own, with the flags of this command. What it
// says on stderr goes to ours for as long as this process lives, and to run/run.log once it has its lock.
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
		defer close(p.ended)
		cmd.Wait() // what it said tells more than the error
		var r runnerReport
		json.Unmarshal(said.Bytes(), &r)
		switch {
		case r.Exit != nil:
			p.exit = *r.Exit
		case r.Error != nil:
			p.err = &command.Error{Code: r.Error.Code, Exit: cmd.ProcessState.ExitCode(), Message: r.Error.Message, Hint: r.Error.Hint}
		default:
			p.err = command.Failed("the runner ended: %v", cmd.ProcessState).WithHint("its run/run.log may say why")
		}
	}()
	return p, nil
}

// errGone says that an agent which was awaited runs no more.
var errGone = errors.New("it has ended")

// awaitReady waits until the agent is ready, or until it is known that it does not become so. p is its
// runner if this process has started it, else nil. After patience, which counts from its start, it is as
// it is.
func (k *call) awaitReady(ctx context.Context, p *runnerProcess, patience time.Duration) (result, error) {
	r, unready := result{Name: k.name(), State: "ready"}, "started"
	if p == nil {
		r.State, unready = "running", "running"
	}
	asking, restarts := 0, 0
	for began := time.Now(); ; {
		status, err := k.status(ctx)
		r.PID = status.ChildPID
		if asking++; status.State != string(reducer.Confirming) && status.State != string(reducer.AwaitingInput) {
			asking = 0
		}
		if status.Restarts > restarts {
			restarts = status.Restarts
			command.Warn(k.c, "%s has ended before it was ready, and is started again", r.Name)
		}
		quiet := time.Since(began)
		if p == nil && r.PID != 0 {
			quiet = time.Since(status.Started)
		}
		switch {
		case status.Ready:
			return r, nil
		case asking == dialogHolds:
			return r, command.Failed("%s runs, and asks before it is ready: %s", r.Name, letter.Escape(status.Detail)).
				WithHint("atm attach %s", r.Name)
		case err == nil && asking == 0 && quiet > patience:
			r.State, r.Detail = unready, "no prompt is shown yet"
			return r, nil
		case errors.Is(err, control.ErrNotAnswering) || err != nil && time.Since(began) > listenWithin:
			return r, k.explain(err)
		}
		if running, err := k.box.Store().Running(r.Name); p == nil && (err != nil || !running) {
			return r, cmp.Or(err, errGone)
		}
		if p.hasEnded(lookEvery) {
			return r, cmp.Or(p.err, ended(k.box, p.exit))
		}
		if ctx.Err() != nil {
			return r, ctx.Err()
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

// startReady starts a runner, and comes back when the agent is ready or it is known how it stands.
func (k *call) startReady(ctx context.Context, sp *spec, patience time.Duration) (result, error) {
	p, err := startRunner(k.c, k.s, sp)
	if err != nil {
		return result{}, err
	}
	return k.awaitReady(ctx, p, patience)
}

// runAttached starts a runner and attaches this terminal to its agent.
func (k *call) runAttached(sp *spec) error {
	p, err := startRunner(k.c, k.s, sp)
	if err != nil {
		return err
	}
	var client *control.Client
	for client == nil && !p.hasEnded(probeEvery) {
		if status, err := k.status(k.c.Context); err == nil && status.ChildPID != 0 {
			client, _ = k.dial(k.c.Context)
		}
	}
	if client != nil {
		defer client.Close()
		end, err := k.showTerminal(client, true)
		if e, ok := errors.AsType[*command.Error](err); ok && e.Silent {
			return err
		}
		if err == nil && end.Exit == nil {
			return k.printEnd(end)
		}
	}
	<-p.ended // soon, as its program has ended: perhaps before this terminal could join
	if p.err != nil {
		return p.err
	}
	if client == nil {
		fmt.Fprintln(os.Stdout, letter.EscapeBody(strings.Join(p.exit.Tail, "\n")))
	}
	return exitWith(sp.box, p.exit)
}

// hasEnded waits for the end of a runner; nil is somebody else's, which nobody tells of.
func (p *runnerProcess) hasEnded(within time.Duration) bool {
	var ended chan struct{}
	if p != nil {
		ended = p.ended
	}
	select {
	case <-ended:
		return true
	case <-time.After(within):
		return false
	}
}

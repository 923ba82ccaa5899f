package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	readyWithin  = 60 * time.Second      // and `atm up`
	listenWithin = 15 * time.Second      // from a runner's lock to its socket: it first ends what the last one left
	promptWithin = 30 * time.Second      // a program whose prompts are not known shows none later
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
	if c.IsSet("as") {
		args = append(args, "--as", c.String("as"))
	}
	for _, name := range []string{"driver", "inject", "size", "cwd", "restart", "leftovers"} {
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
		err := cmd.Wait()
		p.exit, p.err = readEnding(said.Bytes(), err)
		close(p.ended)
	}()
	return p, nil
}

// ending is what a runner prints when it ends.
type ending struct {
	Exit  *ptyrun.Exit `json:"exit,omitempty"`
	Error *struct {
		Code, Message, Hint string
	} `json:"error,omitempty"`
}

func readEnding(said []byte, waited error) (ptyrun.Exit, error) {
	var e ending
	if json.Unmarshal(said, &e) == nil && e.Exit != nil {
		return *e.Exit, nil
	}
	if e.Error == nil {
		return ptyrun.Exit{}, command.Failed("the runner ended: %v", waited).WithHint("its run/run.log may say why")
	}
	exit := map[string]int{
		"usage": command.ExitUsage, "ambiguous": command.ExitUsage, "not_found": command.ExitNotFound,
		"timeout": command.ExitTimeout, "locked": command.ExitRefused, "refused": command.ExitRefused,
	}[e.Error.Code]
	return ptyrun.Exit{}, &command.Error{
		Code: e.Error.Code, Exit: max(exit, command.ExitFailed), Message: e.Error.Message, Hint: e.Error.Hint,
	}
}

// errGone says that an agent which was awaited runs no more.
var errGone = errors.New("it has ended")

// A started is how an agent stands after it was started.
type started struct {
	State  string // ready, unknown: at no prompt that is known, started: not ready yet
	PID    int
	Detail string
}

// awaitReady waits until an agent is ready, or until it is known that it does not
// become so. p is its runner if this process has started it, else nil. After
// patience it is as it is.
func awaitReady(ctx context.Context, c *cli.Context, s *command.Scope, box *mailbox.Box, p *runnerProcess, patience time.Duration) (started, error) {
	var ended chan struct{}
	if p != nil {
		ended = p.ended
	}
	asking := 0
	for began := time.Now(); ; {
		status, err := statusOf(ctx, box)
		if err == nil && status.Ready {
			return started{State: "ready", PID: status.ChildPID}, nil
		}
		if err == nil && (status.State == string(reducer.Confirming) || status.State == string(reducer.AwaitingInput)) {
			asking++
		} else {
			asking = 0
		}
		if asking == dialogHolds {
			return started{}, asksEarly(s, box, status)
		}
		if err == nil && status.ChildPID != 0 && status.State == string(reducer.Starting) && time.Since(status.Started) > promptWithin {
			return started{State: "unknown", PID: status.ChildPID, Detail: "at no prompt that is known; mail waits until there is one"}, nil
		}
		if err == nil && time.Since(began) > patience {
			return notReadyYet(status), nil
		}
		if errors.Is(err, control.ErrNotAnswering) || err != nil && time.Since(began) > listenWithin {
			return started{}, runnerError(s, box, err)
		}
		if p == nil {
			if running, err := box.Store().Running(box.Agent()); err != nil || !running {
				return started{}, errors.Join(err, errGone)
			}
		}
		select {
		case <-ended:
			if p.err != nil {
				return started{}, p.err
			}
			return started{}, endedEarly(c, s, box, p.exit, " before it was ready")
		case <-ctx.Done():
			return started{}, ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

func notReadyYet(status control.Status) started {
	st := started{State: "started", PID: status.ChildPID, Detail: "no prompt is shown yet"}
	if status.Restarts > 0 {
		st.Detail = fmt.Sprintf("it has ended %d times already", status.Restarts)
	}
	return st
}

// asksEarly is the error of an agent that asks something before it is ready.
func asksEarly(s *command.Scope, box *mailbox.Box, status control.Status) error {
	name := box.Agent()
	what := status.Detail
	if asked, _ := s.Team.Questions(name); len(asked) > 0 {
		what += "): " + subject(asked[0], 200)
	} else {
		what += ")"
	}
	return command.Failed("%s runs, and asks before it is ready (%s", name, letter.Escape(what)).WithHint("atm attach %s", name)
}

// endedEarly is the error of a program that has ended, with the last lines of its
// screen: on stderr, or with --json beside the error.
func endedEarly(c *cli.Context, s *command.Scope, box *mailbox.Box, exit ptyrun.Exit, when string) error {
	name := box.Agent()
	e := command.Failed("%s ended with %d%s", name, exit.Code, when)
	if exit.Loop && exit.Code == 0 {
		e = command.Failed("%s ends again and again", name)
	} else if exit.Loop {
		e = command.Failed("%s crashes again and again", name)
	}
	if when == "" {
		e.Exit = max(exit.Code, command.ExitFailed)
	}
	e.WithHint("asciinema play %s shows its screen", recording(box))
	lines := lastLines(exit.Tail)
	if len(lines) == 0 {
		e.Message += ", without a word"
	} else {
		e.Extra = map[string]any{"tail": lines}
	}
	return e
}

// recording is the path of an agent's recording.
func recording(box *mailbox.Box) string { return runDir(box) + "/screen.cast" }

// lastLines are the last lines of a screen that say something.
func lastLines(tail []string) (lines []string) {
	for _, line := range tail {
		if line = strings.TrimRight(line, " "); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(len(lines)-5, 0):]
}

// warnTail shows the lines that an error brings, unless JSON has them.
func warnTail(c *cli.Context, err error, before string) {
	var e *command.Error
	if !errors.As(err, &e) || c.Bool("json") {
		return
	}
	lines, _ := e.Extra["tail"].([]string)
	for _, line := range lines {
		command.Warn(c, "%s| %s", before, letter.Clip(letter.Escape(line), 200))
	}
}

// startedAgent is what run --detach prints.
type startedAgent struct {
	Agent  string `json:"agent"`
	PID    int    `json:"pid"`
	State  string `json:"state"`
	Detail string `json:"detail"`
}

func (a startedAgent) String() string {
	switch a.State {
	case "ready":
		return fmt.Sprintf("%s runs: ready, process %d; atm attach %s", a.Agent, a.PID, a.Agent)
	case "unknown":
		return fmt.Sprintf("%s runs: %s, process %d; atm attach %s", a.Agent, a.Detail, a.PID, a.Agent)
	}
	return fmt.Sprintf("%s: started, process %d; %s", a.Agent, a.PID, a.Detail)
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
	st, err := awaitReady(ctx, c, s, sp.box, p, knownWithin)
	if err != nil {
		warnTail(c, err, "")
		return err
	}
	return command.Print(c, startedAgent{string(sp.box.Agent()), st.PID, st.State, st.Detail})
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
	if client == nil {
		return p.showEnding()
	}
	a := &attachment{c: c, scope: s, box: sp.box, owner: true}
	end, err := a.follow(client)
	var silent *command.Error
	if errors.As(err, &silent) && silent.Silent {
		return err
	}
	if err == nil && end.Exit == nil {
		return a.sayEnding(end)
	}
	select {
	case <-p.ended:
	case <-time.After(time.Second):
		if err != nil {
			return err
		}
	}
	if p.hasEnded() && p.err == nil && p.exit.Loop {
		return endedEarly(c, s, sp.box, p.exit, "")
	}
	if err != nil { // it had ended before this terminal could join
		return p.showEnding()
	}
	return exitWith(ptyrun.Exit{Code: end.Exit.Code})
}

func (p *runnerProcess) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// showEnding shows what a program wrote that has ended already.
func (p *runnerProcess) showEnding() error {
	if p.err != nil {
		return p.err
	}
	for _, line := range p.exit.Tail {
		fmt.Fprintln(os.Stdout, letter.Escape(line))
	}
	return exitWith(p.exit)
}

// dialStarted reaches the runner that this process has started; nil: its program
// has ended already.
func dialStarted(ctx context.Context, p *runnerProcess, box *mailbox.Box) (*control.Client, error) {
	for {
		status, err := statusOf(ctx, box)
		if err == nil && status.ChildPID != 0 {
			client, err := dial(ctx, box)
			if err == nil {
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

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
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/internal/runspec"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
)

// runnerName is the program that runs agents.
const runnerName = "atm-runner"

// findRunner finds the runner's program beside this one, else on PATH; it must be of this version.
func findRunner(c *cli.Context) (path string, err error) {
	at := c.App.Version
	if !strings.HasPrefix(at, "v") || strings.ContainsAny(at, "-+") { // of no release
		at = "latest"
	}
	hint := fmt.Sprintf("make install in its source, or go install github.com/agentteammail/atm/cmd/...@%s", at)
	if path, err = command.Companion(runnerName); err != nil {
		return "", command.Failed("%s, which runs agents, is neither beside atm nor on PATH", runnerName).WithHint("%s", hint)
	}
	said, err := exec.Command(path, "version").Output()
	if version := strings.TrimSpace(string(said)); err != nil || version != runnerName+" "+c.App.Version {
		return "", command.Failed("%s is of another version than atm %s: %s", path, c.App.Version, cmp.Or(version, "it does not say which")).
			WithHint("%s", hint)
	}
	return path, nil
}

// dialogHolds is how many looks in a row see a dialog until it counts.
const dialogHolds = 6

// A runnerProcess is a runner that this process has started.
type runnerProcess struct {
	ended chan struct{}

	release func()         // lets go of it, which ends the agent where the runner is attended
	exit    runspec.Report // once ended is closed: how its program ended for good
	err     error          // or why it was not run
}

// start starts the runner of a spec as a process of its own. What it says on stderr goes to ours
// for as long as this process lives, and to run/run.log once it has its lock.
func (sp *spec) start() (*runnerProcess, error) {
	cmd := exec.Command(sp.program)
	var said bytes.Buffer
	cmd.Stdout = &said
	cmd.Stderr = struct{ io.Writer }{os.Stderr} // not the file itself, which it would keep open
	detach(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	json.NewEncoder(in).Encode(sp.Spec) // what it does not take it reports
	if !sp.Attended {
		in.Close()
	}
	p := &runnerProcess{ended: make(chan struct{}), release: func() { in.Close() }}
	go func() {
		defer close(p.ended)
		cmd.Wait() // what it said tells more than the error
		switch err := json.Unmarshal(said.Bytes(), &p.exit); {
		case err != nil:
			p.err = command.Failed("the runner ended: %v", cmd.ProcessState).WithHint("its run/run.log may say why")
		case p.exit.Error != nil:
			e := p.exit.Error
			p.err = &command.Error{Code: e.Code, Exit: e.Exit, Message: e.Message, Hint: e.Hint}
		}
	}()
	return p, nil
}

// errGone says that an agent which was awaited runs no more.
var errGone = errors.New("it has ended")

// awaitReady waits until the agent is ready, or until it is known that it does not become so. p is its
// runner if this process has started it, else nil. After patience, which counts from its start and is
// short where its prompts are not known, it is as it is.
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
		if status.Driver == "plain" {
			patience = quietWithin
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
func ended(box *mailbox.Box, exit runspec.Report) error {
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

// asEnded is how this command ends when the runner has: as the program did.
func (p *runnerProcess) asEnded(box *mailbox.Box) error {
	switch {
	case p.err != nil:
		return p.err
	case p.exit.Loop:
		return ended(box, p.exit)
	case p.exit.Code == 0 || p.exit.Asked:
		return nil
	}
	return command.Exit(p.exit.Code)
}

// startReady starts a runner, and comes back when the agent is ready or it is known how it stands.
func (k *call) startReady(ctx context.Context, sp *spec, patience time.Duration) (result, error) {
	p, err := sp.start()
	if err != nil {
		return result{}, err
	}
	return k.awaitReady(ctx, p, patience)
}

// runHere starts a runner and waits for its end. A signal, or the end of this process, ends the
// agent.
func (k *call) runHere(sp *spec) error {
	ctx, stop := signal.NotifyContext(k.c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	output.IgnoreSIGPIPE()
	sp.Attended = true
	p, err := sp.start()
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, p.release)()
	<-p.ended
	return p.asEnded(sp.box)
}

// runAttached starts a runner and attaches this terminal to its agent.
func (k *call) runAttached(sp *spec) error {
	p, err := sp.start()
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
	if client == nil && p.err == nil {
		fmt.Fprintln(os.Stdout, letter.EscapeBody(strings.Join(p.exit.Tail, "\n")))
	}
	return p.asEnded(sp.box)
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

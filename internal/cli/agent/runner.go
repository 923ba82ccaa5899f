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
	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/internal/runspec"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
)

func findRunner(c *cli.Context) (path string, err error) {
	return command.FindCompanion(c, "atm-runner", "which runs agents")
}

// A runnerProcess is a runner that this process has started. The zero value is somebody else's, whose end
// nobody tells of.
type runnerProcess struct {
	ended chan struct{} // nil: it is somebody else's

	release func()         // lets go of it, which ends the agent where the runner is attended
	exit    runspec.Report // once ended is closed: how its program ended for good
	err     error          // or why it was not run
}

// startRunner starts the runner of a spec as a process of its own. What it says on stderr goes to ours
// for as long as this process lives, and to run/run.log once it has its lock.
func startRunner(program string, spec runspec.Spec) (*runnerProcess, error) {
	cmd := exec.Command(program)
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
	json.NewEncoder(in).Encode(spec) // what it does not take it reports
	if !spec.Attended {
		in.Close()
	}
	p := &runnerProcess{ended: make(chan struct{}), release: func() { in.Close() }}
	go func() {
		defer close(p.ended)
		cmd.Wait() // what it said tells more than the error
		if json.Unmarshal(said.Bytes(), &p.exit) != nil {
			p.err = command.Failed("the runner ended: %v", cmd.ProcessState).WithHint("its run/run.log may say why")
		} else if e := p.exit.Error; e != nil {
			e.Hint = strings.ReplaceAll(e.Hint, "NAME", string(spec.Agent))
			e.Exit, p.err = p.exit.Code, e
		}
	}()
	return p, nil
}

func (p *runnerProcess) hasEnded(within time.Duration) bool {
	select {
	case <-p.ended:
		return true
	case <-time.After(within):
		return false
	}
}

// dialogHolds is how many looks in a row see a dialog until it counts.
const dialogHolds = 6

// awaitReady waits until the agent is ready, or until it is known that it does not become so. After
// patience, which counts from its start and is short where its prompts are not known, it is as it is.
func (k *call) awaitReady(ctx context.Context, p *runnerProcess, patience time.Duration) (result, error) {
	r, unready, isOurs := result{Name: k.name(), State: "ready"}, "started", p.ended != nil
	if !isOurs {
		r.State, unready = "running", "running"
	}
	asking, began := 0, time.Now()
	for ctx.Err() == nil {
		status, err := k.status(ctx)
		r.PID = status.ChildPID
		asking++
		if status.State != string(reducer.Confirming) && status.State != string(reducer.AwaitingInput) {
			asking = 0
		}
		quiet := time.Since(cmp.Or(status.Started, began))
		if status.Driver == "plain" {
			patience = quietWithin
		}
		switch {
		case status.Ready:
			return r, nil
		case asking == dialogHolds:
			return r, command.Failed("%s runs, and asks before it is ready: %s", r.Name, letter.Escape(status.Detail)).
				WithHint("atm attach %s", r.Name)
		case err == nil && status.ChildPID != 0 && asking == 0 && quiet > patience: // without one it is to start again
			r.State, r.Detail = unready, "no prompt is shown yet"
			return r, nil
		case errors.Is(err, control.ErrNotAnswering) || err != nil && time.Since(began) > listenWithin:
			return r, k.s.RunnerError(r.Name, err)
		}
		if running, err := k.box.Store().Running(r.Name); !isOurs && !running {
			return r, cmp.Or(err, errors.New("it has ended"))
		}
		if p.hasEnded(lookEvery) {
			return r, cmp.Or(p.err, k.endedUnready(p.exit))
		}
	}
	return r, ctx.Err()
}

func (k *call) endedUnready(exit runspec.Report) error {
	e := command.Failed("%s ended with %d before it was ready", k.name(), exit.Code)
	if exit.Loop {
		e = command.Failed("%s ends again and again, with %d", k.name(), exit.Code)
		e.Exit = max(exit.Code, command.ExitFailed)
	}
	if said := oneLine(strings.Join(exit.Tail, " "), 500); said != "" {
		e.Message += ": " + said
	}
	return e.WithHint("asciinema play %s shows its screen", filepath.Join(k.box.Path(), "run", "screen.cast"))
}

func (k *call) awaitEnd(p *runnerProcess) error {
	<-p.ended
	switch {
	case p.err != nil:
		return p.err
	case p.exit.Loop:
		return k.endedUnready(p.exit)
	case p.exit.Code == 0:
		return nil
	}
	return command.Exit(p.exit.Code)
}

// runHere waits for the runner's end. A signal, or the end of this process, ends the agent.
func (k *call) runHere(p *runnerProcess) error {
	ctx, stop := output.UntilSignal(k.c.Context)
	defer stop()
	defer context.AfterFunc(ctx, p.release)()
	return k.awaitEnd(p)
}

func (k *call) runAttached(p *runnerProcess) error {
	for !p.hasEnded(probeEvery) {
		client, err := k.dial(k.c.Context)
		if err != nil {
			continue
		}
		if status, err := client.Status(k.c.Context); err != nil || status.ChildPID == 0 {
			client.Close()
			continue
		}
		end, err := k.showTerminal(client, true)
		if e, ok := errors.AsType[*command.Error](err); ok && e.Silent {
			return err
		}
		if err != nil {
			break
		}
		err = k.printEnd(end)
		if end.Exit == nil {
			return err
		}
		return k.awaitEnd(p)
	}
	<-p.ended
	if p.err == nil { // its program has ended before this terminal could join
		fmt.Fprintln(os.Stdout, letter.EscapeBody(strings.Join(p.exit.Tail, "\n")))
		k.printEnd(control.Ending{Exit: &control.Exit{Code: p.exit.Code}})
	}
	return k.awaitEnd(p)
}

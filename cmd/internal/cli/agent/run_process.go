package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/cmd/internal/runspec"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/driver/agents"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
)

// A runnerProcess is a runner that this process has started.
type runnerProcess struct {
	stdin io.WriteCloser // its end ends an attended agent
	ended chan struct{}

	// Set when ended is closed:
	exit runspec.Report // the last exit of its program
	err  error          // why the program was not run
}

// startRunner starts atm-runner in a session of its own. Its stderr goes to ours while this process lives, and to
// run/run.log once it holds its lock.
func startRunner(program string, spec runspec.Spec, stderr io.Writer) (*runnerProcess, error) {
	cmd := exec.Command(program)
	var report bytes.Buffer
	cmd.Stdout = &report
	cmd.Stderr = struct{ io.Writer }{stderr} // a pipe: the runner must not keep our stderr open
	app.Detach(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	json.NewEncoder(in).Encode(spec) // the runner reports what it cannot read
	if !spec.Attended {
		in.Close()
	}
	p := &runnerProcess{stdin: in, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		cmd.Wait() // the report says more than its error
		if json.Unmarshal(report.Bytes(), &p.exit) != nil {
			p.err = failure.Failed("the runner ended: %v", cmd.ProcessState).WithHint("its run/run.log may say why")
		} else if e := p.exit.Error; e != nil {
			e.Hint = failure.Hint(strings.ReplaceAll(p.exit.Hint, "NAME", string(spec.Agent)))
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

// awaitReady waits until the agent is ready or has failed. It waits at most for promptWithin after the program's start,
// or for quietWithin if the driver knows no prompts, and then returns the agent as started. p is nil if somebody else has
// started the runner.
func (k *call) awaitReady(ctx context.Context, p *runnerProcess) (result, error) {
	r, unready, silence := result{Name: k.name(), State: "ready"}, "started", listenOurs
	if p == nil {
		r.State, unready, silence = "running", "running", listenWithin
	}
	asking, began := 0, time.Now()
	for ctx.Err() == nil {
		var status control.Status
		err := k.s.AskRunner(ctx, r.Name, func(client *control.Client) (err error) {
			status, err = client.Status(ctx)
			return err
		})
		r.PID = status.ChildPID
		asking++
		if status.State != string(reducer.Confirming) && status.State != string(reducer.AwaitingInput) {
			asking = 0
		}
		patience := promptWithin
		if status.Driver == "plain" || status.Driver == agents.None {
			patience = quietWithin
		}
		switch {
		case status.Ready:
			r.tellResumed(status)
			return r, nil
		case asking >= dialogHolds && k.isAsking() || asking >= unloggedFor:
			look := "atm attach " + string(r.Name)
			if status.NoTerminal {
				look = "atm pending"
			}
			return r, failure.Failed("%s is running, but asks something before it is ready: %s", r.Name, status.Detail).WithHint("`%s`", look)
		case r.PID != 0 && asking == 0 && time.Since(status.Started) > patience: // without a child it is about to restart
			r.State, r.Detail = unready, "no prompt yet"
			if status.Driver == agents.None {
				r.Detail = "atm does not know this program, and types nothing in: --driver says which it is, plain for a shell; atm doctor -h"
			}
			r.tellResumed(status)
			return r, nil
		case err != nil && time.Since(began) > silence:
			return r, err
		}
		if p != nil {
			if p.hasEnded(pollEvery) {
				return r, cmp.Or(p.err, k.endedUnready(p.exit))
			}
			continue
		}
		if running, _ := k.s.Team.Running(r.Name); err != nil && !running {
			return r, err
		}
		app.Sleep(ctx, pollEvery)
	}
	return r, ctx.Err()
}

// isAsking reports whether the agent's question is in its log, where atm pending finds it.
func (k *call) isAsking() bool {
	questions, err := presence.Questions(k.s.Team, k.name())
	return err != nil || len(questions) > 0
}

func (k *call) endedUnready(exit runspec.Report) error {
	e := failure.Failed("%s exited with %d before it was ready", k.name(), exit.Code)
	if exit.Loop {
		e = failure.Failed("%s keeps exiting with %d", k.name(), exit.Code)
		e.Exit = max(exit.Code, failure.ExitFailed)
	}
	if tail := letter.OneLine(strings.Join(exit.Tail, " "), 500); tail != "" {
		e.Message += ": " + tail
	}
	return e.WithHint("the recording of its screen: %s", filepath.Join(k.box.Path(), "run", "screen.cast"))
}

// awaitEnd waits until the runner ends, and exits as its program did.
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
	return failure.Exit(p.exit.Code)
}

// runHere is awaitEnd; a signal, or the end of this process, ends the agent.
func (k *call) runHere(ctx context.Context, p *runnerProcess) error {
	ctx, stop := output.UntilSignal(ctx)
	defer stop()
	defer context.AfterFunc(ctx, func() { p.stdin.Close() })()
	k.p.Warn("no terminal here: %s runs until it ends, or this command does; `atm attach %[1]s` joins it, --detach does not wait", k.name())
	err := k.awaitEnd(p)
	if e := p.exit; p.err == nil && !e.Loop && e.Code != 0 {
		k.p.Warn("%s", app.JoinFilled(": ", fmt.Sprintf("%s exited with %d", k.name(), e.Code), letter.OneLine(strings.Join(e.Tail, "\n"), 200)))
	}
	return err
}

// runAttached shows the agent in this terminal. Unless the user detaches, the agent ends with this process.
func (k *call) runAttached(ctx context.Context, p *runnerProcess) error {
	var end control.Ending
	var err error
	isShown := false
	for !isShown && !p.hasEnded(pollEvery) {
		err = k.s.AskRunner(ctx, k.name(), func(client *control.Client) error {
			status, err := client.Status(ctx)
			if isShown = status.ChildPID != 0; isShown {
				end, err = k.showTerminal(ctx, client, false, status.NoTerminal)
			}
			return err
		})
	}
	if e, ok := errors.AsType[*failure.Error](err); ok && e.Silent {
		return err
	}
	if isShown && err == nil && end.Exit == nil {
		json.NewEncoder(p.stdin).Encode(true)
		return k.printEnd(end)
	}
	<-p.ended
	if end.Exit == nil && p.err == nil { // the program ended before this terminal could attach
		fmt.Fprintln(k.p.Out, letter.Reveal(strings.Join(p.exit.Tail, "\n")))
		end.Exit = &control.Exit{Code: p.exit.Code}
	}
	if end.Exit != nil {
		k.printEnd(end)
	}
	return k.awaitEnd(p)
}

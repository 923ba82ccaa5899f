package ptyrun

import (
	"context"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/ptyrun/internal/acp"
	"github.com/agentteammail/atm/ptyrun/internal/inbox"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/ptyrun/internal/speaker"
	"github.com/agentteammail/atm/ptyrun/internal/terminal"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// hasTerminal reports whether the agent's program runs on a terminal: what people see and type, and what only a screen shows,
// is its own.
func (r *runner) hasTerminal() bool { return r.ACP == nil }

// program is one start of the agent's program.
type program struct {
	run.Agent
	started time.Time
	resumed resumption
	prompts []*inbox.Prompt // the first prompt, if it was not to be given because a conversation goes on
}

// startProgram starts the program with a command line that resume has returned.
func (r *runner) startProgram(command []string, resumed resumption) error {
	now := r.Now()
	var a run.Agent
	var err error
	if r.hasTerminal() {
		a, err = r.startTerminal(command)
	} else {
		a, err = r.startSpeaker(command, resumed.id)
	}
	if err != nil {
		return err
	}
	p := &program{Agent: a, started: now, resumed: resumed}
	if r.pid == 0 && resumed.id != "" { // an earlier run has sent the first prompt
		p.prompts = r.inbox.TakePrompts()
	}
	r.notResumed, r.lastDriver = "", ""
	r.prog, r.Agent, r.pid = p, a, p.PID()
	r.viewers.Started()
	r.inbox.ChangeClaim(func() error { return r.Hold.EndSessions(context.Background()) }) // of earlier programs
	spawned := wire.Event{Kind: wire.Spawned}.With("pid", p.PID()).With("started", now.UTC().Format(time.RFC3339Nano)).With("run", r.ID)
	r.Append(spawned, "resumed", resumed.id, "not_resumed", resumed.fresh)
	r.writeRunInfo()
	return nil
}

// startTerminal starts a program on a PTY. It shares no server with other programs: the server would run its hooks and tools in
// the environment of whoever has started it, for another agent.
func (r *runner) startTerminal(argv []string) (*terminal.Terminal, error) {
	argv = r.Driver.Unshared(argv)
	return terminal.Start(r.Run, terminal.Options{
		Command: process.Command{Argv: withArguments(argv, r.Brought.Args), Dir: r.Dir, Env: r.Env, Cols: r.viewers.Size.Cols, Rows: r.viewers.Size.Rows},
		Driver:  r.Driver,
		Output:  r.viewers.Output, UsesPrompt: r.inbox.UsesPrompt,
		Withheld: r.inbox.Withheld,
	})
}

// startSpeaker starts an agent that speaks the Agent Client Protocol, and loads a conversation, unless that is "".
func (r *runner) startSpeaker(command []string, conversation string) (*speaker.Speaker, error) {
	return speaker.Start(r.Run, speaker.Options{
		ACP: acp.Options{
			Command: command, Dir: r.Dir, Env: r.Env, Run: r.ID, Load: conversation,
			Version: r.Version, Session: r.ACP.Session, Rules: r.Rules, Team: r.Box.Store().Dir().Path(),
			Edited: func(path string) {
				if r.Edited != nil {
					r.notify("noting what was edited", func() error { return r.Edited(context.Background(), path) })
				}
			},
		},
		Viewers: r.viewers,
		Began: func(session string) {
			if id := r.prog.resumed.id; id != "" && id != session {
				r.notLoaded()
			}
		},
	})
}

// withArguments adds arguments at the end of a command line, but before what a "--" makes no flags.
func withArguments(argv, more []string) []string {
	end := slices.Index(argv, "--")
	if end < 0 {
		end = len(argv)
	}
	return slices.Insert(slices.Clone(argv), end, more...)
}

// programEnded processes the program's exit, after all that it told. What it has left running is ended beside the loop.
func (r *runner) programEnded() {
	p := r.prog
	r.setExit(p)
	if t := terminal.Of(r.Run); t != nil {
		if e, why := t.HasLast(); e != "" {
			r.inbox.Happened(e, why)
		}
		t.Ended()
	}
	r.viewers.Ended()
	r.prog, r.Agent = nil, nil
	r.inbox.Abandon("the program has ended")
	r.Questions.End()
	r.Recording.Exit(r.exit.Code)
	r.isEnding = true
	isStopped := r.stopping != nil // which ends all processes
	r.Go(func() {
		if !isStopped {
			_, err := p.Stop(context.Background(), r.Timing.Leftovers)
			r.logSurvivors(err)
		}
		r.awaitLastEvents()
		r.Post(func() { r.processesEnded(p) })
	})
}

// awaitLastEvents waits until the follower has seen the last events, before the run is over.
func (r *runner) awaitLastEvents() {
	began := time.Now()
	r.Poll(r.Timing.Logged, func() bool { return r.IsLogged() || time.Since(began) > r.LogPatience() })
}

// processesEnded goes on when a program and all that it started is gone.
func (r *runner) processesEnded(p *program) {
	now := r.Now()
	r.isEnding = false
	r.exit.Stopped = r.stopping != nil
	if r.stopping != nil {
		r.exit.Ended = r.stopping.ended
	}
	open := r.State.Session().Turn
	r.appendExited(p.PID())
	r.appendTurnCutOff(open)
	switch {
	case r.stopping != nil && r.stopping.isRestart:
		r.stopping, r.IsStopping, r.restarts.Next = nil, false, now
	case r.stopping != nil:
		r.isOver = true
	case r.resumeFailed(p):
		r.restarts.Next = now
	default:
		r.planRestart(now, now.Sub(p.started))
	}
}

func (r *runner) setExit(p *program) {
	exit := process.Exit{Code: 137, Signal: "SIGKILL"} // of a program that is stuck in the kernel
	select {
	case <-p.Done():
		exit = p.Exit()
	default:
	}
	r.exit = Exit{Code: exit.Code, Signal: exit.Signal, Stopped: r.stopping != nil, Tail: r.viewers.Tail(10)}
}

func (r *runner) logSurvivors(err error) {
	if err != nil {
		r.Log.Error("ending the processes that the program started", "err", err)
	}
}

func (r *runner) appendExited(pid int) {
	why := ""
	if r.stopping != nil {
		why = r.stopping.reason
	}
	r.Append(wire.Event{Kind: wire.Exited}.With("code", r.exit.Code).With("pid", pid), "signal", r.exit.Signal, "reason", why)
}

// appendTurnCutOff reports the end of a turn that the program's exit cut off, for readers of turn events, unless
// somebody else reports the turns. It agrees with what the reducer makes of exited, and comes after that; there is no
// turn_idle, since the program is not idle.
func (r *runner) appendTurnCutOff(open reducer.Turn) {
	if !open.IsOpen() || open.Transport != wire.SourcePTY || open.Thread != r.ID {
		return
	}
	status := reducer.Failed
	if r.stopping != nil || r.exit.Code == 0 {
		status = reducer.Interrupted
	}
	e := wire.Event{Kind: wire.TurnCompleted, TurnID: open.ID}.With("transport", wire.SourcePTY).With("thread_id", r.ID)
	r.Append(e.With("status", status))
}

package ptyrun

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// program is one start of the agent's program.
type program struct {
	agent
	started time.Time
	resumed resumption
	prompts []*prompt // the first prompt, if it was not to be given because a conversation goes on
}

// startProgram starts the program with a command line that resume has returned. Its own server runs already, unless it is
// nil.
func (r *runner) startProgram(command []string, resumed resumption, server *ownServer) error {
	now := r.now()
	var a agent
	var err error
	if r.hasTerminal() {
		a, err = r.startTerminal(command, server)
	} else {
		a, err = r.startSpeaker(command, resumed.id)
	}
	if err != nil {
		return err
	}
	p := &program{agent: a, started: now, resumed: resumed}
	if r.pid == 0 && resumed.id != "" { // an earlier run has sent the first prompt
		p.prompts, r.mail.prompts = r.mail.prompts, nil
	}
	r.notResumed, r.lastDriver = "", ""
	r.prog, r.pid = p, p.PID()
	if t := r.onTerminal(); t != nil && r.finalScreen != nil {
		// The previous program left modes behind, perhaps the alternate screen.
		fresh := t.repaint(0)
		r.recording.Output(fresh)
		for v := range r.viewers {
			if v.Send(fresh); v.IsBehind() {
				v.Repaint(fresh)
			}
		}
	}
	r.changeClaim(func() error { return r.Hold.EndSessions(context.Background()) }) // of earlier programs
	spawned := wire.Event{Kind: wire.Spawned}.With("pid", p.PID()).With("started", now.UTC().Format(time.RFC3339Nano)).With("run", r.Run)
	r.append(spawned, "resumed", resumed.id, "not_resumed", resumed.fresh)
	r.writeRunInfo()
	return nil
}

// isScript reports whether the command of a run is a script.
func isScript(o Options) bool {
	path, err := process.LookUp(o.Command[0], o.Dir, o.Env)
	if err != nil {
		return false // starting it says why
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.Dir, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, 2)
	n, _ := f.Read(start)
	return string(start[:n]) == "#!"
}

// programEnded processes the program's exit, after all that it told. What it has left running is ended beside the loop.
func (r *runner) programEnded() {
	p := r.prog
	r.setExit(p)
	if t := r.onTerminal(); t != nil {
		t.ended()
		r.finalText = t.leave()
		for v := range r.viewers {
			r.sendStatus(v, t.declared(), t.declared().AtPrompt())
		}
	}
	r.finalScreen = r.drawn(screen.Scrollback)
	r.prog = nil
	r.abandonGiving("the program has ended")
	r.closeQuestion("")
	r.rewriting, r.removing = screen.OutputFilter{}, screen.OutputFilter{}
	r.recording.Exit(r.exit.Code)
	r.isEnding = true
	isStopped := r.stopping != nil // which ends all processes
	r.wg.Go(func() {
		if !isStopped {
			_, err := p.Stop(context.Background(), r.timing.leftovers)
			r.logSurvivors(err)
		}
		r.awaitLastEvents()
		r.post(func() { r.processesEnded(p) })
	})
}

// awaitLastEvents waits until the follower has seen the last events, before the run is over.
func (r *runner) awaitLastEvents() {
	began := time.Now()
	r.poll(r.timing.logged, func() bool { return r.isLogged() || time.Since(began) > r.logPatience() })
}

// logPatience is how long to wait for the last events of a program to be logged: on a busy disk that takes a while, in a
// log that fails it may take for ever.
func (r *runner) logPatience() time.Duration {
	if r.logFails.Load() {
		return min(time.Second, r.timing.logged)
	}
	return r.timing.logged
}

// isLogged reports whether what this run has done is in the log, and has come back from there.
func (r *runner) isLogged() bool { return len(r.unlogged) == 0 }

// processesEnded goes on when a program and all that it started is gone.
func (r *runner) processesEnded(p *program) {
	now := r.now()
	r.isEnding = false
	r.exit.Stopped = r.stopping != nil
	if r.stopping != nil {
		r.exit.Ended = r.stopping.ended
	}
	open := r.state.Session().Turn
	r.appendExited(p.PID())
	r.appendTurnCutOff(open)
	switch {
	case r.stopping != nil && r.stopping.isRestart:
		r.stopping, r.restarts.next = nil, now
	case r.stopping != nil:
		r.isOver = true
	case r.resumeFailed(p):
		r.restarts.next = now
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
	r.exit = Exit{Code: exit.Code, Signal: exit.Signal, Stopped: r.stopping != nil, Tail: r.tail(10)}
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
	r.append(wire.Event{Kind: wire.Exited}.With("code", r.exit.Code).With("pid", pid), "signal", r.exit.Signal, "reason", why)
}

// appendTurnCutOff reports the end of a turn that the program's exit cut off, for readers of turn events, unless
// somebody else reports the turns. It agrees with what the reducer makes of exited, and comes after that; there is no
// turn_idle, since the program is not idle.
func (r *runner) appendTurnCutOff(open reducer.Turn) {
	if !open.IsOpen() || open.Transport != source || open.Thread != r.Run {
		return
	}
	status := reducer.Failed
	if r.stopping != nil || r.exit.Code == 0 {
		status = reducer.Interrupted
	}
	e := wire.Event{Kind: wire.TurnCompleted, TurnID: open.ID}.With("transport", source).With("thread_id", r.Run)
	r.append(e.With("status", status))
}

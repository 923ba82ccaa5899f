package ptyrun

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/process"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

const stopGrace = 2 * time.Second

// planRestart plans a restart after a pause, if the options ask for one and the program does not exit too often.
func (r *runner) planRestart(now time.Time, ran time.Duration) {
	if r.Options.Restart != Always && (r.Options.Restart != OnCrash || r.exit.Code == 0) {
		r.isOver = true
		return
	}
	s := &r.restarts
	if s.Plan(now, ran, r.Timing.Backoff) {
		r.exit.Loop, r.isOver = true, true
		detail := fmt.Sprintf("it exited %d times within a minute", run.LoopAfter)
		if text := strings.TrimSpace(strings.Join(r.exit.Tail, "\n")); text != "" {
			detail += ": " + text[strings.LastIndexByte(text, '\n')+1:]
		}
		r.AppendChange(reducer.Exited, reducer.Error, detail, "")
		return
	}
	r.Append(wire.Event{Kind: wire.Restarting}.With("attempt", s.Count).With("pause_ms", s.Pause.Milliseconds()))
	r.Notify(fmt.Sprintf("%s exited with %d; it restarts in %s", r.Box.Agent(), r.exit.Code, s.Pause))
}

func (r *runner) stepRestart(now time.Time) {
	if r.restarts.Next.IsZero() || r.MustWait(r.restarts.Next, now) {
		return
	}
	// What the next program's hooks report must come behind the end of the one before it: else that would end its session.
	if !r.IsLogged() && r.MustWait(r.restarts.Next.Add(r.LogPatience()), now) {
		return
	}
	r.restarts.Next = time.Time{}
	command, resumed := r.resume()
	if err := r.startProgram(command, resumed); err != nil {
		r.Log.Error("restarting", "err", err)
		r.exit.Code, r.isOver = 127, true
		r.AppendChange(reducer.Starting, reducer.Error, err.Error(), "")
	}
	r.WakeAt(now)
}

// stopping is a stop that is under way.
type stopping struct {
	reason    string
	isRestart bool          // the program is started again afterwards
	ended     []string      // processes that the agent had started and that were ended
	done      chan struct{} // closed when all processes are gone
}

// stop stops the program and everything it started; processesEnded ends the run then, or restarts the program. The mail
// that the program has not begun to work at is unread again: before any signal, in case this runner is killed, and once
// more for what is noted as read while the program ends.
func (r *runner) stop(why string) {
	stopped := time.Now()
	r.stopWith(why, func() { r.inbox.UndoLast(stopped) })
}

// stopWith is stop, with what is done about its mail.
func (r *runner) stopWith(why string, undo func()) {
	if r.stopping != nil {
		r.stopping.isRestart = false // a stop during a restart is a stop
		return
	}
	r.inbox.Abandon("it is being stopped")
	s := &stopping{reason: why, done: make(chan struct{})}
	r.stopping, r.IsStopping = s, true
	if r.isEnding { // processesEnded sees it
		close(s.done)
		return
	}
	if r.prog == nil { // between two programs
		r.restarts.Next, r.exit.Stopped, r.isOver = time.Time{}, true, true
		r.appendExited(r.pid)
		close(s.done)
		return
	}
	c := r.prog
	r.Go(func() {
		undo()
		others, err := c.Stop(context.Background(), stopGrace)
		r.logSurvivors(err)
		undo()
		s.ended = process.Names(others)
		close(s.done)
	})
}

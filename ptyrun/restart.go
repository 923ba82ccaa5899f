package ptyrun

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

type restarts struct {
	next  time.Time     // zero: none is planned
	count int           // of all restarts
	pause time.Duration // before the last one
	exits []time.Time   // within loopWithin

	isStarting bool // the next one starts as soon as its server listens
}

const (
	maxPause   = 8 * time.Second
	loopWithin = time.Minute
	loopAfter  = 5 // exits within that
	stopGrace  = 2 * time.Second
)

// plan plans the next start. isLoop: the program exited too often, whether it crashed or not.
func (s *restarts) plan(now time.Time, ran, firstPause time.Duration) (isLoop bool) {
	s.exits = append(s.exits, now)
	for now.Sub(s.exits[0]) > loopWithin {
		s.exits = s.exits[1:]
	}
	if ran > loopWithin {
		s.pause = 0
	}
	s.pause = min(max(2*s.pause, firstPause), maxPause)
	s.count++
	s.next = now.Add(s.pause)
	return len(s.exits) >= loopAfter
}

// planRestart plans a restart after a pause, if the options ask for one and the program does not exit too often.
func (r *runner) planRestart(now time.Time, ran time.Duration) {
	if r.Options.Restart != Always && (r.Options.Restart != OnCrash || r.exit.Code == 0) {
		r.isOver = true
		return
	}
	s := &r.restarts
	if s.plan(now, ran, r.timing.backoff) {
		r.exit.Loop, r.isOver = true, true
		detail := fmt.Sprintf("it exited %d times within a minute", loopAfter)
		if text := strings.TrimSpace(strings.Join(r.exit.Tail, "\n")); text != "" {
			detail += ": " + text[strings.LastIndexByte(text, '\n')+1:]
		}
		r.appendStateChange(reducer.Exited, reducer.Error, detail, "")
		return
	}
	r.append(wire.Event{Kind: wire.Restarting}.With("attempt", s.count).With("pause_ms", s.pause.Milliseconds()))
	r.notifyViewers(fmt.Sprintf("%s exited with %d; it restarts in %s", r.Box.Agent(), r.exit.Code, s.pause))
}

func (r *runner) stepRestart(now time.Time) {
	if r.restarts.next.IsZero() || r.mustWait(r.restarts.next, now) {
		return
	}
	// What the next program's hooks report must come behind the end of the one before it: else that would end its session.
	if !r.isLogged() && r.mustWait(r.restarts.next.Add(r.logPatience()), now) {
		return
	}
	r.restarts.next, r.restarts.isStarting = time.Time{}, true
	command, resumed := r.resume()
	r.withServer(command, func(server *ownServer, noServer error) {
		r.restarts.isStarting = false
		if noServer != nil {
			r.runsWithoutServer(noServer)
		}
		if err := r.startProgram(command, resumed, server); err != nil {
			r.Log.Error("restarting", "err", err)
			r.exit.Code, r.isOver = 127, true
			r.appendStateChange(reducer.Starting, reducer.Error, err.Error(), "")
		}
	})
	r.wakeAt(now)
}

// stopping is a stop that is under way.
type stopping struct {
	reason    string
	isRestart bool          // the program is started again afterwards
	ended     []string      // processes that the agent had started and that were ended
	done      chan struct{} // closed when all processes are gone
}

// stop stops the program and everything it started; processesEnded ends the run then, or restarts the program.
func (r *runner) stop(why string) {
	if r.stopping != nil {
		r.stopping.isRestart = false // a stop during a restart is a stop
		return
	}
	r.abandonGiving("it is being stopped")
	s := &stopping{reason: why, done: make(chan struct{})}
	r.stopping = s
	if r.isEnding { // processesEnded sees it
		close(s.done)
		return
	}
	if r.prog == nil { // between two programs
		r.restarts.next, r.exit.Stopped, r.isOver = time.Time{}, true, true
		r.appendExited(r.pid)
		close(s.done)
		return
	}
	c := r.prog
	r.wg.Go(func() {
		others, err := c.Stop(context.Background(), stopGrace)
		r.logSurvivors(err)
		s.ended = process.Names(others)
		close(s.done)
	})
}

package ptyrun

import (
	"fmt"
	"time"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/ptyrun/process"
	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/wire"
)

// scrollback is how many lines above the screen are kept.
const scrollback = 500

// program is one start of the agent's program.
type program struct {
	child  *process.Child
	feed   *feed
	done   <-chan struct{} // it has exited
	screen *screen.Screen
	driver *driver.Driver
	out    *typist
	began  time.Time
	flood  bool // it wrote a lot the last time

	sight
}

// start starts the program.
func (r *runner) start() error {
	r.tries.at = time.Time{}
	c, err := process.Start(process.Command{Argv: r.Command, Dir: r.Dir, Env: r.Env, Cols: r.Cols, Rows: r.Rows})
	if err != nil {
		return err
	}
	now := r.Now()
	p := &program{
		child: c, feed: newFeed(), done: c.Done(), screen: screen.New(r.Cols, r.Rows, scrollback),
		driver: r.Driver, began: now, out: newTypist(c),
	}
	p.sight.begin(now)
	r.prog = p
	if s := r.sitting; s != nil {
		s.capture.row, s.capture.shown, s.decided = 0, nil, false
	}
	if r.followed {
		// The one before left modes behind, its alternate screen for one.
		fresh := p.screen.Repaint(0)
		r.record.Output(fresh)
		for v := range r.viewers {
			if v.send(fresh) != nil { // it was behind, and may have caught up while there was nothing to show
				v.to.Picture(fresh)
			}
		}
	}
	r.wg.Go(func() { p.feed.read(c) })
	r.wg.Go(p.out.run)
	e := wire.Event{Kind: "spawned"}.With("pid", c.PID()).With("started", now.UTC().Format(time.RFC3339Nano)).With("run", r.Run)
	r.say(e)
	if err := r.note(); err != nil {
		r.log.Error("writing run.json", "err", err)
	}
	if r.Started != nil {
		r.Started(c.PID())
	}
	return nil
}

// output takes in what the program wrote.
func (r *runner) output() {
	p, _ := r.prog.feed.take()
	r.prog.flood = len(p) >= flooding-1
	if len(p) == 0 {
		return
	}
	r.record.Output(p)
	s := r.prog.screen
	for rest := p; len(rest) > 0; {
		n := r.piece(rest)
		s.Write(rest[:n])
		r.tellScrolledOff(r.Now())
		rest = rest[n:]
	}
	if a := s.Replies(); len(a) > 0 {
		r.prog.out.put(a)
	}
	if s.Lost() {
		r.prog.child.Jiggle() // so that it draws its screen again
	}
	for v := range r.viewers {
		v.send(p)
	}
	r.prog.wrote(r.Now())
}

// gone takes in that the program has exited: first what it wrote last.
func (r *runner) gone() {
	p := r.prog
	for ended := false; !ended; {
		_, ended = p.feed.peek()
		r.output()
		if !ended {
			<-p.feed.more
		}
	}
	var ended []string
	if r.stopping != nil {
		<-r.stopping.gone
		ended = r.stopping.ended
	}
	now := r.Now()
	exit := process.Exit{Code: 137, Signal: "SIGKILL"} // of one that is stuck in the kernel
	select {
	case <-p.done:
		exit = p.child.Exit()
	default:
	}
	if err := p.child.Close(); err != nil {
		r.log.Error("ending what the program started", "err", err)
	}
	p.out.close()
	if t := r.typing; t.returned() && p.driver.Accepted(p.lookAt(), t.text) {
		r.taken(now) // what made it end, perhaps: that must not go in again and again
	}
	r.lastLines(now)
	r.prog, r.followed = nil, true
	r.drop("the program has ended")
	r.closeQuestion("")
	r.turnOurs, r.cut, r.undone = false, false, nil
	r.exit = Exit{Code: exit.Code, Signal: exit.Signal, Asked: r.stopping != nil, Tail: p.screen.Tail(10), Ended: append(r.exit.Ended, ended...)}
	r.ending(p.screen)
	r.record.Exit(exit.Code)

	e := wire.Event{Kind: "exited"}.With("code", exit.Code).With("pid", p.child.PID())
	if exit.Signal != "" {
		e = e.With("signal", exit.Signal)
	}
	if r.stopping != nil {
		e = e.With("reason", r.stopping.why)
	}
	r.say(e)
	crash := exit.Code != 0 && r.stopping == nil
	switch {
	case r.again:
		r.again, r.stopping = false, nil
		r.tries.at = now
	case r.stopping != nil:
		r.ended = true
	default:
		pause, again, loop := r.tries.ended(now, crash, now.Sub(p.began))
		switch {
		case again:
			r.say(wire.Event{Kind: "restarting"}.With("attempt", r.tries.count).With("pause_ms", pause.Milliseconds()))
			r.tell(fmt.Sprintf("%s ended with %d; it is started again in %s", r.Box.Agent(), exit.Code, pause))
		case loop:
			r.exit.Loop, r.ended = true, true
			r.say(wire.Event{Kind: "state_change"}.With("new", "error").With("detail", loopDetail(r.exit)))
		default:
			r.ended = true
		}
	}
	if r.ended && r.stopping != nil {
		r.stopping.done(r.exit)
	}
}

// failed takes in that the program cannot be started again.
func (r *runner) failed(err error) {
	r.log.Error("starting again", "err", err)
	r.exit.Code, r.ended = 127, true
	r.say(wire.Event{Kind: "state_change"}.With("new", "error").With("detail", err.Error()))
	if r.stopping != nil {
		r.stopping.done(r.exit)
	}
}

func loopDetail(e Exit) string {
	detail := fmt.Sprintf("%d crashes within a minute", loopAfter)
	if e.Code == 0 {
		detail = fmt.Sprintf("it ended %d times within a minute", loopAfter)
	}
	for i := len(e.Tail) - 1; i >= 0; i-- {
		if e.Tail[i] != "" {
			return detail + ": " + e.Tail[i]
		}
	}
	return detail
}

func names(ps []process.Info) []string {
	var out []string
	for _, p := range ps {
		out = append(out, fmt.Sprintf("%s (%d)", p.Name, p.PID))
	}
	return out
}

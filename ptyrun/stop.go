package ptyrun

import (
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/ptyrun/driver"
)

// stopping is a stop that is under way.
type stopping struct {
	why     string
	waiters []chan<- reply
	ended   []string      // what the agent had started, and had to be ended
	gone    chan struct{} // closed when everything has
}

// done answers who asked for it.
func (s *stopping) done(e Exit) {
	detail := fmt.Sprintf("exit %d", e.Code)
	if e.Signal != "" {
		detail = e.Signal
	}
	for _, w := range s.waiters {
		w <- reply{out: control.Outcome{Done: "stopped", Detail: detail, Ended: e.Ended}}
	}
	s.waiters = nil
}

// stop ends the program and all that it started. to hears when that is so.
func (r *runner) stop(why string, grace time.Duration, to chan<- reply) {
	if s := r.stopping; s != nil {
		r.again = false // who stops it means that it stays so
		if to != nil {
			s.waiters = append(s.waiters, to)
		}
		return
	}
	s := &stopping{why: why, gone: make(chan struct{})}
	if to != nil {
		s.waiters = append(s.waiters, to)
	}
	r.drop("it is being stopped")
	r.stopping = s
	r.log.Info("stopping", "why", why)
	if r.prog == nil {
		r.tries.at = time.Time{}
		r.exit.Asked, r.ended = true, true
		close(s.gone)
		s.done(r.exit)
		return
	}
	c := r.prog.child
	r.wg.Go(func() {
		e := c.Stop(r.ctx, grace)
		s.ended = append(names(e.Others), names(e.Left)...)
		close(s.gone)
	})
}

// interrupt ends the turn by the driver's own keys, unless the program asks
// something: there the key would be an answer.
func (r *runner) interrupt(urgent bool) error {
	p := r.prog
	switch {
	case p == nil:
		return errors.New("its program does not run")
	case r.question != nil || p.reading.Dialog != nil:
		return errors.New("it asks something: answer that (atm pending), or reject it")
	case r.typing != nil && r.typing.step >= writing && r.typing.step < taking:
		return errors.New("a message is being typed in; try again in a moment")
	}
	r.cut = busy(p.reading.Activity)
	if r.cut && r.turnOurs {
		r.undone = &undone{text: r.turnText, urgent: urgent, at: r.Now()}
	}
	all := p.driver.InterruptKeys()
	r.wg.Go(func() {
		for i, k := range all {
			if i > 0 {
				select {
				case <-time.After(driver.InterruptPause):
				case <-p.done:
					return
				}
			}
			r.post(func() {
				if r.prog != p {
					return
				}
				r.freshen(r.Now())
				if i == 0 || p.reading.Dialog == nil { // there it would be an answer
					p.out.put(k)
				}
			})
		}
	})
	return nil
}

package ptyrun

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

const (
	turnBeginTimeout = 10 * time.Second // for a turn to show that it has begun
	turnEndTimeout   = 15 * time.Second // for an interrupted turn to end: a busy machine may take five and more
	personTimeout    = 10 * time.Minute // for urgent mail to wait for a person's draft
)

// interrupter is who ends a turn.
type interrupter string

const (
	byPerson interrupter = "a person" // or a script, through the socket
	byMail   interrupter = "urgent mail"
)

// interruption is what an interrupt ends.
type interruption struct {
	prog     *program
	turn     string
	activity reducer.Activity
	undone   <-chan error // nil: the turn's messages stay read; see undoTurn
}

func (r *runner) Interrupt(context.Context) (control.Outcome, error) {
	return r.interruptTurn(byPerson)
}

// interruptTurn interrupts the agent, and returns when the log says that the turn is over. While the agent asks
// something that an interrupt would answer, nothing is pressed. It runs beside the loop.
func (r *runner) interruptTurn(by interrupter) (out control.Outcome, err error) {
	r.awaitTurn()
	if by == byMail && !r.awaitPerson() {
		return out, nil
	}
	cut, err := inLoop(r, func() (*interruption, error) { return r.beginInterruption(by) })
	if err != nil {
		return out, err
	}
	if cut == nil {
		return control.Outcome{Done: "idle", Detail: "nothing to interrupt"}, nil
	}
	out = control.Outcome{Done: "interrupted", Detail: string(cut.activity)}
	if cut.undone != nil { // before any key, so that they are unread if this runner is killed
		if err := <-cut.undone; err != nil {
			return out, err
		}
	}
	r.pressInterrupt(cut.prog, by)
	isOver := r.poll(turnEndTimeout, func() bool {
		return r.prog == nil || !r.state.Session().Activity.IsWork() && r.question == nil || r.state.Session().Turn.ID != cut.turn
	})
	if !isOver && r.ctx.Err() == nil { // else the key has ended the program, and with it this runner
		return out, errors.New("it was told to stop but goes on")
	}
	r.awaitLogged(turnEndTimeout)
	return out, nil
}

// awaitLogged waits until what has been reported up to now is in the log, for whoever looks there next.
func (r *runner) awaitLogged(within time.Duration) {
	logged := make(chan struct{})
	r.events.do(func() { close(logged) })
	select {
	case <-logged:
	case <-r.ctx.Done():
	case <-time.After(within):
	}
}

// awaitTurn waits until a turn shows that it has begun, because before that the interrupt key does nothing. The caller
// may know of the turn from the log.
func (r *runner) awaitTurn() {
	r.poll(turnBeginTimeout, func() bool {
		if r.prog == nil {
			return true
		}
		s := r.prog.state()
		isBusy := s.isOurs || r.state.Session().Word() == reducer.WordBusy
		return s.activity != reducer.Idle || !isBusy
	})
}

// awaitPerson waits until nobody types and no draft of a person is left, which would block the urgent mail. It returns
// false if the turn ended first.
func (r *runner) awaitPerson() (isFree bool) {
	hasWaited := false
	r.poll(personTimeout, func() bool {
		if r.prog == nil {
			isFree = true
			return true
		}
		r.prog.refresh()
		s := r.prog.state()
		hasDraft := s.hasDraft && !r.lastKey.IsZero()
		isFree = !hasDraft && r.now().Sub(r.lastKey) >= r.timing.personQuiet
		isOver := hasWaited && !isFree && !s.activity.IsWork()
		hasWaited = true
		return isFree || isOver
	})
	return isFree
}

// beginInterruption checks that the key may be pressed. Nil: there is nothing to interrupt.
func (r *runner) beginInterruption(by interrupter) (*interruption, error) {
	p, g := r.prog, r.mail.giving
	if p == nil {
		return nil, errNotRunning
	}
	p.refresh()
	activity := p.state().activity
	switch {
	case by == byPerson && hasEndedTurn(activity) && !(g != nil && g.way == way(p) && g.state == delivery.Sent), by == byMail && r.gate(r.now()) == control.GateUnknown:
		return nil, nil
	case r.keyWouldAnswer(by):
		return nil, refused("the key would answer its question: no key was pressed", control.Try{Op: "answer", Deny: true})
	case g.isBeingTyped():
		return nil, errBeingTyped
	}
	cut := &interruption{prog: p, turn: r.state.Session().Turn.ID, activity: activity}
	if t := r.onTerminal(); t != nil && t.beginInterrupt() && by == byMail {
		cut.undone = r.undoTurn()
	}
	return cut, nil
}

// keyWouldAnswer reports whether an interrupt would answer what the agent asks. (One by urgent mail must not even cancel
// it.)
func (r *runner) keyWouldAnswer(by interrupter) bool {
	s := r.prog.state()
	return (r.question != nil || s.isAsking) && !(s.cancels && by == byPerson)
}

// pressInterrupt ends a turn, unless the program asks something by then.
func (r *runner) pressInterrupt(p *program, by interrupter) {
	for step, isMore := 0, true; isMore; step++ {
		if step > 0 {
			time.Sleep(driver.InterruptPause)
		}
		isCalled := r.call(func() {
			isMore = false
			if r.prog != p {
				return
			}
			if p.refresh(); !r.keyWouldAnswer(by) {
				isMore = p.interrupt(step)
			}
		})
		if !isCalled {
			return
		}
	}
}

// undoTurn makes the messages that began the turn unread: they are typed again after the urgent mail that interrupts
// it. The channel gets the error, or nil, when that is done.
func (r *runner) undoTurn() <-chan error {
	g, done := cmp.Or(r.mail.last, &giving{}), make(chan error, 1)
	if p := g.prompt; p != nil {
		p.isUndone = true
		r.mail.prompts = append(r.mail.prompts, p)
	}
	r.mail.last = nil    // undone once
	r.claims.do(func() { // after the job that marks them as read
		var failed error
		for _, id := range g.ids {
			if !g.isPointer {
				failed = errors.Join(failed, r.Box.MarkUndone(context.Background(), id))
			}
		}
		r.appendForAll(wire.Event{Kind: wire.EventUnread}, g.ids)
		done <- failed
	})
	return done
}

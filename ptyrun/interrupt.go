package ptyrun

import (
	"context"
	"errors"
	"time"

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

func (r *runner) Interrupt(context.Context) (control.Outcome, error) { return r.interrupt(byPerson) }

// interrupt presses the driver's interrupt keys, and returns when the log says that the turn is over. If the program
// asks something nothing is pressed, because the key would answer it. It runs beside the loop.
func (r *runner) interrupt(by interrupter) (out control.Outcome, err error) {
	if err := r.awaitTurn(); err != nil {
		return out, err
	}
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
		return r.prog == nil || !r.prog.reported.IsWork() && r.question == nil || r.state.Turn().ID != cut.turn
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
func (r *runner) awaitTurn() error {
	logged, err := r.Box.Log().LastSeq()
	if err != nil {
		return err
	}
	r.poll(turnBeginTimeout, func() bool {
		isBusy := r.turn.isOurs || r.state.Seq < logged || r.state.Turn().Word() == reducer.WordBusy
		return r.prog == nil || r.prog.reading.Activity != reducer.Idle || !isBusy
	})
	return nil
}

// awaitPerson waits until nobody types and no draft of a person is left, which would block the urgent mail. It returns
// false if the turn ended first.
func (r *runner) awaitPerson() (isFree bool) {
	hasWaited := false
	r.poll(personTimeout, func() bool {
		r.refresh(r.now())
		p := r.prog
		hasDraft := p != nil && p.reading.Draft != "" && !r.lastKey.IsZero()
		isFree = p == nil || !hasDraft && r.now().Sub(r.lastKey) >= r.timing.personQuiet
		isOver := hasWaited && !isFree && !p.reading.Activity.IsWork()
		hasWaited = true
		return isFree || isOver
	})
	return isFree
}

// beginInterruption checks that the key may be pressed. Nil: there is nothing to interrupt.
func (r *runner) beginInterruption(by interrupter) (*interruption, error) {
	r.refresh(r.now())
	p := r.prog
	t := r.mail.typing
	switch {
	case p == nil:
		return nil, errNotRunning
	case by == byPerson && hasEndedTurn(p.reading.Activity) && t == nil:
		return nil, nil
	case r.keyWouldAnswer(by):
		return nil, refused("the key would answer its question: no key was pressed",
			"atm pending shows the question; atm reject "+string(r.Box.Agent()))
	case t.hasBegun() && !t.isSubmitted():
		return nil, errBeingTyped
	}
	cut := &interruption{prog: p, turn: r.state.Turn().ID, activity: p.reading.Activity}
	r.turn.isInterrupted = cut.activity.IsWork()
	if r.turn.isInterrupted && r.turn.isOurs {
		r.leftover = &leftover{text: r.turn.text, since: r.now()}
		isForgotten := p.driver.ForgetsInterruptedPrompt && !r.turn.hasActed && r.response() == ""
		if by == byMail && isForgotten {
			cut.undone = r.undoTurn()
		}
	}
	return cut, nil
}

// keyWouldAnswer reports whether the interrupt key would answer a question. (Cancelling the turn of an ACP agent
// cancels the permission that it asks for; only urgent mail must not do that.)
func (r *runner) keyWouldAnswer(by interrupter) bool {
	d := r.prog.reading.Dialog
	if d == nil && r.question != nil {
		d = &r.question.Dialog
	}
	if d == nil {
		return r.prog.asks()
	}
	isCancelled := r.prog.driver.LogsOwnEvents && by == byPerson
	return !(isCancelled && d.Kind == "permission")
}

// pressInterrupt presses the keys that end a turn, unless the program asks something by then.
func (r *runner) pressInterrupt(p *program, by interrupter) {
	for i, key := range p.driver.InterruptKeys() {
		if i > 0 {
			time.Sleep(driver.InterruptPause)
		}
		r.post(func() {
			r.refresh(r.now())
			if r.prog == p && !r.keyWouldAnswer(by) {
				p.sendKeys(key)
			}
		})
	}
}

// undoTurn makes the messages that began the turn unread: they are typed again after the urgent mail that interrupts
// it. The channel gets the error, or nil, when that is done.
func (r *runner) undoTurn() <-chan error {
	ids, hasPointer, done := r.turn.ids, r.turn.hasPointer, make(chan error, 1)
	if len(ids) == 0 {
		r.mail.prompt, r.mail.isPromptUndone = r.Prompt, true
	}
	r.claims.do(func() { // after the job that marks them as read
		var failed error
		for _, id := range ids {
			if !hasPointer {
				failed = errors.Join(failed, r.Box.MarkUndone(context.Background(), id))
			}
		}
		r.appendForAll(wire.Event{Kind: wire.EventUnread}, ids)
		done <- failed
	})
	return done
}

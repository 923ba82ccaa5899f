package ptyrun

import (
	"context"
	"errors"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/ptyrun/internal/terminal"
	"github.com/agentteammail/atm/reducer"
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
	undone   <-chan error // nil: the turn's messages stay read; see Inbox.UndoTurn
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
	cut, err := r.beginWhenClear(by)
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
	isOver := r.Poll(turnEndTimeout, func() bool {
		return r.prog == nil || !r.State.Session().Activity.IsWork() && r.Questions.Asked() == nil || r.State.Session().Turn.ID != cut.turn
	})
	if !isOver && r.Context().Err() == nil { // else the key has ended the program, and with it this runner
		return out, errors.New("it was told to stop but goes on")
	}
	r.AwaitLogged(turnEndTimeout)
	return out, nil
}

// awaitTurn waits until a turn shows that it has begun, because before that the interrupt key does nothing. The caller
// may know of the turn from the log.
func (r *runner) awaitTurn() {
	r.Poll(turnBeginTimeout, func() bool {
		if r.prog == nil {
			return true
		}
		s := r.prog.State()
		isBusy := s.IsOurs || r.State.Session().Word() == reducer.WordBusy
		return s.Activity != reducer.Idle || !isBusy
	})
}

// awaitPerson waits until nobody types and no draft of a person is left, which would block the urgent mail. It returns
// false if the turn ended first.
func (r *runner) awaitPerson() (isFree bool) {
	hasWaited := false
	r.Poll(personTimeout, func() bool {
		if r.prog == nil {
			isFree = true
			return true
		}
		r.prog.Refresh()
		s := r.prog.State()
		hasDraft := s.HasDraft && !r.LastKey.IsZero()
		isFree = !hasDraft && r.Now().Sub(r.LastKey) >= r.Timing.PersonQuiet
		isOver := hasWaited && !isFree && !s.Activity.IsWork()
		hasWaited = true
		return isFree || isOver
	})
	return isFree
}

// beginWhenClear is beginInterruption, again and again while the screen shows no turn although the agent is in one: it may
// be half drawn.
func (r *runner) beginWhenClear(by interrupter) (cut *interruption, err error) {
	err = loop.ErrOver
	r.Poll(turnBeginTimeout, func() bool {
		cut, err = r.beginInterruption(by)
		isBeingTyped := by == byMail && errors.Is(err, run.ErrBeingTyped)
		return !isBeingTyped && (cut != nil || err != nil || r.State.Session().Word() != reducer.WordBusy)
	})
	return cut, err
}

// beginInterruption checks that the key may be pressed. Nil: there is nothing to interrupt.
func (r *runner) beginInterruption(by interrupter) (*interruption, error) {
	p, g := r.prog, r.inbox.Given()
	if p == nil {
		return nil, run.ErrNotRunning
	}
	p.Refresh()
	activity := p.State().Activity
	switch {
	case by == byPerson && run.HasEndedTurn(activity) && !r.inbox.IsSent(), by == byMail && r.inbox.Gate(r.Now()) == control.GateUnknown:
		return nil, nil
	case r.keyWouldAnswer(by):
		try := control.Try{Op: "answer", Deny: true}
		if q := r.Questions.Asked(); q != nil && q.IsTyped() {
			try = run.TryAttach
		}
		return nil, control.Refused("the key would answer its question: no key was pressed", try)
	case g != nil && g.IsBeingTyped():
		return nil, run.ErrBeingTyped
	}
	cut := &interruption{prog: p, turn: r.State.Session().Turn.ID, activity: activity}
	if t := terminal.Of(r.Run); t != nil && t.BeginInterrupt() && by == byMail {
		cut.undone = r.inbox.UndoTurn()
	}
	return cut, nil
}

// keyWouldAnswer reports whether an interrupt would answer what the agent asks. (One by urgent mail must not even cancel
// it.)
func (r *runner) keyWouldAnswer(by interrupter) bool {
	s := r.prog.State()
	return (r.Questions.Asked() != nil || s.IsAsking) && !(s.Cancels && by == byPerson)
}

// pressInterrupt ends a turn, unless the program asks something by then.
func (r *runner) pressInterrupt(p *program, by interrupter) {
	for step, isMore := 0, true; isMore; step++ {
		if step > 0 {
			time.Sleep(driver.InterruptPause)
		}
		isCalled := r.Call(func() {
			isMore = false
			if r.prog != p {
				return
			}
			if p.Refresh(); !r.keyWouldAnswer(by) {
				isMore = p.Interrupt(step)
			}
		})
		if !isCalled {
			return
		}
	}
}

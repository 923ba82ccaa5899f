package ptyrun

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// turn is the turn as far as only the screen tells of it.
type turn struct {
	id            string    // ours; "" while the program's hooks tell
	text          string    // with which it began, where that was ours
	ids           []wire.ID // of the messages in that; none: it was the first prompt
	startRow      uint64    // how far the screen had scrolled
	isOurs        bool      // a text of ours began it, and its end has not been told
	isInterrupted bool      // we have interrupted it
	hasActed      bool      // it has shown more than that it thinks
	lastAnswer    string    // told last
}

// hasHooks reports whether the program's own hooks tell of its turns. (opencode's begin when its first
// session does, not with the program.)
func (r *runner) hasHooks() bool {
	return r.state.Run != nil && (r.state.Run.Sessions > 0 || r.state.Turn().HasSessionStart)
}

// beginTurn takes in that a text of ours was taken, and is the turn's id where it is known.
func (r *runner) beginTurn(text string, now time.Time) (id string) {
	p, previous := r.prog, r.prog.reported
	p.reported, p.reportedDetail, p.readingSince, p.hasWorked = reducer.Thinking, "", now, showsWork(p.reading)
	if p.reading.Prompt {
		p.promptSince = now
	}
	r.turn.id, r.turn.isOurs, r.turn.text, r.turn.hasActed = "", true, text, false
	if !r.hasHooks() {
		r.appendTurnStarted(text)
		r.appendStateChange(previous, reducer.Thinking, "")
	} else if turn := r.state.Turn(); turn.Status == reducer.TurnBusy { // Codex shows a message before its hook has named the turn
		return turn.ID
	}
	return r.turn.id
}

func (r *runner) appendTurnStarted(prompt string) {
	r.turn.id = string(wire.NewID())
	r.appendEvent(r.turnEvent(wire.TurnStarted, r.turn.id), "prompt", wire.Clip(prompt, maxResponse))
}

// turnEvent is an event about a turn that only the screen tells of. Its thread is the run.
func (r *runner) turnEvent(kind, turn string) wire.Event {
	return wire.Event{Kind: kind, TurnID: turn}.With("transport", "pty").With("thread_id", r.Run)
}

// endTurn says that the turn is over, where only the screen tells, with what was answered in it.
func (r *runner) endTurn(rd driver.Reading, previous, shown reducer.Activity) {
	p, t := r.prog, &r.turn
	isTurn := t.isOurs || t.id != "" || r.state.Turn().Status == reducer.TurnBusy
	if isTurn && !r.hasHooks() && previous != reducer.Starting && p.isReady {
		r.appendTurnEnded(rd, shown)
	}
	t.id, t.isOurs, t.isInterrupted, p.hasWorked = "", false, false, false
}

func (r *runner) appendTurnEnded(rd driver.Reading, shown reducer.Activity) {
	t, id, text := &r.turn, cmp.Or(r.turn.id, r.state.Turn().ID), r.response()
	status, failure := reducer.Completed, ""
	switch {
	case t.isInterrupted && text == t.lastAnswer: // of the turn before
		status, text = reducer.Interrupted, ""
	case t.isInterrupted:
		status = reducer.Interrupted
	case rd.Activity == reducer.Error:
		status, failure = reducer.Failed, rd.Detail
	}
	t.lastAnswer = cmp.Or(text, t.lastAnswer)
	r.appendEvent(r.turnEvent(wire.TurnCompleted, id).With("status", status), "error", failure, "response", text)
	if shown == reducer.Idle {
		r.appendEvent(r.turnEvent(wire.TurnIdle, id))
	}
}

// sayTurnCutOff says that the open turn is over with its program, for those who follow turns alone. It says what the
// reducer makes of exited, and comes behind that, without a turn_idle: nobody is to take the program for idle.
func (r *runner) appendTurnCutOff(p *program) {
	e, shown := r.turnEvent(wire.TurnCompleted, r.turn.id), r.state.Turn()
	switch {
	case p.driver.Tells && r.stopping != nil && shown.IsOpen(): // it tells of every other end
		e.TurnID, e.Session = shown.ID, shown.Session
		e = e.With("transport", shown.Transport).With("thread_id", shown.Thread)
	case r.turn.id == "" || r.hasHooks():
		return
	}
	status := reducer.Failed
	if r.stopping != nil || r.exit.Code == 0 {
		status = reducer.Interrupted
	}
	r.appendEvent(e.With("status", status))
}

const maxResponse = 64 << 10

func (r *runner) response() string {
	p := r.prog
	_, rows := p.screen.Size()
	scrolled := p.screen.Scrolled() - min(r.turn.startRow, p.screen.Scrolled())
	lines := p.screen.Tail(rows + int(min(scrolled, scrollback)))
	return driver.ClipResponse(p.driver.Response(lines, r.turn.text, scrolled > scrollback), maxResponse)
}

// takeBackTurn makes what the turn was begun with unread again: it comes once more, behind the urgent mail
// for which the turn is undone. It runs beside the loop.
func (r *runner) undoTurn(ctx context.Context) error {
	done, err := inLoop(r, func() (<-chan error, error) {
		ids, done := r.turn.ids, make(chan error, 1)
		if len(ids) == 0 {
			r.mail.isPrompted, r.mail.isPromptUndone = false, true
		}
		r.claims.do(func() { // behind what marks them as read
			var errs []error
			for _, id := range ids {
				if r.Inject != Pointer {
					errs = append(errs, r.Box.MarkUndone(ctx, id))
				}
			}
			r.post(func() { r.appendForAll(wire.Event{Kind: wire.EventAgain}, ids) })
			done <- errors.Join(errs...)
		})
		return done, nil
	})
	if err == nil {
		err = <-done
	}
	return err
}

const (
	turnBeginTimeout = 5 * time.Second // a turn that was begun may take so long to show
	turnEndTimeout   = 5 * time.Second // and one that was interrupted

	personTimeout = 10 * time.Minute // so long urgent mail waits for a person's draft to go
)

// interrupt ends the turn by the driver's own keys, and returns when it is told that it is over. Where the
// program asks something nothing is pressed: the key would be an answer. It runs beside the loop.
func (r *runner) interrupt(ctx context.Context, isUrgent bool) (control.Outcome, error) {
	// Before a turn that has just begun shows the key would do nothing; who asks may have seen it in the log.
	logged, err := r.Box.Log().LastSeq()
	if err != nil {
		return control.Outcome{}, err
	}
	_, err = r.poll(ctx, turnBeginTimeout, func() bool {
		isBusy := r.turn.isOurs || r.state.Seq < logged || r.state.Turn().Word() == reducer.WordBusy
		return r.prog == nil || r.prog.reading.Activity != reducer.Idle || !isBusy
	})
	if err != nil {
		return control.Outcome{}, err
	}
	if isUrgent {
		if isFree, err := r.awaitPerson(ctx); err != nil || !isFree {
			return control.Outcome{Done: "idle", Detail: "a person typed until its turn was over"}, err
		}
	}
	cut, err := inLoop(r, func() (*interruption, error) { return r.beginInterruption(isUrgent) })
	if err != nil {
		return control.Outcome{}, err
	}
	if cut == nil {
		return control.Outcome{Done: "idle", Detail: "nothing to interrupt"}, nil
	}
	out := control.Outcome{Done: "interrupted", Detail: string(cut.activity)}
	if cut.isUndone { // before any key: killed from here on, they lie unread
		if err := r.undoTurn(ctx); err != nil {
			return out, err
		}
	}
	r.pressInterrupt(cut.prog, isUrgent)
	isOver, err := r.poll(ctx, turnEndTimeout, func() bool {
		return r.prog == nil || !isWork(r.prog.reported) && r.question == nil || r.state.Turn().ID != cut.turn
	})
	if err == nil && !isOver {
		err = errors.New("it was asked to stop, and goes on")
	}
	return out, err
}

// pressInterrupt presses the keys that end a turn, as long as the program does not ask something by then.
func (r *runner) pressInterrupt(p *program, isUrgent bool) {
	for i, key := range p.driver.InterruptKeys() {
		if i > 0 {
			time.Sleep(driver.InterruptPause)
		}
		r.post(func() {
			r.refresh(r.Now())
			if r.prog == p && !r.keyWouldAnswer(isUrgent) {
				p.sendKeys(key)
			}
		})
	}
}

// awaitPerson returns when nobody types, and what a person has typed is gone from the box: it would keep out the urgent
// mail for which the turn is broken off. False: the turn was over before.
func (r *runner) awaitPerson(ctx context.Context) (isFree bool, err error) {
	hasWaited := false
	_, err = r.poll(ctx, personTimeout, func() bool {
		now := r.Now()
		r.refresh(now)
		p := r.prog
		hasDraft := p != nil && p.reading.Draft != "" && !r.lastKey.IsZero()
		if isFree = p == nil || !hasDraft && !r.mustWait(r.lastKey.Add(r.Timing.PersonQuiet), now); isFree {
			return true
		}
		isOver := hasWaited && !isWork(p.reading.Activity)
		hasWaited = true
		return isOver
	})
	return isFree, err
}

// interruption is of what a program was doing.
type interruption struct {
	prog     *program
	turn     string
	activity reducer.Activity
	isUndone bool // the program forgets the turn
}

// beginInterruption looks whether the key may be pressed. Nil: there is nothing to interrupt.
func (r *runner) beginInterruption(isUrgent bool) (*interruption, error) {
	r.refresh(r.Now())
	p := r.prog
	switch t := r.mail.typing; {
	case p == nil:
		return nil, errNotRunning
	case !isUrgent && p.reading.Activity == reducer.Idle && t == nil:
		return nil, nil
	case r.keyWouldAnswer(isUrgent):
		return nil, refused("it asks something, which the key would answer: nothing was pressed",
			"atm pending says what; atm reject "+string(r.Box.Agent()))
	case t.hasBegun() && !t.isSubmitted():
		return nil, errBeingTyped
	}
	cut := &interruption{prog: p, turn: r.state.Turn().ID, activity: p.reading.Activity}
	r.turn.isInterrupted = isWork(cut.activity)
	if r.turn.isInterrupted && r.turn.isOurs {
		r.restored = &restoredDraft{text: r.turn.text, since: r.Now()}
		cut.isUndone = isUrgent && p.driver.Undoes && !r.turn.hasActed && r.response() == ""
	}
	return cut, nil
}

// keyAnswers reports whether something is asked that the key which interrupts would answer. An ACP agent's turn is
// cancelled together with the permission that it asks for, which urgent mail does not do.
func (r *runner) keyWouldAnswer(isUrgent bool) bool {
	d := r.prog.reading.Dialog
	if d == nil && r.question != nil {
		d = &r.question.Dialog
	}
	isCancelled := r.prog.driver.Tells && !isUrgent
	return d != nil && !(isCancelled && d.Kind == "permission")
}

// restoredDraft is a text of ours that may come up in the draft again. Claude Code puts the prompt of a turn
// that is interrupted before its first word back into its box, where it would keep all mail out.
type restoredDraft struct {
	text          string
	since         time.Time // of the interrupt
	clearedAt     time.Time // when it was last taken out of the box
	clears        int
	silentVersion uint64 // the version of a screen that shows nothing of our last key: its program may ask by the time it reads
	isFailed      bool   // typing it in has failed: it began no turn
}

// maxClears bounds how often a box is cleared: a long text comes in sight part by part.
const maxClears = 50

// stepRestored clears the box of a text of ours that was put back. What a person has touched since is theirs.
func (r *runner) stepRestored(now time.Time) {
	d, p := r.restored, r.prog
	if d == nil || r.mail.typing != nil {
		return
	}
	rd := p.reading
	switch {
	case r.lastKey.After(d.since) || d.clears == maxClears:
		r.restored = nil
	case rd.Activity != reducer.Idle || !rd.HasDraft || r.question != nil || !isPartOf(rd.Draft, d.text):
	case d.silentVersion == p.screen.Version():
	case r.mustWait(later(p.outputAt.Add(r.Timing.Quiet), d.clearedAt.Add(r.Timing.Idle)), now):
	default:
		p.sendKeys(p.driver.ClearDraft(rd.Draft)...)
		d.clearedAt = now
		d.clears++
		r.wakeAt(now.Add(r.Timing.Idle))
	}
}

// hasLeftover reports whether a text that was not taken stands in the box, or is about to when the program reads it.
func (r *runner) hasLeftover() bool {
	d, p := r.restored, r.prog
	if d == nil || !d.isFailed {
		return false
	}
	return isPartOf(p.reading.Draft, d.text) || r.isTextUnread()
}

// isUnread reports whether the program has shown nothing since a text was typed that was not taken: it may be stopped,
// and read it later. After a while it has swallowed the text.
func (r *runner) isTextUnread() bool {
	d, p := r.restored, r.prog
	isSilent := d != nil && d.isFailed && !p.driver.Plain && d.silentVersion == p.screen.Version()
	return isSilent && r.mustWait(d.since.Add(retryLast), r.Now())
}

// isPartOf reports whether a draft is a text, or what of it is in sight, or stands for it, and nothing more.
func isPartOf(draft, text string) bool {
	d := driver.Solid(draft)
	return d != "" && strings.Contains(driver.Solid(text), d) || strings.HasPrefix(draft, "[Pasted ") && strings.HasSuffix(draft, "]")
}

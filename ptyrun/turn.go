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

// turn is what the runner itself knows of the current turn.
type turn struct {
	id            string    // the runner's own; "" if hooks report the turn
	text          string    // that began it; "" if a person's did
	ids           []wire.ID // of the messages in text; none: it was the first prompt
	startRow      uint64    // rows that had scrolled when it began
	isOurs        bool      // text began it, and its end has not been reported
	isInterrupted bool      // by us
	hasActed      bool      // it has shown more than thinking
	lastAnswer    string    // the last one reported; kept from turn to turn
}

// hasHooks reports whether the program's own hooks report its turns. (opencode's start with its first session.)
func (r *runner) hasHooks() bool {
	return r.state.Run != nil && (r.state.Run.Sessions > 0 || r.state.Turn().HasSessionStart)
}

// beginTurn reports a turn that begins with a text of ours, and returns its id if that is known.
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
	} else if turn := r.state.Turn(); turn.Status == reducer.TurnBusy { // Codex accepts a text before its hook names the turn
		return turn.ID
	}
	return r.turn.id
}

func (r *runner) appendTurnStarted(prompt string) {
	r.turn.id = string(wire.NewID())
	r.appendEvent(r.turnEvent(wire.TurnStarted, r.turn.id), "prompt", wire.Clip(prompt, maxResponse))
}

// turnEvent returns an event of a turn that only the screen shows. Its thread is the run.
func (r *runner) turnEvent(kind, turn string) wire.Event {
	return wire.Event{Kind: kind, TurnID: turn}.With("transport", "pty").With("thread_id", r.Run)
}

// endTurn reports the end of a turn that only the screen shows, with its answer.
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
	case t.isInterrupted && text == t.lastAnswer: // the previous turn's
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

// appendTurnCutOff reports the end of a turn that the program's exit cut off, for readers of turn events. It agrees
// with what the reducer makes of exited, and comes after that; there is no turn_idle, since the program is not idle.
func (r *runner) appendTurnCutOff(p *program) {
	e, shown := r.turnEvent(wire.TurnCompleted, r.turn.id), r.state.Turn()
	switch {
	case p.driver.LogsOwnEvents && r.stopping != nil && shown.IsOpen(): // it reports every other end itself
		e.TurnID, e.Session = shown.ID, shown.Session
		e = e.With("transport", shown.Transport).With("thread_id", shown.Thread)
	case r.turn.id == "": // or hooks report it
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

// undoTurn makes the messages that began the turn unread: they are typed again after the urgent mail that interrupts
// it. It runs beside the loop.
func (r *runner) undoTurn(ctx context.Context) error {
	done, err := inLoop(r, func() (<-chan error, error) {
		ids, done := r.turn.ids, make(chan error, 1)
		if len(ids) == 0 {
			r.mail.isPrompted, r.mail.isPromptUndone = false, true
		}
		r.claims.do(func() { // after the job that marks them as read
			var errs []error
			for _, id := range ids {
				if r.Inject != Pointer {
					errs = append(errs, r.Box.MarkUndone(ctx, id))
				}
			}
			r.post(func() { r.appendForAll(wire.Event{Kind: wire.EventUnread}, ids) })
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
	turnBeginTimeout = 10 * time.Second // for a turn to show that it has begun
	turnEndTimeout   = 15 * time.Second // for an interrupted turn to end: a busy machine may take five and more
	personTimeout    = 10 * time.Minute // for urgent mail to wait for a person's draft
)

// interrupt presses the driver's interrupt keys, and returns when the turn has been reported to be over. If the program
// asks something nothing is pressed, because the key would answer it. It runs beside the loop.
func (r *runner) interrupt(ctx context.Context, isUrgent bool) (control.Outcome, error) {
	// The key does nothing before a turn shows that it has begun; the caller may know of that turn from the log.
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
			return control.Outcome{Done: "idle", Detail: "a person was typing until its turn ended"}, err
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
	if cut.isUndone { // before any key, so that they are unread if this runner is killed
		if err := r.undoTurn(ctx); err != nil {
			return out, err
		}
	}
	r.pressInterrupt(cut.prog, isUrgent)
	isOver, err := r.poll(ctx, turnEndTimeout, func() bool {
		return r.prog == nil || !isWork(r.prog.reported) && r.question == nil || r.state.Turn().ID != cut.turn
	})
	switch {
	case !r.post(func() {}): // the key has ended the program, and with it this runner
		return out, nil
	case err == nil && !isOver:
		err = errors.New("it was told to stop but goes on")
	}
	return out, err
}

// pressInterrupt presses the keys that end a turn, unless the program asks something by then.
func (r *runner) pressInterrupt(p *program, isUrgent bool) {
	for i, key := range p.driver.InterruptKeys() {
		if i > 0 {
			time.Sleep(driver.InterruptPause)
		}
		r.post(func() {
			r.refresh(r.now())
			if r.prog == p && !r.keyWouldAnswer(isUrgent) {
				p.sendKeys(key)
			}
		})
	}
}

// awaitPerson waits until nobody types and no draft of a person is left, which would block the urgent mail. It returns
// false if the turn ended first.
func (r *runner) awaitPerson(ctx context.Context) (isFree bool, err error) {
	hasWaited := false
	_, err = r.poll(ctx, personTimeout, func() bool {
		now := r.now()
		r.refresh(now)
		p := r.prog
		hasDraft := p != nil && p.reading.Draft != "" && !r.lastKey.IsZero()
		if isFree = p == nil || !hasDraft && !r.mustWait(r.lastKey.Add(r.timing.personQuiet), now); isFree {
			return true
		}
		isOver := hasWaited && !isWork(p.reading.Activity)
		hasWaited = true
		return isOver
	})
	return isFree, err
}

// interruption is what an interrupt ends.
type interruption struct {
	prog     *program
	turn     string
	activity reducer.Activity
	isUndone bool // the turn: its messages are unread again
}

// beginInterruption checks that the key may be pressed. Nil: there is nothing to interrupt.
func (r *runner) beginInterruption(isUrgent bool) (*interruption, error) {
	r.refresh(r.now())
	p := r.prog
	t := r.mail.typing
	switch {
	case p == nil:
		return nil, errNotRunning
	case !isUrgent && p.reading.Activity == reducer.Idle && t == nil:
		return nil, nil
	case r.keyWouldAnswer(isUrgent):
		return nil, refused("the key would answer its question: no key was pressed",
			"atm pending shows the question; atm reject "+string(r.Box.Agent()))
	case t.hasBegun() && !t.isSubmitted():
		return nil, errBeingTyped
	}
	cut := &interruption{prog: p, turn: r.state.Turn().ID, activity: p.reading.Activity}
	r.turn.isInterrupted = isWork(cut.activity)
	if r.turn.isInterrupted && r.turn.isOurs {
		r.restored = &restoredDraft{text: r.turn.text, since: r.now()}
		cut.isUndone = isUrgent && p.driver.ForgetsInterruptedPrompt && !r.turn.hasActed && r.response() == ""
	}
	return cut, nil
}

// keyWouldAnswer reports whether the interrupt key would answer a question. (Cancelling the turn of an ACP agent
// cancels the permission that it asks for; only urgent mail must not do that.)
func (r *runner) keyWouldAnswer(isUrgent bool) bool {
	d := r.prog.reading.Dialog
	if d == nil && r.question != nil {
		d = &r.question.Dialog
	}
	if d == nil {
		return r.prog.asks()
	}
	isCancelled := r.prog.driver.LogsOwnEvents && !isUrgent
	return !(isCancelled && d.Kind == "permission")
}

// restoredDraft is a text of ours that may appear in the draft again, where it would block all mail: Claude Code puts
// the prompt back if its turn is interrupted before the first output. A text that failed may appear there late.
type restoredDraft struct {
	text          string
	since         time.Time // of the interrupt, or when typing began
	clearedAt     time.Time // when it was last removed from the draft
	clears        int
	silentVersion uint64 // the screen's at our last key: while it is unchanged, the program may not have read that
	isFailed      bool   // typing it failed: it began no turn
}

// maxClears limits how often a draft is cleared: a long text becomes visible part by part.
const maxClears = 50

// stepRestored clears the draft of a restored text. What a person has typed since is left alone.
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
	case r.mustWait(later(p.outputAt.Add(r.timing.quiet), d.clearedAt.Add(r.timing.idle)), now):
	default:
		p.sendKeys(p.driver.ClearDraft(rd.Draft)...)
		d.clearedAt = now
		d.clears++
		r.wakeAt(now.Add(r.timing.idle))
	}
}

// hasLeftover reports whether a text that failed is in the draft, or will be when the program reads it.
func (r *runner) hasLeftover() bool {
	d := r.restored
	isInDraft := d != nil && d.isFailed && isPartOf(r.prog.reading.Draft, d.text)
	return isInDraft || r.isTextUnread()
}

// isTextUnread reports whether the program has shown nothing since a text was typed that failed: it may be suspended
// and read the text later. After retryLast the text counts as lost.
func (r *runner) isTextUnread() bool {
	d, p := r.restored, r.prog
	isSilent := d != nil && d.isFailed && !p.driver.Plain && d.silentVersion == p.screen.Version()
	return isSilent && r.mustWait(d.since.Add(retryLast), r.now())
}

// isPartOf reports whether a draft shows nothing but a text, a visible part of it, or its placeholder.
func isPartOf(draft, text string) bool {
	d := driver.RemoveBlanks(draft)
	return d != "" && strings.Contains(driver.RemoveBlanks(text), d) || strings.HasPrefix(draft, "[Pasted ") && strings.HasSuffix(draft, "]")
}

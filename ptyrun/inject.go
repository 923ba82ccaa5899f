package ptyrun

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/wire"
)

// typing is a text being typed.
type typing struct {
	ids       []wire.ID       // of the messages to claim; none: text is the first prompt
	claim     *mailbox.Claim  // of the messages that were still unread
	items     []*mailbox.Item // the claimed messages, which the text contains
	text      string
	draft     string    // what the draft should show: the text or its last line
	startedAt time.Time // zero: nothing was written yet
	wroteAt   time.Time // when the last byte was written
	isSeen    bool      // in the draft
	isMixed   bool      // with a person's keys, which were held too long
	returns   int       // return keys pressed
	pressedAt time.Time // the last of them

	resume func() (struct{}, bool) // continues inject until its next pause
	stop   func()                  // ends it where it pauses
	yield  func(struct{}) bool
}

const (
	maxReturns = 3  // for a text
	maxClaimed = 64 // messages at once
	maxPasted  = 64 << 10

	retryClaim = time.Second
	retryFirst = 5 * time.Second // after a text that the program did not accept; doubles up to retryLast
	retryLast  = 5 * time.Minute
)

// hasBegun reports whether bytes were written, isSubmitted whether the return key was pressed.
func (t *typing) hasBegun() bool    { return t != nil && !t.startedAt.IsZero() }
func (t *typing) isSubmitted() bool { return t != nil && t.returns > 0 }

// isSubmittedInPart reports whether lines above the draft were submitted, which must not run again.
func (t *typing) isSubmittedInPart() bool { return t.hasBegun() && t.draft != t.text }

func (r *runner) begin(t *typing) {
	r.mail.typing = t
	t.resume, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		switch err := r.inject(t).(type) {
		case nil:
			r.typingDone(t)
		case *injectError:
			r.typingFailed(t, err.outcome, err.reason)
		default:
			r.mail.typing = nil
		}
	})
	t.resume()
}

// inject types a text, submits it and sees it accepted; typingDone or typingFailed follow. It runs as a coroutine of the
// loop: at each pause the loop goes on, and resumes it after the next event. So it may use the loop's state, which may
// have changed after each pause. The gate is open when it begins. Each step needs something, or else ends it:
//
//	refreshSessions   the session of an input lets it through     nothing happens
//	claim             nobody else has the messages                nothing happens
//	compose           the gate is still open, the text typable    failed
//	write             the program reads                           stuck
//	awaitDraft        the draft shows the text                    unverified
//	awaitReturn       returnGate is open, no person's key came    failed
//	submit            the program accepts the text                failed if the draft still shows it, else unverified
func (r *runner) inject(t *typing) error {
	for _, step := range []func(*typing) error{r.refreshSessions, r.claim, r.compose, r.write, r.awaitDraft, r.awaitReturn, r.submit} {
		if err := step(t); err != nil {
			return err
		}
	}
	return nil
}

// pause lets the loop go on until the next event, at most for a moment.
func (r *runner) pause(t *typing) error {
	r.wakeAt(r.now().Add(2 * readDelay))
	if !t.yield(struct{}{}) {
		return errNotInjected
	}
	return nil
}

// pauseUntil pauses until isDone, which is called whenever something may have changed. It holds a person's keys no
// longer than it may.
func (r *runner) pauseUntil(t *typing, isDone func(now time.Time) (bool, error)) error {
	for {
		now := r.now()
		r.refresh(now)
		if t.startedAt.Add(maxKeyHold).Before(now) {
			r.releaseKeys()
		}
		if done, err := isDone(now); done || err != nil {
			return err
		}
		if err := r.pause(t); err != nil {
			return err
		}
	}
}

// claim claims the messages, so that nobody else reads them.
func (r *runner) claim(t *typing) (err error) {
	if t.ids == nil {
		return nil
	}
	ids, now := t.ids, r.now()
	r.claims.do(func() {
		if len(ids) > 1 && r.Inject != Pointer {
			ids = ids[:r.countFitting(ids, now)]
		}
		c, failed := r.Hold.Claim(r.ctx, ids)
		if !r.post(func() { t.claim, err = c, failed; t.resume() }) && c != nil {
			c.NotTyped(context.Background())
		}
	})
	if err := r.pauseUntil(t, func(time.Time) (bool, error) { return t.claim != nil || err != nil, nil }); err != nil {
		return err
	}
	if err != nil {
		r.mail.retryAt = r.now().Add(retryClaim)
		r.Log.Error("claiming messages", "err", err)
		return errNotInjected
	}
	r.mail.unqueue(ids...)
	for _, id := range t.claim.Leased { // the reducer has to know until when
		r.rereadMessage(id)
	}
	if t.items = t.claim.Items; len(t.items) == 0 {
		return errNotInjected // they were read meanwhile, or a hook handed them over
	}
	return nil
}

// countFitting returns how many of the messages fit into one text: at least one.
func (r *runner) countFitting(ids []wire.ID, now time.Time) int {
	var items []*mailbox.Item
	for i, id := range ids {
		if it, err := r.Box.Get(id); err == nil { // else it is gone, as the claim will find
			items = append(items, it)
		}
		if len(items) > 1 && len(letterText(items, nil, r.renderer(now, items))) > maxLetter {
			return i
		}
	}
	return len(ids)
}

// compose renders the messages, if the gates are still open.
func (r *runner) compose(t *typing) error {
	if t.claim == nil {
		return nil
	}
	now := r.now()
	r.refresh(now)
	gate := r.gate(now)
	rest, why := r.typable(t.items)
	switch {
	case gate != control.GateOpen:
		rest, why = idsOf(t.items), string(gate)
	case why == "" && r.prog.driver.Plain && r.Inject != Pointer && slices.Contains(notices, t.items[0].Type):
		return r.giveUp(t, noNotices)
	}
	if why != "" {
		r.mail.requeue(rest)
		return &injectError{outcomeFailed, why}
	}
	l := r.renderer(now, t.items)
	switch {
	case r.Inject == Pointer:
		t.text = pointerText(t.items, l)
	case r.prog.driver.Plain:
		t.text = t.items[0].Body
	default:
		t.text = letterText(t.items, t.claim.Repeat, l)
	}
	r.addMarkers("inject:", t)
	return nil
}

func (r *runner) addMarkers(what string, t *typing) {
	for _, it := range t.items {
		r.recording.Marker(what + string(it.ID))
	}
}

// giveUp keeps the messages from being typed again in this run.
func (r *runner) giveUp(t *typing, why string) error {
	for _, it := range t.items {
		r.mail.tries[it.ID] = control.MaxTries
	}
	return &injectError{outcomeFailed, why}
}

func (r *runner) write(t *typing) error {
	p := r.prog
	isPaste := p.screen.Modes().Paste
	p.keyVersion = p.screen.Version()
	t.text = Clean(t.text)
	t.draft = t.text
	if p.driver.Plain && !isPaste {
		t.text = strings.Trim(t.text, "\n")
		t.draft = t.text[strings.LastIndexByte(t.text, '\n')+1:]
	}
	if why := untypable(t.text, isPaste); why != "" {
		return r.giveUp(t, why)
	}
	t.startedAt = r.now()
	p.capture.expectEcho(t.text)
	end := ""
	if t.claim != nil && !p.driver.Plain {
		end = " " // behind @name, an agent's return key would first pick a file or a skill for it
	}
	data := []byte(keysOf(t.text+end, isPaste, p.driver.Plain))
	isDone, written, failed := false, 0, error(nil)
	r.typeKeys(data, func(n int, err error) {
		r.post(func() { isDone, written, failed = true, n, err })
	})
	if err := r.pauseUntil(t, func(time.Time) (bool, error) { return isDone, nil }); err != nil {
		return err
	}
	if failed != nil {
		if isPaste && written > 0 {
			p.sendKeys([]byte(pasteOff))
		}
		return &injectError{outcomeStuck, fmt.Sprintf("the program stopped reading after %d of %d bytes", written, len(t.text))}
	}
	t.wroteAt = r.now()
	return nil
}

// awaitDraft waits until the draft shows the text and the screen is quiet.
func (r *runner) awaitDraft(t *typing) error {
	p := r.prog
	return r.pauseUntil(t, func(now time.Time) (bool, error) {
		t.isSeen = p.driver.HasInBox(p.look(), t.draft)
		quiet := earlier(p.outputAt.Add(r.timing.quiet), t.wroteAt.Add(4*r.timing.quiet)) // something may blink for ever
		switch {
		case t.isSeen && !now.Before(quiet):
			return true, nil
		case r.mustWait(t.wroteAt.Add(r.timing.render), now):
			return false, nil
		case p.isSilent():
			return false, &injectError{outcomeUnverified, "the screen did not change"}
		case !t.isSeen && p.reading.Draft != "" && !p.driver.Plain && !isPartOf(p.reading.Draft, t.draft):
			return false, &injectError{outcomeUnverified, "its prompt shows different text"}
		}
		return true, nil
	})
}

// awaitReturn waits until the return key may be pressed: a program swallows it while it processes a paste, an open frame
// may be drawing a dialog, and what an agent shows instead of its box may be one that its driver does not know.
func (r *runner) awaitReturn(t *typing) error {
	p := r.prog
	at := t.wroteAt.Add(max(r.timing.beforeReturn, p.driver.SubmitDelay(len(t.text))))
	return r.pauseUntil(t, func(now time.Time) (bool, error) {
		if why := r.returnGate(); why != "" {
			return false, &injectError{outcomeFailed, why}
		}
		if t.isMixed {
			return false, &injectError{outcomeFailed, string(control.GateTyping)}
		}
		if !p.driver.Plain && p.reading.NotPromptReason == string(control.GateNoPrompt) {
			if r.mustWait(t.wroteAt.Add(r.timing.render), now) {
				return false, nil
			}
			return false, &injectError{outcomeFailed, string(control.GateNoPrompt)}
		}
		return !r.mustWait(at, now) && (p.frameSince.IsZero() || now.Sub(p.frameSince) >= maxFrame), nil
	})
}

// submit presses the return key until the program has accepted the text.
func (r *runner) submit(t *typing) error {
	r.turn.startRow = r.prog.screen.Scrolled()
	r.pressReturn(t)
	if err := r.pause(t); err != nil {
		return err
	}
	isDue := false
	return r.pauseUntil(t, func(now time.Time) (bool, error) {
		isInDraft := r.prog.driver.HasInBox(r.prog.look(), t.draft)
		isTaken, err := r.isTaken(t, isInDraft, now)
		if !isTaken && err == nil && isInDraft && r.mayPressAgain(t, now) {
			// Only at the second check: on a busy machine a dialog may have been drawn whose output is not here yet.
			if isDue {
				r.pressReturn(t)
			}
			isDue = !isDue
		}
		return isTaken, err
	})
}

func (r *runner) pressReturn(t *typing) {
	t.returns++
	keys := driver.Submit
	if t.draft != t.text && strings.TrimLeft(t.draft, " \t") != t.draft {
		keys += driver.Submit // Python's prompt ends a block with an empty line
	}
	r.typeKeys([]byte(keys), nil)
	t.pressedAt, r.prog.keyVersion = r.now(), r.prog.screen.Version()
}

// isTaken reports whether a submitted text was accepted. An *injectError says that it was not, or that nobody can know.
func (r *runner) isTaken(t *typing, isInDraft bool, now time.Time) (bool, error) {
	p := r.prog
	if p.driver.HasAccepted(p.look(), t.draft) {
		return true, nil
	}
	if r.stopping != nil {
		return false, &injectError{outcomeUnverified, string(control.GateStopping)}
	}
	if r.returnGate() != "" {
		if d := p.reading.Dialog; d != nil && (d.Kind == "trust" || d.Kind == "unknown") {
			return false, &injectError{outcomeUnverified, "a dialog came up and may have got the return key"}
		}
		return true, nil // it was idle, so the dialog belongs to this text's turn
	}
	wait := r.timing.accept
	if p.isSilent() {
		wait *= 3
	}
	switch {
	case !now.After(t.pressedAt.Add(wait)):
		return false, nil
	case isInDraft:
		return false, &injectError{outcomeFailed, fmt.Sprintf("it is still in the prompt after %d return keys", t.returns)}
	case t.isSeen && !t.isMixed:
		return true, nil // our return key took it out of the draft
	}
	return false, &injectError{outcomeUnverified, "its screen shows no sign that it arrived"}
}

// mayPressAgain reports whether a return key seems to be lost. If the program is silent, another return key might
// answer what it asks next.
func (r *runner) mayPressAgain(t *typing, now time.Time) bool {
	isEnough := t.isMixed || t.returns >= maxReturns
	return !isEnough && !r.prog.isSilent() && !now.Before(t.pressedAt.Add(r.timing.retryReturn))
}

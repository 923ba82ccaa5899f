package ptyrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// typing is a text on its way into the program.
type typing struct {
	step      int // of the recipe
	stepBegun bool
	isWaiting bool // for a claim or for the program to read
	failed    error

	prompt    *prompt         // nil: it is mail
	ids       []wire.ID       // of the messages to claim
	claim     *maildir.Claim  // of the messages that were still unread
	items     []*maildir.Item // the claimed messages, which the text contains or points at
	text      string
	asPointer bool   // text only points at the messages, which stay unread
	draft     string // what the draft should show: the text or its last line

	startedAt   time.Time // zero: nothing was written yet
	written     int       // bytes
	wroteAt     time.Time // when the last byte was written
	isSeen      bool      // in the draft
	isMixed     bool      // with a person's keys, which were held too long
	returns     int       // return keys pressed
	pressedAt   time.Time // the last of them
	isReturnDue bool      // another one seems to be needed
}

const (
	maxReturns = 3        // for a text
	maxClaimed = 64       // messages at once
	maxPasted  = 64 << 10 // bytes of a text

	retryClaim = time.Second
	retryFirst = 5 * time.Second // after a text that the program did not accept; doubles up to retryLast
	retryLast  = 5 * time.Minute
)

// hasBegun reports whether bytes were written, isSubmitted whether the return key was pressed.
func (t *typing) hasBegun() bool    { return t != nil && !t.startedAt.IsZero() }
func (t *typing) isSubmitted() bool { return t != nil && t.returns > 0 }

// isSubmittedInPart reports whether lines above the draft were submitted, which must not run again.
func (t *typing) isSubmittedInPart() bool { return t.hasBegun() && t.draft != t.text }

// A recipeStep is begun once. Then the loop goes on, and asks isDone whenever something may have changed.
type recipeStep struct {
	begin  func(*typing) error // nil: nothing is to be done
	isDone func(t *typing, now time.Time) (bool, error)
}

// recipe is how a text gets into the program. The gate is open when it begins. Each step needs something, or else ends
// it with an outcome:
//
//	claim, compose           nobody else has the messages                nothing happens
//	                         the gate is still open, the text typable    failed
//	write                    the program reads                           stuck
//	isInDraft                the draft shows the text                    unverified
//	mayReturn                returnGate is open, no person's key came    failed
//	pressReturn, isAccepted  the program accepts the text                failed if the draft still shows it,
//	                                                                     else unverified
func (r *runner) recipe(t *typing) []recipeStep {
	steps := []recipeStep{{r.claim, r.compose}}
	if r.prog != nil {
		steps = append(steps, r.prog.recipe(t)...)
	}
	return steps
}

func (p *terminal) recipe(*typing) []recipeStep {
	return []recipeStep{
		{p.write, p.isWritten},
		{nil, p.isInDraft},
		{nil, p.mayReturn},
		{p.pressReturn, p.isAccepted},
	}
}

// stepTyping carries on the recipe as far as it gets.
func (r *runner) stepTyping(now time.Time) {
	t := r.mail.typing
	steps := r.recipe(t)
	if r.prog != nil {
		r.prog.refresh()
	}
	if t.hasBegun() && now.Sub(t.startedAt) >= maxKeyHold {
		r.releaseKeys()
	}
	for t.step < len(steps) {
		isDone, err := r.doStep(t, steps[t.step], now)
		if failure, ok := errors.AsType[*injectError](err); ok {
			r.typingFailed(t, failure.outcome, failure.reason)
			return
		}
		if err != nil { // errNotInjected
			r.mail.typing = nil
			return
		}
		if !isDone {
			r.wakeAt(now.Add(2 * readDelay))
			return
		}
		t.step, t.stepBegun = t.step+1, false
	}
	r.typingDone(t)
}

// doStep begins a step, or asks whether it is done.
func (r *runner) doStep(t *typing, step recipeStep, now time.Time) (isDone bool, err error) {
	if step.begin != nil && !t.stepBegun {
		t.stepBegun = true
		return false, step.begin(t)
	}
	if t.isWaiting {
		return false, nil
	}
	return step.isDone(t, now)
}

// claim claims the messages beside the loop, so that nobody else reads them. For the first prompt it only asks whether
// anything may act.
func (r *runner) claim(t *typing) error {
	ids, now, reader, how := t.ids, r.now(), r.prog.state().reader, r.inject()
	t.isWaiting = true
	r.claims.do(func() {
		if ids == nil {
			err := r.Box.Store().MayAct(r.ctx)
			r.post(func() { t.failed, t.isWaiting = err, false })
			return
		}
		wanted := ids
		ids = r.follower.Admit(ids)
		held := slices.DeleteFunc(slices.Clone(wanted), func(id wire.ID) bool { return slices.Contains(ids, id) })
		n, asPointer := len(ids), how == Pointer
		if how == Body {
			n, asPointer = r.countTogether(ids, now, reader)
		}
		ids = ids[:n]
		c, err := r.Hold.Claim(r.ctx, ids)
		if err == nil && asPointer { // at once, so that a hook of this prompt may hand the messages over
			c.Release(r.ctx) // an error does not matter: typingDone does it again
		}
		if !r.post(func() {
			t.ids, t.claim, t.asPointer, t.failed, t.isWaiting = ids, c, asPointer, err, false
			r.mail.unqueue(held...) // they are told of again when they may be given
		}) && c != nil {
			c.Release(context.Background())
		}
	})
	return nil
}

// inject is how mail gets into the program that runs, as far as atm knows what that is.
func (r *runner) inject() Inject {
	isPlain := r.Driver.Plain
	if r.prog != nil {
		isPlain = r.prog.state().isPlain
	}
	switch {
	case r.Inject == Body && isPlain:
		return Pointer
	case r.Inject == Execute && !isPlain:
		return Body
	}
	return r.Inject
}

// countTogether returns how many of the messages go into one text, at least one, and whether it only points at them.
func (r *runner) countTogether(ids []wire.ID, now time.Time, reader *driver.Driver) (n int, asPointer bool) {
	size := 0
	for i, id := range ids {
		it, err := r.Box.Get(id)
		if err != nil { // it is gone, as the claim will find
			continue
		}
		one := []*maildir.Item{it}
		text := r.letterText(one, nil, r.renderer(now, one), reader)
		if size > 0 && (asPointer != (text == "") || size+len(text) > maxLetter) {
			return i, asPointer
		}
		asPointer, size = text == "", size+len(text)+1
	}
	return len(ids), asPointer
}

// compose renders the claimed messages, if the gates are still open.
func (r *runner) compose(t *typing, now time.Time) (bool, error) {
	gate := r.gate(now)
	isPrompt := t.ids == nil
	if isPrompt && t.prompt.isOver {
		return false, errNotInjected
	}
	if isPrompt && t.failed == nil && gate == control.GateOpen {
		return true, nil
	}
	if isPrompt {
		r.mail.prompts = slices.Insert(r.mail.prompts, 0, t.prompt)
	}
	if t.failed != nil {
		r.mail.retryAt = now.Add(retryClaim)
		r.Log.Error("claiming messages", "err", t.failed)
		r.askMayAct() // perhaps that is why
	}
	if isPrompt || t.failed != nil {
		return false, errNotInjected
	}
	r.mail.unqueue(t.ids...)
	for _, id := range t.claim.Leased { // the queue has to know until when
		r.rereadMessage(id)
	}
	if t.items = t.claim.Items; len(t.items) == 0 {
		return false, errNotInjected // they were read meanwhile, or a hook handed them over
	}
	for _, id := range idsOf(t.items) { // the log says so, too, but perhaps after the turn: urgent mail would interrupt its own
		begun := wire.Event{Kind: wire.EventInjecting}.With("id", string(id))
		r.queue.Apply(&begun, now)
	}
	rest, why := r.typable(t.items)
	switch {
	case gate != control.GateOpen:
		why = string(gate)
	case why == "" && r.inject() == Execute && slices.Contains(notices, t.items[0].Type):
		return false, r.giveUp(t, noNotices)
	}
	if why != "" {
		r.mail.requeue(rest)
		return false, &injectError{outcomeFailed, why}
	}
	if t.text = r.mailText(t, now); t.text == "" && r.inject() != Execute {
		t.asPointer, t.text = true, pointerText(t.items, r.prog.state().isPlain)
	}
	r.addMarkers("inject:", t)
	return true, nil
}

// mailText returns the text of the claimed messages; "": no more than a pointer to them may be typed.
func (r *runner) mailText(t *typing, now time.Time) string {
	to := r.prog.state()
	switch {
	case r.inject() == Execute:
		return t.items[0].Body
	case t.asPointer, !to.takesText:
		return ""
	}
	return r.letterText(t.items, t.claim.Repeat, r.renderer(now, t.items), to.reader)
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

// write types the text, without a return key behind it. (A plain program without bracketed paste gets each line but the
// last submitted.)
func (p *terminal) write(t *typing) error {
	r := p.r
	p.keyVersion = p.emulator.Version()
	t.text = Clean(t.text)
	t.draft = t.text
	if p.driver.Plain && !p.takesText() {
		t.text = strings.Trim(t.text, "\n")
		t.draft = t.text[strings.LastIndexByte(t.text, '\n')+1:]
	}
	if why := untypable(t.text, p.takesText()); why != "" {
		return r.giveUp(t, why)
	}
	t.startedAt = r.now()
	r.follower.HandleTyped(t.text)
	end := ""
	if t.claim != nil && !p.driver.Plain {
		end = " " // behind @name, an agent's return key would first pick a file or a skill for it
	}
	t.isWaiting = true
	p.typeKeys(p.keysOf(t.text+end), func(n int, err error) {
		r.post(func() { t.written, t.failed, t.isWaiting = n, err, false })
	})
	return nil
}

func (p *terminal) isWritten(t *typing, now time.Time) (bool, error) {
	if t.failed != nil {
		if t.written > 0 && p.emulator.Modes().Paste {
			p.sendKeys([]byte(pasteOff))
		}
		why := fmt.Sprintf("the program stopped reading after %d of %d bytes", t.written, len(t.text))
		return false, &injectError{outcomeStuck, why}
	}
	t.wroteAt = now
	return true, nil
}

// isInDraft reports whether the draft shows the text and the screen is quiet. If it does not in time, it is enough that
// the screen has changed and no other draft is on it: a program may show a text in a way that its driver cannot read.
func (p *terminal) isInDraft(t *typing, now time.Time) (bool, error) {
	r := p.r
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
}

// mayReturn reports whether the return key may be pressed: a program swallows it while it processes a paste, an open
// frame may be drawing a dialog, and what an agent shows instead of its box may be one that its driver does not know.
func (p *terminal) mayReturn(t *typing, now time.Time) (bool, error) {
	r := p.r
	if why := r.returnGate(); why != "" {
		return false, &injectError{outcomeFailed, why}
	}
	if t.isMixed {
		return false, &injectError{outcomeFailed, string(control.GateTyping)}
	}
	if !p.driver.Plain && p.reading.NotPromptReason == control.GateNoPrompt {
		if r.mustWait(t.wroteAt.Add(r.timing.render), now) {
			return false, nil
		}
		return false, &injectError{outcomeFailed, string(control.GateNoPrompt)}
	}
	at := t.wroteAt.Add(r.timing.beforeReturn + driver.SubmitDelay(len(t.text)))
	return !r.mustWait(at, now) && (p.frameSince.IsZero() || now.Sub(p.frameSince) >= maxFrame), nil
}

func (p *terminal) pressReturn(t *typing) error {
	if t.returns == 0 {
		p.turn.startRow = p.emulator.Scrolled()
	}
	t.returns++
	keys := p.driver.SubmitKeys()
	if t.draft != t.text && strings.TrimLeft(t.draft, " \t") != t.draft {
		keys += keys // Python's prompt ends a block with an empty line
	}
	p.keys([]byte(keys))
	t.pressedAt, p.keyVersion = p.r.now(), p.emulator.Version()
	return nil
}

// isAccepted reports whether the program has accepted the text, and presses the return key again if it seems lost.
func (p *terminal) isAccepted(t *typing, now time.Time) (bool, error) {
	r := p.r
	if p.driver.HasAccepted(p.look(), t.draft) {
		return true, nil
	}
	if r.stopping != nil {
		return false, &injectError{outcomeUnverified, string(control.GateStopping)}
	}
	if r.returnGate() != "" {
		if d := p.reading.Dialog; d != nil && reducer.IsForTerminal(d.Kind) {
			return false, &injectError{outcomeUnverified, "a dialog came up and may have got the return key"}
		}
		return true, nil // it was idle, so the dialog belongs to this text's turn
	}
	isInDraft := p.driver.HasInBox(p.look(), t.draft)
	wait := r.timing.accept
	if p.isSilent() {
		wait *= 3
	}
	switch {
	case now.After(t.pressedAt.Add(wait)) && isInDraft:
		return false, &injectError{outcomeFailed, fmt.Sprintf("it is still in the prompt after %d return keys", t.returns)}
	case now.After(t.pressedAt.Add(wait)) && t.isSeen && !t.isMixed:
		return true, nil // our return key took it out of the draft
	case now.After(t.pressedAt.Add(wait)):
		return false, &injectError{outcomeUnverified, "its screen shows no sign that it arrived"}
	case !isInDraft || !p.mayPressAgain(t, now):
		return false, nil
	}
	// Only at the second look: on a busy machine a dialog may have been drawn whose output is not here yet.
	if t.isReturnDue = !t.isReturnDue; !t.isReturnDue {
		p.pressReturn(t)
	}
	return false, nil
}

// mayPressAgain reports whether a return key seems to be lost. If the program is silent, another return key might
// answer what it asks next.
func (p *terminal) mayPressAgain(t *typing, now time.Time) bool {
	isEnough := t.isMixed || t.returns >= maxReturns
	return !isEnough && !p.isSilent() && !now.Before(t.pressedAt.Add(p.r.timing.retryReturn))
}

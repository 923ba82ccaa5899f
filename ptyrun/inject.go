package ptyrun

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/wire"
)

// How a text gets into the program. inject names the steps, and typed and failed are its two ends. It takes
// turns with the loop, as a coroutine: at each pause the loop goes on, and resumes it after the next event.
// So all that is used here is the loop's own state, and may have changed at each pause.

// typing is one text on its way in.
type typing struct {
	ids           []wire.ID       // of the messages to claim; none: text is there already, as the first prompt
	claim         *mailbox.Claim  // of what of them is still to be had
	items         []*mailbox.Item // of the claim, which the text holds
	text          string
	draft         string    // what of the text is to stand in the draft: all, or its last line
	startedAt     time.Time // when the first byte was written; zero: none was
	versionBefore uint64    // of the screen, before that
	wroteAt       time.Time // when the last byte was written
	isSeen        bool      // in the draft
	isMixed       bool      // with what a person typed, who could not be held any longer

	returns        int       // return keys pressed
	pressedAt      time.Time // the last of them
	pressedVersion uint64    // the version of the screen then

	resume func() (struct{}, bool) // goes on with inject, until that pauses again
	stop   func()                  // ends inject where it pauses
	yield  func(struct{}) bool
}

// notTaken says why the program has not got a text, or nobody knows whether it has.
type injectError struct{ outcome, reason string }

func (n *injectError) Error() string { return n.reason }

// The outcomes, as events tell them: a text was not seen, on the screen or to be taken; it was not
// submitted, or stayed in the draft; the program did not read.
const outcomeUnverified, outcomeFailed, outcomeStuck = "unverified", "failed", "stuck"

// errNothing ends inject where there is nothing to tell, or somebody else does that.
var errNotInjected = errors.New("nothing is typed")

const (
	maxReturns = 3  // for one text
	maxClaimed = 64 // messages at once
	maxPasted  = 64 << 10

	retryClaim = time.Second
	retryFirst = 5 * time.Second // a text that the program did not take
	retryLast  = 5 * time.Minute
)

// isUnderWay reports whether bytes of it were written, isSubmitted whether the return key was pressed.
func (t *typing) hasBegun() bool    { return t != nil && !t.startedAt.IsZero() }
func (t *typing) isSubmitted() bool { return t != nil && t.returns > 0 }

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

// inject types a text, submits it and sees it taken. The gates are open when it begins.
func (r *runner) inject(t *typing) error {
	for _, step := range []func(*typing) error{r.claim, r.compose, r.write, r.awaitDraft, r.awaitReturn, r.submit} {
		if err := step(t); err != nil {
			return err
		}
	}
	return nil
}

// pause lets the loop go on until the next event, or for a moment.
func (r *runner) pause(t *typing) error {
	r.wakeAt(r.Now().Add(2 * readDelay))
	if !t.yield(struct{}{}) {
		return errNotInjected
	}
	return nil
}

// until pauses until isDone, which is asked whenever the screen may have changed.
func (r *runner) pauseUntil(t *typing, isDone func(now time.Time) (bool, error)) error {
	for {
		now := r.Now()
		r.refresh(now)
		if done, err := isDone(now); done || err != nil {
			return err
		}
		if err := r.pause(t); err != nil {
			return err
		}
	}
}

// abandonTyping gives up what is being typed, for something came between. A claim that is under way sees
// the gates, and what was submitted the screen, while there is one.
func (r *runner) abandonTyping(reason string) {
	t := r.mail.typing
	switch {
	case t.isSubmitted() && r.prog == nil:
		t.stop()
		r.typingFailed(t, outcomeUnverified, reason+", after the return key")
	case t.hasBegun() && !t.isSubmitted():
		t.stop()
		r.typingFailed(t, outcomeFailed, reason)
	}
}

// claim claims the messages, so that nobody else reads them meanwhile.
func (r *runner) claim(t *typing) (err error) {
	if t.ids == nil {
		return nil
	}
	ids, now := t.ids, r.Now()
	r.claims.do(func() {
		if len(ids) > 1 && r.Inject != Pointer {
			ids = ids[:r.countFitting(ids, now)]
		}
		c, failed := r.Hold.Claim(r.ctx, ids)
		if !r.post(func() { t.claim, err = c, failed; t.resume() }) && c != nil {
			c.NotTyped(context.Background())
		}
	})
	for t.claim == nil && err == nil {
		if err := r.pause(t); err != nil {
			return err
		}
	}
	if err != nil {
		r.mail.retryAt = r.Now().Add(retryClaim)
		r.Log.Error("claiming messages", "err", err)
		return errNotInjected
	}
	r.mail.unqueue(ids...)
	for _, id := range t.claim.Leased { // somebody holds it: how long, the reducer has to know
		r.rereadMessage(id)
	}
	if t.items = t.claim.Items; len(t.items) == 0 {
		return errNotInjected // read meanwhile, or handed over by a hook
	}
	return nil
}

// fitting is how many of the messages go in together: at least one.
func (r *runner) countFitting(ids []wire.ID, now time.Time) int {
	var items []*mailbox.Item
	for i, id := range ids {
		if it, err := r.Box.Get(id); err == nil { // else it is gone, which the claim will see
			items = append(items, it)
		}
		if len(items) > 1 && len(letterText(items, nil, r.renderer(now, items))) > maxLetter {
			return i
		}
	}
	return len(ids)
}

// compose makes the text of the messages, if the gates are still open.
func (r *runner) compose(t *typing) error {
	if t.claim == nil {
		return nil
	}
	now := r.Now()
	r.refresh(now)
	gate := r.gate(now)
	why, rest := r.withheld(t.items)
	switch {
	case gate != control.GateOpen:
		why, rest = string(gate), idsOf(t.items)
	case why == "" && r.prog.driver.Plain && slices.Contains(notices, t.items[0].Type):
		return r.giveUp(t, "what atm itself says is not typed into a shell, which would run it")
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

func (r *runner) renderer(now time.Time, items []*mailbox.Item) *letter.Renderer {
	return &letter.Renderer{Now: now, Team: r.Box.Address().Team, Terminal: true, Digits: letter.ShortLength(idsOf(items)), Runs: r.Runs}
}

// notices are atm's own words, of which others wrote a part (what a dialog asks, what became of a message),
// and not what somebody says.
var notices = []string{wire.TypeAck, wire.TypeNotice, wire.TypePermissionRequest, wire.TypePermissionReply}

// never is why a message is not typed, and is not tried again in this run.
func (r *runner) giveUp(t *typing, why string) error {
	for _, it := range t.items {
		r.mail.tries[it.ID] = control.MaxTries
	}
	return &injectError{outcomeFailed, why}
}

func untypable(text string, isPaste bool) string {
	switch {
	case text == "":
		return "there is nothing in it to type"
	case !isPaste && len(text) > control.MaxLine:
		return fmt.Sprintf("%d bytes do not fit into a line of this terminal", len(text))
	case len(text) > maxPasted:
		return fmt.Sprintf("%d bytes are too much to type; as a file it gets there: --attach", len(text))
	}
	return ""
}

func (r *runner) write(t *typing) error {
	p := r.prog
	isPaste := p.screen.Modes().Paste
	t.versionBefore = p.screen.Version()
	t.text = Clean(t.text)
	t.draft = t.text
	if p.driver.Plain && !isPaste {
		t.text = strings.Trim(t.text, "\n")
		t.draft = t.text[strings.LastIndexByte(t.text, '\n')+1:]
	}
	if why := untypable(t.text, isPaste); why != "" {
		return r.giveUp(t, why)
	}
	t.startedAt = r.Now()
	r.expectEcho(t.text, t.startedAt)
	data := []byte(keysOf(t.text, isPaste, p.driver.Plain))
	r.recordInput(data)
	isDone, written, failed := false, 0, error(nil)
	p.send(write{data: data, done: func(n int, err error) {
		r.post(func() { isDone, written, failed = true, n, err })
	}})
	for !isDone {
		if err := r.pause(t); err != nil {
			return err
		}
	}
	if failed != nil {
		if isPaste && written > 0 {
			p.sendKeys([]byte(pasteOff))
		}
		return &injectError{outcomeStuck, fmt.Sprintf("the program does not read: %d bytes of %d", written, len(t.text))}
	}
	t.wroteAt = r.Now()
	return nil
}

// awaitDraft waits until the text stands in the draft and the screen is quiet.
func (r *runner) awaitDraft(t *typing) error {
	p := r.prog
	return r.pauseUntil(t, func(now time.Time) (bool, error) {
		if t.startedAt.Add(maxKeyHold).Before(now) {
			r.releaseKeys()
		}
		t.isSeen = p.driver.Taken(p.look(), t.draft)
		quiet := earlier(p.outputAt.Add(r.Timing.Quiet), t.wroteAt.Add(4*r.Timing.Quiet)) // something may blink
		switch {
		case t.isSeen && !now.Before(quiet):
			return true, nil
		case r.mustWait(t.wroteAt.Add(r.Timing.Render), now):
			return false, nil
		case p.screen.Version() == t.versionBefore:
			return false, &injectError{outcomeUnverified, "the screen did not change"}
		case !t.isSeen && p.reading.Draft != "" && !p.driver.Plain && !isPartOf(p.reading.Draft, t.draft):
			return false, &injectError{outcomeUnverified, "another text stands in the draft"}
		}
		return true, nil
	})
}

// awaitReturn waits until the return key may be pressed: a program that is still taking in a paste swallows
// it, and a dialog may be coming while a frame is drawn.
func (r *runner) awaitReturn(t *typing) error {
	p := r.prog
	at := t.wroteAt.Add(max(r.Timing.BeforeReturn, p.driver.SubmitDelay(len(t.text))))
	return r.pauseUntil(t, func(now time.Time) (bool, error) {
		if why := r.returnGate(); why != "" {
			return false, &injectError{outcomeFailed, why}
		}
		if t.isMixed {
			return false, &injectError{outcomeFailed, string(control.GateTyping)}
		}
		return !r.mustWait(at, now) && (p.frameSince.IsZero() || now.Sub(p.frameSince) >= maxFrame), nil
	})
}

// submit presses the return key until the draft is gone.
func (r *runner) submit(t *typing) error {
	r.turn.startRow = r.prog.screen.Scrolled()
	r.pressReturn(t)
	if err := r.pause(t); err != nil {
		return err
	}
	isDue := false
	return r.pauseUntil(t, func(now time.Time) (bool, error) {
		isInDraft := r.prog.driver.Taken(r.prog.look(), t.draft)
		isTaken, err := r.isTaken(t, isInDraft, now)
		if !isTaken && err == nil && isInDraft && r.mayPressAgain(t, now) {
			// At the second look: on a busy machine a dialog may have been drawn that has not come yet.
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
		keys += driver.Submit // Python's prompt ends a block by an empty line
	}
	r.typeKeys([]byte(keys))
	t.pressedAt, t.pressedVersion = r.Now(), r.prog.screen.Version()
}

// isTaken reports whether a submitted text was taken; a *notTaken says that it was not, or that nobody knows.
// isThere: it still stands in the draft.
func (r *runner) isTaken(t *typing, isInDraft bool, now time.Time) (bool, error) {
	p := r.prog
	if p.driver.Accepted(p.look(), t.draft) {
		return true, nil
	}
	if r.stopping != nil {
		return false, &injectError{outcomeUnverified, string(control.GateStopping)}
	}
	if r.returnGate() != "" {
		if d := p.reading.Dialog; d != nil && (d.Kind == "trust" || d.Kind == "unknown") {
			return false, &injectError{outcomeUnverified, "a dialog came up, which may have had the return key"}
		}
		return true, nil // it was idle, and what is asked now belongs to a turn: this text's
	}
	wait := r.Timing.Accept
	if r.isSilentSince(t) {
		wait *= 3
	}
	switch {
	case !now.After(t.pressedAt.Add(wait)):
		return false, nil
	case isInDraft:
		return false, &injectError{outcomeFailed, fmt.Sprintf("it stays in the draft, after %d return keys", t.returns)}
	case t.isSeen && !t.isMixed:
		return true, nil // it stood in the draft, and is gone by our key
	}
	return false, &injectError{outcomeUnverified, "nothing shows that it was taken"}
}

// isSilentSince reports whether the program has written nothing since the return key: it may not have read it yet.
func (r *runner) isSilentSince(t *typing) bool { return r.prog.screen.Version() == t.pressedVersion }

// mayPressAgain reports whether a return key seems to be lost. To a program that is silent another one could be the
// answer to what it asks next.
func (r *runner) mayPressAgain(t *typing, now time.Time) bool {
	isEnough := t.isMixed || t.returns >= maxReturns
	return !isEnough && !r.isSilentSince(t) && !now.Before(t.pressedAt.Add(r.Timing.RetryReturn))
}

// typed takes in that the program has the text: only now are the messages read.
func (r *runner) typingDone(t *typing) {
	r.mail.typing, r.mail.failures, r.restored = nil, 0, nil
	turn, ids, forever := r.beginTurn(t.text, r.Now()), idsOf(t.items), context.Background()
	r.turn.ids = ids
	switch {
	case t.claim != nil && r.Inject != Pointer:
		t.claim.Turn = turn
		r.changeClaim(func() error {
			err := t.claim.Typed(forever)
			if _, ok := errors.AsType[*mailbox.UnloggedError](err); ok { // they are appended as soon as that can be
				r.appendForAll(wire.Event{Kind: wire.EventInjected, TurnID: turn}, ids)
			}
			return err
		})
	case t.claim != nil:
		r.changeClaim(func() error { return t.claim.NotTyped(forever) })
		r.appendForAll(wire.Event{Kind: wire.EventInjected}.With("as", "pointer"), ids)
	}
	r.addMarkers("injected:", t)
	r.writeRunInfo() // of what kind of program the mail went to
	r.releaseKeys()
}

func (r *runner) appendForAll(e wire.Event, ids []wire.ID) {
	for _, id := range ids {
		r.appendEvent(e.With("id", string(id)))
	}
}

func (r *runner) typingFailed(t *typing, outcome, reason string) {
	m, ids, wasWritten := &r.mail, idsOf(t.items), t.hasBegun()
	m.typing = nil
	r.Log.Warn("typing", "outcome", outcome, "reason", reason)
	// The lines above the draft's were submitted: they must not run again.
	isInPart := wasWritten && t.draft != t.text
	if isInPart {
		outcome = outcomeUnverified
	}
	r.appendForAll(wire.Event{Kind: wire.EventInjectionFailed}.With("outcome", outcome).With("reason", reason), ids)
	hasEnded := r.prog == nil && wasWritten // perhaps by this text
	for _, id := range ids {
		switch {
		case isInPart:
			m.tries[id] = control.MaxTries
		case outcome != outcomeFailed || hasEnded:
			m.tries[id]++
		}
	}
	r.addMarkers("failed:", t)
	isCleared := !wasWritten || r.clearDraft(t)
	if t.claim == nil {
		r.reportError("the first prompt was not typed: " + reason)
	} else {
		letGo := t.claim.MaybeTyped // a program that hung may take it yet
		if isCleared && t.returns == 0 && !isInPart {
			letGo = t.claim.NotTyped
		}
		r.changeClaim(func() error { return letGo(context.Background()) })
	}
	isNotSubmitted := !t.isSubmitted() && r.prog != nil && !r.prog.driver.Plain
	if wasWritten && (outcome == outcomeFailed || isNotSubmitted) {
		// By all that its screen shows the program has not taken it, and nothing may happen until the next try. (It may
		// have it all the same, after return keys or a person's: the claim is in doubt, so the message is marked.)
		m.requeue(ids)
		m.retryAt = r.Now().Add(min(retryFirst<<min(m.failures, 10), retryLast))
		m.failures++
	}
	r.releaseKeys()
}

// clearDraft takes a text that was not taken out of the draft, and reports whether it did: only what is ours is
// cleared, never a person's text.
func (r *runner) clearDraft(t *typing) bool {
	if !t.isMixed {
		// It may come up in the draft late: there it would keep all mail out.
		r.restored = &restoredDraft{text: t.draft, since: t.startedAt, silentVersion: t.versionBefore, isFailed: true}
		if t.isSubmitted() {
			r.restored.silentVersion = t.pressedVersion
		}
	}
	p := r.prog
	if p == nil || t.isSubmitted() && r.isSilentSince(t) { // it may ask something by the time it reads the keys
		return false
	}
	if r.returnGate() != "" || !p.driver.Taken(p.look(), t.draft) || !isPartOf(p.reading.Draft, t.draft) {
		return false
	}
	p.sendKeys(p.driver.ClearDraft(p.reading.Draft)...)
	return true
}

func idsOf(items []*mailbox.Item) []wire.ID {
	ids := make([]wire.ID, 0, len(items))
	for _, it := range items {
		ids = append(ids, it.ID)
	}
	return ids
}

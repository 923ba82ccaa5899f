package ptyrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/wire"
)

// How a text gets into the program: stepMail goes from the top to the bottom of this file, and waits where
// the loop has to see more of the screen. The gates are open: compose or claim; claimed: render the
// messages and look at the gates again; write it into the terminal; stepRendering until it stands in the
// draft and the screen is quiet; stepReturning until the return key may be pressed, the gates once more;
// stepTaking until the draft is gone: only now are the messages read. typed and failed are the two ends.

// mail is what is to be typed.
type mail struct {
	queue      []wire.ID       // named by the reducer to be handed over, in order
	typing     *typing         // under way
	isPrompted bool            // the first prompt was typed, or given up
	retryAt    time.Time       // after a failure
	tries      map[wire.ID]int // how often a message was typed and perhaps not taken
	failures   int             // in a row
}

// step is how far a text is on its way into the program.
type step int

const (
	claiming  step = iota // apart from the loop
	writing               // into the terminal
	rendering             // until it stands in the draft
	returning             // until the return key may be pressed
	taking                // until the draft is gone
)

// typing is one text on its way in.
type typing struct {
	claim    *mailbox.Claim  // nil: no message's, as the first prompt
	items    []*mailbox.Item // of the claim, which the text holds
	text     string
	draft    string // what of the text is to stand in the draft: all, or its last line
	step     step
	since    time.Time // when the step began
	began    time.Time // when the first byte was written
	wroteAt  time.Time // when the last byte was
	version  uint64    // of the screen, before
	isPaste  bool
	isSeen   bool // in the draft
	returns  int  // return keys pressed
	isResend bool // it holds a text whose turn was interrupted
	isMixed  bool // with what a person typed, who could not be held any longer
}

// The outcomes of a text that was not taken, as events tell them: it was not seen, on the screen or to be
// taken; it stood in the draft and stayed there; the program did not read.
const outcomeUnverified, outcomeFailed, outcomeStuck = "unverified", "failed", "stuck"

const (
	maxReturns = 3    // for one text
	maxClaimed = 64   // messages at once
	maxLine    = 4000 // a terminal line that is edited by the kernel keeps 4095 bytes, and loses the rest
	maxPasted  = 64 << 10
	maxTried   = 3 // times is a message typed that the program may have had, or that has ended it

	retryClaim = time.Second
	retryFirst = 5 * time.Second // a text that the program did not take
	retryLast  = 5 * time.Minute
)

func (t *typing) isUnderWay() bool     { return t != nil && t.step >= writing }
func (t *typing) isBeforeSubmit() bool { return t.isUnderWay() && t.step < taking }

// isSubmitted reports whether the return key was pressed, and nothing is known of it yet.
func (t *typing) isSubmitted() bool { return t != nil && t.step == taking }

func (t *typing) enter(s step, now time.Time) { t.step, t.since = s, now }

// stepMail carries on with what is being typed, or begins with what is queued.
func (r *runner) stepMail(now time.Time) {
	m := &r.mail
	if m.typing != nil {
		r.stepTyping(now)
		return
	}
	isFirst := !m.isPrompted && r.Prompt != "" && r.Inject != Off
	isResend := r.canResend(now)
	switch {
	case !isFirst && !isResend && len(m.queue) == 0:
	case r.awaits(m.retryAt, now) || r.gate(now) != control.GateOpen:
	case isFirst:
		m.isPrompted, m.typing = true, &typing{text: r.Prompt}
		r.write(now)
	case isResend:
		m.typing = &typing{}
		r.addResend(m.typing)
		r.write(now)
	case r.knowsSessions(m.queue, now):
		r.claim(now)
	}
}

func (r *runner) claim(now time.Time) {
	m := &r.mail
	ids := slices.Clone(m.queue[:min(len(m.queue), maxClaimed)])
	if r.prog.driver.Plain {
		ids = ids[:1]
	}
	m.typing = &typing{step: claiming, since: now}
	r.claims.do(func() {
		if len(ids) > 1 && r.Inject != Pointer {
			ids = ids[:r.fitting(ids, now)]
		}
		c, err := r.Hold.Claim(r.ctx, ids)
		if !r.post(func() { r.claimed(ids, c, err) }) && c != nil {
			c.NotTyped(context.Background())
		}
	})
}

// fitting is how many of the messages go in together: at least one.
func (r *runner) fitting(ids []wire.ID, now time.Time) int {
	var items []*mailbox.Item
	for i, id := range ids {
		if it, err := r.Box.Get(id); err == nil { // else it is gone, which the claim will see
			items = append(items, it)
		}
		if len(items) > 1 && len(letterText(items, nil, r.renderer(now, items))) > maxTyped {
			return i
		}
	}
	return len(ids)
}

// claimed goes on with the messages that are ours to type.
func (r *runner) claimed(ids []wire.ID, c *mailbox.Claim, err error) {
	now, t := r.Now(), r.mail.typing
	if err != nil {
		r.mail.typing, r.mail.retryAt = nil, now.Add(retryClaim)
		r.Log.Error("claiming messages", "err", err)
		return
	}
	r.mail.unqueue(ids...)
	for _, id := range c.Leased { // somebody holds it: how long, the reducer has to know
		r.messageChanged(id)
	}
	t.claim, t.items = c, c.Items
	if len(c.Items) == 0 {
		r.mail.typing = nil // read meanwhile, or handed over by a hook
		return
	}
	if r.prog != nil {
		r.refresh(now)
	}
	gate := r.gate(now)
	why, rest := r.withheld(c.Items)
	switch {
	case gate != control.GateOpen:
		why, rest = string(gate), idsOf(c.Items)
	case why == "" && r.prog.driver.Plain && slices.Contains(notices, c.Items[0].Type):
		why, rest = "what atm itself says is not typed into a shell, which would run it", nil
	}
	if why != "" {
		r.mail.requeue(rest)
		r.failed(outcomeFailed, why)
		return
	}
	l := r.renderer(now, c.Items)
	switch {
	case r.Inject == Pointer:
		t.text = pointerText(c.Items, l)
	case r.prog.driver.Plain:
		t.text = c.Items[0].Body
	default:
		t.text = letterText(c.Items, c.Repeat, l)
	}
	r.addResend(t)
	r.mark("inject:", t)
	r.write(now)
}

func (r *runner) mark(what string, t *typing) {
	for _, it := range t.items {
		r.recording.Marker(what + string(it.ID))
	}
}

func (r *runner) renderer(now time.Time, items []*mailbox.Item) *letter.Renderer {
	return &letter.Renderer{Now: now, Team: r.Box.Address().Team, Terminal: true, Digits: letter.ShortLength(idsOf(items))}
}

// notices are atm's own words, of which others wrote a part (what a dialog asks, what became of a message),
// and not what somebody says.
var notices = []string{wire.TypeAck, wire.TypeNotice, wire.TypePermissionRequest, wire.TypePermissionReply}

func untypable(text string, isPaste bool) string {
	switch {
	case text == "":
		return "there is nothing in it to type"
	case !isPaste && len(text) > maxLine:
		return fmt.Sprintf("%d bytes do not fit into a line of this terminal", len(text))
	case len(text) > maxPasted:
		return fmt.Sprintf("%d bytes are too much to type", len(text))
	}
	return ""
}

func (r *runner) write(now time.Time) {
	t, p := r.mail.typing, r.prog
	t.isPaste, t.version = p.screen.Modes().Paste, p.screen.Version()
	t.text = clean(t.text)
	t.draft = t.text
	if p.driver.Plain && !t.isPaste {
		t.text = strings.Trim(t.text, "\n")
		t.draft = t.text[strings.LastIndexByte(t.text, '\n')+1:]
	}
	if why := untypable(t.text, t.isPaste); why != "" {
		r.failed(outcomeFailed, why)
		return
	}
	t.enter(writing, now)
	t.began = now
	r.expectEcho(t.text, now)
	data := []byte(keysOf(t.text, t.isPaste, p.driver.Plain))
	r.recordInput(data)
	p.send(write{data: data, done: func(n int, err error) {
		r.post(func() {
			switch {
			case r.mail.typing != t || r.prog != p:
			case err == nil:
				t.wroteAt = r.Now()
				t.enter(rendering, t.wroteAt)
			default:
				if t.isPaste && n > 0 {
					p.put([]byte(pasteOff))
				}
				r.failed(outcomeStuck, fmt.Sprintf("the program does not read: %d bytes of %d", n, len(t.text)))
			}
		})
	}})
}

func (r *runner) stepTyping(now time.Time) {
	t := r.mail.typing
	if t.step > writing {
		r.refresh(now) // what the program has drawn decides here
	}
	switch t.step {
	case rendering:
		r.stepRendering(t, now)
	case returning:
		r.stepReturning(t, now)
	case taking:
		r.stepTaking(t, now)
	}
}

// stepRendering waits until the text stands in the draft and the screen is quiet.
func (r *runner) stepRendering(t *typing, now time.Time) {
	p := r.prog
	if t.began.Add(maxHold).Before(now) {
		r.releaseKeys()
	}
	t.isSeen = p.driver.Taken(p.look(), t.draft)
	quiet := earlier(p.changed.Add(r.Waits.Quiet), t.since.Add(4*r.Waits.Quiet)) // something may blink
	switch {
	case t.isSeen && !now.Before(quiet):
	case r.awaits(t.since.Add(r.Waits.Render), now):
		r.wakeAt(now.Add(2 * judgeAfter))
		return
	case p.screen.Version() == t.version:
		r.failed(outcomeUnverified, "the screen did not change")
		return
	}
	t.enter(returning, now)
	r.stepReturning(t, now)
}

// stepReturning waits until the return key may be pressed: a program that is still taking in a paste
// swallows it.
func (r *runner) stepReturning(t *typing, now time.Time) {
	p, why := r.prog, r.returnGate()
	if why == "" && t.isMixed {
		why = string(control.GateTyping)
	}
	if why != "" {
		r.failed(outcomeFailed, why)
		return
	}
	if r.awaits(t.wroteAt.Add(max(r.Waits.Return, p.driver.SubmitDelay(len(t.text)))), now) {
		return
	}
	if p.frame.IsZero() || now.Sub(p.frame) >= longFrame { // else a dialog may be coming
		r.pressReturn(t, now)
	}
	r.wakeAt(now.Add(judgeAfter))
}

func (r *runner) pressReturn(t *typing, now time.Time) {
	if t.returns == 0 {
		r.turn.from = r.prog.screen.Scrolled()
	}
	t.enter(taking, now)
	t.returns++
	keys := driver.Submit
	if t.draft != t.text && strings.TrimLeft(t.draft, " \t") != t.draft {
		keys += driver.Submit // Python's prompt ends a block by an empty line
	}
	r.typeKeys([]byte(keys))
}

func (r *runner) stepTaking(t *typing, now time.Time) {
	p, look := r.prog, r.prog.look()
	isThere := p.driver.Taken(look, t.draft)
	isLate := now.After(t.since.Add(r.Waits.Taken))
	d, blocked := p.reading.Dialog, r.returnGate() != ""
	switch {
	case p.driver.Accepted(look, t.draft):
		r.typed(now)
	case r.stopping != nil:
		r.failed(outcomeUnverified, string(control.GateStopping))
	case blocked && d != nil && (d.Kind == "trust" || d.Kind == "unknown"):
		r.failed(outcomeUnverified, "a dialog came up, which may have had the return key")
	case blocked:
		r.typed(now) // it was idle, and what is asked now belongs to a turn: this text's
	case isLate && !isThere && t.isSeen && !t.isMixed:
		r.typed(now) // it stood in the draft, and is gone by our key
	case isLate && isThere:
		r.failed(outcomeFailed, fmt.Sprintf("it stays in the draft, after %d return keys", t.returns))
	case isLate:
		r.failed(outcomeUnverified, "nothing shows that it was taken")
	case isThere && !t.isMixed && t.returns < maxReturns && !now.Before(t.since.Add(r.Waits.Again)):
		r.pressReturn(t, now)
	}
	r.wakeAt(now.Add(2 * judgeAfter))
}

// typed takes in that the program has the text: only now are the messages read.
func (r *runner) typed(now time.Time) {
	t := r.mail.typing
	r.mail.typing, r.mail.failures = nil, 0
	if r.restored = nil; t.isResend {
		r.resend = resend{}
	}
	turn, ids, forever := r.beginTurn(t.text, now), idsOf(t.items), context.Background()
	switch {
	case t.claim != nil && r.Inject != Pointer:
		t.claim.Turn = turn
		r.changeClaim(func() error {
			err := t.claim.Typed(forever)
			if _, ok := errors.AsType[*mailbox.UnloggedError](err); ok { // the event writer tries until it is said
				r.sayAll(wire.Event{Kind: wire.EventInjected, TurnID: turn}, ids)
			}
			return err
		})
	case t.claim != nil:
		r.changeClaim(func() error { return t.claim.NotTyped(forever) })
		r.sayAll(wire.Event{Kind: wire.EventInjected}.With("as", "pointer"), ids)
	}
	r.mark("injected:", t)
	r.releaseKeys()
}

// sayAll appends an event for each message.
func (r *runner) sayAll(e wire.Event, ids []wire.ID) {
	for _, id := range ids {
		r.say(e.With("id", string(id)))
	}
}

// failed takes in that the program has not got the text.
func (r *runner) failed(outcome, reason string) {
	t, m, p := r.mail.typing, &r.mail, r.prog
	m.typing = nil
	r.Log.Warn("typing", "outcome", outcome, "reason", reason)
	wasWritten := !t.began.IsZero()
	// The lines above the draft's were submitted: they must not run again.
	isInPart := wasWritten && t.draft != t.text
	if isInPart {
		outcome = outcomeUnverified
	}
	// Perhaps the program has it, or it is the text that has ended the program.
	isTry := outcome != outcomeFailed || p == nil && wasWritten
	r.sayAll(wire.Event{Kind: wire.EventInjectionFailed}.With("outcome", outcome).With("reason", reason), idsOf(t.items))
	for _, it := range t.items {
		if isTry {
			m.tries[it.ID]++
		}
		if isInPart {
			m.tries[it.ID] = maxTried
		}
	}
	r.mark("failed:", t)
	if t.isResend && isTry {
		r.noteResendFailed()
	}
	if len(t.items) == 0 && !t.isResend {
		r.tell("the first prompt was not typed: " + reason)
	}
	isCleared := !wasWritten
	if wasWritten && !t.isMixed {
		// It may come up in the draft late: there it would keep all mail out.
		r.restored = &restoredDraft{text: t.draft, at: t.began}
	}
	// Only what is ours is cleared, never a person's text.
	if p != nil && wasWritten && r.returnGate() == "" && p.driver.Taken(p.look(), t.draft) && isOnlyOurs(p.reading, t.draft) {
		p.put(p.driver.ClearDraft(p.reading.Draft)...)
		isCleared = true
	}
	if c := t.claim; c != nil {
		letGo := c.MaybeTyped // a program that hung may take it yet
		if isCleared && t.returns == 0 && !isInPart {
			letGo = c.NotTyped
		}
		r.changeClaim(func() error { return letGo(context.Background()) })
	}
	if outcome == outcomeFailed && wasWritten {
		// By all that its screen shows the program has not taken it, and nothing may happen until the next
		// try. (It may have it all the same, after return keys or a person's: the claim is in doubt, so the
		// message is marked.)
		m.unqueue(idsOf(t.items)...)
		m.requeue(m.notTiredOf(idsOf(t.items)))
		m.retryAt = r.Now().Add(min(retryFirst<<min(m.failures, 10), retryLast))
		m.failures++
	}
	r.releaseKeys()
}

// isOnlyOurs reports whether a draft is a text of ours and nothing more.
func isOnlyOurs(rd driver.Reading, text string) bool {
	return rd.HasDraft && (withoutBlanks(text) == withoutBlanks(rd.Draft) || strings.HasPrefix(rd.Draft, "["))
}

// withoutBlanks is a text without what wrapping changes.
func withoutBlanks(s string) string {
	return strings.NewReplacer(" ", "", "\n", "", "\t", "").Replace(s)
}

// abandonTyping gives up what is being typed, for something came between.
func (r *runner) abandonTyping(reason string) {
	t := r.mail.typing
	switch {
	case t.isSubmitted() && r.prog == nil:
		r.failed(outcomeUnverified, reason+", after the return key")
	case t.isBeforeSubmit():
		r.failed(outcomeFailed, reason)
	}
	// A claim that is under way sees the gates, and what was submitted the screen.
}

// changeClaim says what became of a claim, in order. What fails is tried again until the run is over,
// beside what is claimed next: one claim that is stuck blocks no other mail.
func (r *runner) changeClaim(change func() error) {
	r.claims.do(func() {
		err := change()
		if err == nil {
			return
		}
		r.wg.Go(func() {
			for pause := 100 * time.Millisecond; err != nil; pause = min(2*pause, 5*time.Second) {
				r.Log.Error("changing a claim", "err", err)
				select {
				case <-time.After(pause):
				case <-r.over:
					return
				}
				err = change()
			}
		})
	})
}

func (m *mail) enqueue(ids []wire.ID) {
	m.unqueue(ids...)
	m.queue = append(m.queue, m.notTiredOf(ids)...)
	m.retryAt = time.Time{} // something has happened
}

// notTiredOf are those messages that were not tried too often.
func (m *mail) notTiredOf(ids []wire.ID) []wire.ID {
	return slices.DeleteFunc(slices.Clone(ids), func(id wire.ID) bool { return m.tries[id] >= maxTried })
}

func (m *mail) unqueue(ids ...wire.ID) {
	m.queue = slices.DeleteFunc(m.queue, func(id wire.ID) bool { return slices.Contains(ids, id) })
}

func (m *mail) requeue(ids []wire.ID) { m.queue = append(slices.Clone(ids), m.queue...) }

func idsOf(items []*mailbox.Item) []wire.ID {
	ids := make([]wire.ID, 0, len(items))
	for _, it := range items {
		ids = append(ids, it.ID)
	}
	return ids
}

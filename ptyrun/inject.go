package ptyrun

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// step is how far a text is on its way into the program.
type step int

const (
	claiming  step = iota // under the reader's lock, apart from the loop
	writing               // into the terminal
	rendering             // until it stands in the draft
	returning             // until the return key may be pressed
	taking                // until the draft is gone
)

// typing is one text on its way in.
type typing struct {
	claim   *mailbox.Claim  // nil: the first prompt
	items   []*mailbox.Item // of the claim, which the text holds
	text    string
	step    step
	at      time.Time // when the step began
	began   time.Time // when the first byte was written
	last    time.Time // when the last byte was
	version uint64    // of the screen, before
	pasted  bool
	seen    bool // in the draft
	returns int
	again   bool // it holds what is told again
	mixed   bool // with what a person typed, who could not be held any longer
}

// The outcomes of a text that was not taken, as events tell them.
const (
	unverified = "unverified" // it was not seen: not on the screen, or not to be taken
	failed     = "failed"     // it stood in the draft, and stayed there
	stuck      = "stuck"      // the program did not read
)

// maxReturns is how often the return key is pressed for one text.
const maxReturns = 3

// maxClaimed is how many messages are claimed at once.
const maxClaimed = 64

// returned reports whether the return key was pressed, and nothing is known of
// it yet.
func (t *typing) returned() bool { return t != nil && t.step == taking }

// hand carries on with what is being typed, or begins with what is queued.
func (r *runner) hand(now time.Time) (next time.Time) {
	if r.typing != nil {
		return r.carryOn(now)
	}
	first := !r.prompted && r.Prompt != "" && r.Inject != Off
	again := r.retold(now)
	if !first && !again && len(r.queue) == 0 {
		return next
	}
	if now.Before(r.retry) {
		return r.retry
	}
	why, wait := r.gate(now)
	if why != "" {
		return wait
	}
	if first {
		r.prompted = true
		r.typing = &typing{text: clean(r.Prompt)}
		r.write(now)
		return r.carryOn(now)
	}
	if again {
		r.typing = &typing{}
		r.tellAgain(r.typing)
		r.write(now)
		return r.carryOn(now)
	}
	if ok, at := r.known(r.queue, now); !ok {
		return at
	}
	ids := r.queue[:min(len(r.queue), maxClaimed)]
	if r.prog.driver.Plain {
		ids = ids[:1]
	}
	r.typing = &typing{step: claiming, at: now}
	ids = append([]wire.ID(nil), ids...)
	together := !r.prog.driver.Plain && r.Inject != Pointer
	r.clerk.do(func() {
		if together {
			ids = ids[:r.fitting(ids, now)]
		}
		c, err := r.Box.Claim(r.ctx, ids)
		if !r.post(func() { r.claimed(ids, c, err) }) && c != nil {
			c.NotTyped(context.Background())
		}
	})
	return next
}

// claimed goes on with the messages that are ours to type.
func (r *runner) claimed(ids []wire.ID, c *mailbox.Claim, err error) {
	now := r.Now()
	t := r.typing
	if err != nil {
		r.typing = nil
		r.retry = now.Add(time.Second)
		r.log.Error("claiming messages", "err", err)
		return
	}
	r.unqueue(ids...)
	r.leased(c.Leased)
	t.claim = c
	if len(c.Items) == 0 {
		r.typing = nil // read meanwhile, or in a hook's hands
		return
	}
	if r.prog != nil {
		r.freshen(now)
	}
	if why, _ := r.gate(now); why != "" {
		t.items = c.Items
		r.requeue(idsOf(c.Items))
		r.fail(failed, why)
		return
	}
	why, rest := r.withheld(c.Items)
	if r.prog != nil && r.prog.driver.Plain && !said(c.Items[0].Message) {
		why, rest = "what atm itself says is not typed into a shell, which would run it", nil
	}
	if why != "" {
		t.items = c.Items
		r.requeue(rest)
		r.fail(failed, why)
		return
	}
	l := r.renderer(now, c.Items)
	switch {
	case r.Inject == Pointer:
		t.text = pointer(c.Items, l, r.Flags)
	case r.prog != nil && r.prog.driver.Plain:
		t.text = c.Items[0].Body
	default:
		t.text = typed(c.Items, c.Repeat, l, r.Flags)
	}
	t.items = c.Items
	t.text = clean(t.text)
	r.tellAgain(t)
	for _, it := range t.items {
		r.record.Marker("inject:" + string(it.ID))
	}
	if why := r.untypable(t); why != "" {
		r.fail(failed, why)
		return
	}
	r.write(now)
}

// said reports whether a message is what somebody says, and no notice of atm's own
// of which others wrote a part: what a dialog asks, what became of a message.
func said(m *wire.Message) bool {
	switch m.Type {
	case wire.TypeAck, wire.TypeNotice, wire.TypePermissionRequest, wire.TypePermissionReply:
		return false
	}
	return true
}

func (r *runner) renderer(now time.Time, items []*mailbox.Item) *letter.Renderer {
	return &letter.Renderer{Now: now, Team: r.Box.Address().Team, Terminal: true, Digits: letter.ShortLength(idsOf(items))}
}

// fitting is how many of the messages go in together: at least one.
func (r *runner) fitting(ids []wire.ID, now time.Time) int {
	var items []*mailbox.Item
	for i, id := range ids {
		it, err := r.Box.Get(id)
		if err != nil {
			continue // gone: who claims it will see
		}
		items = append(items, it)
		if len(items) > 1 && len(typed(items, nil, r.renderer(now, items), r.Flags)) > maxTyped {
			return i
		}
	}
	return len(ids)
}

// untypable says why a text cannot be typed into this program at all.
func (r *runner) untypable(t *typing) string {
	switch paste := r.prog.screen.Modes().Paste; {
	case t.text == "":
		return "there is nothing in it to type"
	case !paste && len(t.text) > maxLine:
		return fmt.Sprintf("%d bytes do not fit into a line of this terminal", len(t.text))
	case len(t.text) > maxPasted:
		return fmt.Sprintf("%d bytes are too much to type", len(t.text))
	}
	return ""
}

const (
	maxLine   = 4000 // a terminal line that is edited by the kernel keeps 4095 bytes, and loses the rest
	maxPasted = 64 << 10
)

// write puts the text into the terminal.
func (r *runner) write(now time.Time) {
	t, p := r.typing, r.prog
	t.step, t.at, t.began = writing, now, now
	t.version, t.pasted = p.screen.Version(), p.screen.Modes().Paste
	r.echoes(t.text, now)
	data := []byte(keys(t.text, t.pasted))
	r.recordInput(data)
	p.out.send(write{data: data, done: func(n int, err error) {
		r.post(func() { r.written(t, p, n, err) })
	}})
}

func (r *runner) written(t *typing, p *program, n int, err error) {
	if r.typing != t || r.prog != p {
		return
	}
	if err != nil {
		if t.pasted && n > 0 {
			p.out.put([]byte(pasteOff))
		}
		r.fail(stuck, fmt.Sprintf("the program does not read: %d bytes of %d", n, len(t.text)))
		return
	}
	now := r.Now()
	t.step, t.at, t.last = rendering, now, now
}

// carryOn looks where the text is.
func (r *runner) carryOn(now time.Time) (next time.Time) {
	t := r.typing
	p := r.prog
	if t.step <= writing {
		return next
	}
	r.freshen(now) // what the program has drawn decides here
	look := p.lookAt()
	switch t.step {
	case rendering:
		if t.began.Add(longHold).Before(now) {
			r.flush()
		}
		t.seen = p.driver.Taken(look, t.text)
		quiet := p.changed.Add(r.waits.Quiet)
		until := t.at.Add(r.waits.Render)
		switch {
		case t.seen && !now.Before(earlier(quiet, t.at.Add(4*r.waits.Quiet))): // something may blink
		case now.Before(until):
			return earlier(until, now.Add(judgeAfter*2))
		case p.screen.Version() == t.version:
			r.fail(unverified, "the screen did not change")
			return next
		}
		t.step, t.at = returning, now
		fallthrough
	case returning:
		if why := r.still(); why != "" {
			r.fail(failed, why)
			return next
		}
		if t.mixed {
			r.fail(failed, "a person types")
			return next
		}
		if at := t.last.Add(r.pause(t)); now.Before(at) {
			return at
		}
		if !p.frame.IsZero() && now.Sub(p.frame) < longFrame {
			return now.Add(judgeAfter) // a dialog may be coming
		}
		r.pressReturn(now)
		return now.Add(judgeAfter)
	case taking:
		switch there := p.driver.Taken(look, t.text); {
		case p.driver.Accepted(look, t.text):
			r.taken(now)
		case r.stopping != nil:
			r.fail(unverified, "it is being stopped")
		case r.still() != "" && p.reading.Dialog != nil && (p.reading.Dialog.Kind == "trust" || p.reading.Dialog.Kind == "unknown"):
			r.fail(unverified, "a dialog came up, which may have had the return key")
		case r.still() != "":
			// It was idle, and what is asked now belongs to a turn: this text's.
			r.taken(now)
		case now.After(t.at.Add(r.waits.Taken)) && !there && t.seen && !t.mixed:
			r.taken(now) // it stood in the draft, and is gone by our key
		case now.After(t.at.Add(r.waits.Taken)):
			if there {
				r.fail(failed, fmt.Sprintf("it stays in the draft, after %d return keys", t.returns))
			} else {
				r.fail(unverified, "nothing shows that it was taken")
			}
		case there && !t.mixed && t.returns < maxReturns && !now.Before(t.at.Add(r.waits.Again)):
			r.pressReturn(now)
		}
		if r.typing != nil {
			return now.Add(judgeAfter * 2)
		}
	}
	return next
}

// pause is how long the return key waits behind the last byte: a program that
// is still taking in a paste swallows it.
func (r *runner) pause(t *typing) time.Duration {
	return max(r.waits.Return, r.prog.driver.SubmitDelay(len(t.text)))
}

func (r *runner) pressReturn(now time.Time) {
	t, p := r.typing, r.prog
	if t.returns == 0 {
		r.turnFrom = p.screen.Scrolled()
	}
	t.step, t.at = taking, now
	t.returns++
	r.recordInput([]byte(driver.Submit))
	p.out.put([]byte(driver.Submit))
}

// taken takes in that the program has the text: only now are the messages read.
func (r *runner) taken(now time.Time) {
	t := r.typing
	r.typing, r.misses = nil, 0
	p := r.prog
	p.told, p.detail, p.since, p.worked = reducer.Thinking, "", now, atWork(p.reading)
	if p.reading.Prompt {
		p.prompt = now
	}
	r.turnOurs, r.turnText = true, t.text
	if r.undone = nil; t.again {
		r.retell, r.retries = "", 0
	}
	turn := r.state.Turn().ID
	switch {
	case !r.hooked():
		turn = string(wire.NewID())
		r.say(wire.Event{Kind: "turn_started", TurnID: turn}.With("prompt", clip(t.text, maxResponse)))
	case r.state.Turn().Status != reducer.TurnBusy:
		turn = "" // Codex shows a message before its hook has named the turn
	}
	if t.claim != nil && r.Inject != Pointer {
		ids := idsOf(t.items)
		t.claim.Turn = turn
		r.surely("marking what was typed", func(ctx context.Context) error {
			err := t.claim.Typed(ctx, ids...)
			if u := (*mailbox.UnloggedError)(nil); errors.As(err, &u) {
				for _, id := range ids { // the ledger tries until it is said
					r.say(wire.Event{Kind: wire.EventInjected, TurnID: turn}.With("id", string(id)))
				}
			}
			return err
		})
	} else if t.claim != nil {
		r.giveBack(t.claim)
		for _, it := range t.items {
			r.say(wire.Event{Kind: wire.EventInjected}.With("id", string(it.ID)).With("as", "pointer"))
		}
	}
	for _, it := range t.items {
		r.record.Marker("injected:" + string(it.ID))
	}
	r.flush()
}

// fail takes in that the program has not got the text.
func (r *runner) fail(outcome, reason string) {
	t := r.typing
	if t == nil {
		return
	}
	r.typing = nil
	r.log.Warn("typing", "outcome", outcome, "reason", reason)
	deadly := r.prog == nil && !t.began.IsZero() // it may be the text that has ended the program
	for _, it := range t.items {
		r.say(wire.Event{Kind: wire.EventInjectionFailed}.With("id", string(it.ID)).With("outcome", outcome).With("reason", reason))
		r.record.Marker("failed:" + string(it.ID))
		if outcome != failed || deadly {
			r.tried[it.ID]++
		}
	}
	if t.again && (outcome != failed || deadly) {
		if r.retries++; r.retries == maxTried {
			r.log.Error("telling again what was interrupted: given up", "text", clip(r.retell, 200))
			r.retell, r.retries = "", 0
		}
	}
	cleared := t.began.IsZero()
	if !cleared && !t.mixed {
		// It may come up in the draft late: there it would keep all mail out.
		r.undone = &undone{text: t.text, at: t.began}
	}
	if p := r.prog; p != nil && !cleared && r.still() == "" {
		// Only what is ours is cleared, never a person's text.
		if look := p.lookAt(); p.driver.Taken(look, t.text) && onlyOurs(p.reading, t.text) {
			for _, k := range p.driver.ClearDraft(p.reading.Draft) {
				p.out.put(k)
			}
			cleared = true
		}
	}
	switch c := t.claim; {
	case c == nil:
	case cleared && t.returns == 0:
		r.giveBack(c)
	default: // a program that hung may take it yet
		r.surely("letting go of messages", func(ctx context.Context) error { return c.MaybeTyped(ctx) })
	}
	if outcome == failed && !t.began.IsZero() {
		r.later(idsOf(t.items))
	}
	r.flush()
}

// How often a message is typed that the program may have had, or that has ended
// it. And after how long a text is tried again that the program did not take.
const (
	maxTried   = 3
	firstLater = 5 * time.Second
	maxLater   = 5 * time.Minute
)

// later queues messages again that the program has not taken by all that its
// screen shows, though nothing happens until then. (It may have them all the same,
// after return keys or a person's: their claim is in doubt, so they are marked.)
func (r *runner) later(ids []wire.ID) {
	r.unqueue(ids...)
	r.requeue(r.untired(ids))
	r.retry = r.Now().Add(min(firstLater<<min(r.misses, 10), maxLater))
	r.misses++
}

// enqueue queues messages that are to be typed now.
func (r *runner) enqueue(ids []wire.ID) {
	r.unqueue(ids...)
	r.queue = append(r.queue, r.untired(ids)...)
	r.retry = time.Time{} // something has happened
}

// untired are those messages that were not tried too often.
func (r *runner) untired(ids []wire.ID) (out []wire.ID) {
	for _, id := range ids {
		if r.tried[id] < maxTried {
			out = append(out, id)
		}
	}
	return out
}

// onlyOurs reports whether a draft is a text of ours and nothing more.
func onlyOurs(rd driver.Reading, text string) bool {
	return rd.HasDraft && (squeezed(text) == squeezed(rd.Draft) || len(rd.Draft) > 0 && rd.Draft[0] == '[')
}

// squeezed is a text without what wrapping changes.
func squeezed(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if c := s[i]; c != ' ' && c != '\n' && c != '\t' {
			out = append(out, c)
		}
	}
	return string(out)
}

// drop gives up what is being typed, for something came between.
func (r *runner) drop(reason string) {
	switch t := r.typing; {
	case t == nil || t.step == claiming:
	case t.step == taking && r.prog == nil:
		r.fail(unverified, reason+", after the return key")
	case t.step == taking:
		// It is known by what the screen shows now.
	default:
		r.fail(failed, reason)
	}
}

// giveBack lets go of a claim, or of some of it.
func (r *runner) giveBack(c *mailbox.Claim, ids ...wire.ID) {
	if len(ids) == 0 {
		ids = idsOf(c.Items)
	}
	r.surely("letting go of messages", func(ctx context.Context) error { return c.NotTyped(ctx, ids...) })
}

// surely has the clerk do something to a claim, again and again until it is
// done or the run is over: what stays in hand nobody reads, and nobody types.
func (r *runner) surely(what string, do func(context.Context) error) {
	r.clerk.do(func() {
		for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
			err := do(context.Background())
			if err == nil {
				return
			}
			r.log.Error(what, "err", err)
			select {
			case <-time.After(pause):
			case <-r.over:
				return
			}
		}
	})
}

func (r *runner) unqueue(ids ...wire.ID) {
	gone := map[wire.ID]bool{}
	for _, id := range ids {
		gone[id] = true
	}
	left := r.queue[:0]
	for _, id := range r.queue {
		if !gone[id] {
			left = append(left, id)
		}
	}
	r.queue = left
}

func (r *runner) requeue(ids []wire.ID) { r.queue = append(append([]wire.ID(nil), ids...), r.queue...) }

func idsOf(items []*mailbox.Item) []wire.ID {
	out := make([]wire.ID, 0, len(items))
	for _, it := range items {
		out = append(out, it.ID)
	}
	return out
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// recordInput records what is typed, where that was asked for.
func (r *runner) recordInput(p []byte) {
	if r.Input {
		r.record.Input(p)
	}
}

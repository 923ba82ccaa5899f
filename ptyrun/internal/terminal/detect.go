package terminal

import (
	"time"

	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

const (
	readDelay = 20 * time.Millisecond // from output to reading the screen, so that a burst is read once
	maxFrame  = time.Second           // after which an open frame counts as closed
)

func (p *Terminal) scheduleRead(now time.Time) {
	if p.outputAt = now; p.nextRead.IsZero() {
		p.nextRead = now.Add(readDelay)
	}
}

// readScreen reads the screen, unless a frame is open.
func (p *Terminal) readScreen(now time.Time) {
	p.nextRead = time.Time{}
	if !p.emulator.Modes().Sync {
		p.frameSince = time.Time{}
	} else if p.frameSince.IsZero() {
		p.frameSince = now
	}
	if !p.frameSince.IsZero() && now.Sub(p.frameSince) < maxFrame {
		p.nextRead = now.Add(readDelay)
		return
	}
	if p.readVersion != 0 && p.readVersion == p.emulator.Version() {
		return
	}
	p.readVersion = p.emulator.Version()
	before := p.reading
	p.reading = p.driver.Read(p.look(), before)
	p.noteExcess()
	if before.Activity != p.reading.Activity || before.Detail != p.reading.Detail || fingerprint(before.Dialog) != fingerprint(p.reading.Dialog) {
		p.readingSince = now
	}
	p.turn.hasWorked = p.turn.hasWorked || showsWork(p.reading)
	if !p.reading.Prompt {
		p.promptSince = time.Time{}
	} else if p.promptSince.IsZero() {
		p.promptSince = now
	}
}

// noteExcess reports once that the program declares more than the protocol allows.
func (p *Terminal) noteExcess() {
	if _, hasExcess := p.emulator.Status(); hasExcess && !p.hasExcess {
		p.hasExcess = true
		const why = "the program declares more states than a terminal keeps, or longer ones: they are dropped"
		p.r.Log.Warn(why)
		p.r.Append(wire.Event{Kind: wire.StreamError}.With("error_summary", why))
	}
}

// Refresh draws what the program has written, and reads its screen.
func (p *Terminal) Refresh() {
	p.Take()
	p.readScreen(p.r.Now())
}

func (p *Terminal) look() driver.Look {
	look := driver.LookAt(p.emulator)
	if p.driver.Plain {
		if group, name := p.Foreground(); group != p.PID() {
			look.Foreground = name
		}
		look.Hidden = p.HidesLines()
	}
	return look
}

// stepScreen reads the screen when that is due, and reports what has been stable for long enough.
func (p *Terminal) stepScreen(now time.Time) {
	r := p.r
	if !p.nextRead.IsZero() && !now.Before(p.nextRead) {
		p.readScreen(now)
	}
	r.WakeAt(p.nextRead)
	switch {
	case p.isReady:
	case p.reading.Dialog != nil && p.reading.Dialog.Dialog == "permission": // in a turn, begun with mail beside its prompt
		p.isReady = !r.MustWait(p.readingSince.Add(r.Timing.Settle), now)
	case !p.promptSince.IsZero():
		p.isReady = !r.MustWait(p.promptSince.Add(r.Timing.FirstIdle), now)
	}
	switch r.State.Session().Activity {
	case reducer.ToolRunning, reducer.Responding, reducer.Confirming, reducer.AwaitingInput:
		p.turn.hasActed = true
	}
	p.stepQuestion(now)
	p.stepActivity(now)
}

// stepQuestion opens or closes the question when the dialog on the screen has been stable.
func (p *Terminal) stepQuestion(now time.Time) {
	r, d, asked, hold := p.r, p.reading.Dialog, "", p.r.Timing.Settle
	if q := r.Questions.Asked(); q != nil {
		asked = q.Fingerprint
	}
	if p.reading.Declared.State != "" && !p.isAsking() {
		hold = 0 // what it declares of its turn, which counts at once, comes after the answer
	}
	switch {
	case fingerprint(d) == asked || r.MustWait(p.readingSince.Add(hold), now):
	case d != nil && p.isSubmitted(): // isAccepted is about to see whether it belongs to the text's turn, whose beginning comes first
		r.WakeAt(now.Add(readDelay))
	case d == nil:
		p.questionGone()
	default:
		p.ask(*d)
	}
}

// isAsking reports whether the screen shows a dialog, perhaps one that only the title tells of.
func (p *Terminal) isAsking() bool {
	return p.reading.Dialog != nil || p.reading.Activity == reducer.Confirming
}

func (p *Terminal) ask(d ask.Question) {
	qs, now := &p.r.Questions, reducer.Activity("")
	if qs.IsGiven() {
		now = reducer.Thinking // it was answered, and the program asks the next one
	}
	qs.Close("", now)
	qs.Open(d, wire.Event{Source: wire.SourcePTY}, policy.Ask, func(_ ask.Answer, o ask.Option) error { return p.press(d.Fingerprint, o) })
}

// questionGone closes the question. Whether its answer has ended the turn is known when the prompt has been stable; a dialog
// at the start belongs to no turn.
func (p *Terminal) questionGone() {
	now := reducer.Thinking
	if q := p.r.Questions.Asked(); q != nil && !p.isReady {
		now = reducer.Starting
	}
	p.r.Questions.Close("", now)
}

// readFrame reads every complete frame while an answer is awaited. If one shows that the program went on, the answer
// had its effect, and a dialog after it is a new one even if it looks the same.
func (p *Terminal) readFrame() {
	p.readScreen(p.r.Now())
	if p.reading.Dialog == nil && (p.reading.Prompt || p.reading.Activity.IsWork()) {
		p.questionGone()
	}
}

// stepActivity reports what the program does when it has been stable and is news. Who tells is believed: of a program whose
// hooks tell its turns the screen says only that it asks, which its question reports, and that it is at its prompt although
// nobody has told the end.
func (p *Terminal) stepActivity(now time.Time) {
	r, rd, shown := p.r, &p.reading, p.r.State.Session()
	isOver := rd.Activity == reducer.Idle
	switch {
	case rd.Dialog != nil || r.IsStopping: // what a program shows while it is stopped does not end its turn
	case r.State.Tells():
		if p.knowsBetter(shown, now) {
			p.report(shown.Activity)
		}
	case rd.Activity == reducer.Unknown && !p.isReady && !p.driver.Unknown, rd.Activity == reducer.Starting: // nothing known was shown yet
	case rd.Activity == shown.Activity && rd.Detail == p.detail && !(isOver && p.turn.isOurs):
	case rd.Activity.IsWork() && p.isSubmitted(): // isAccepted is about to see whether this is the text's turn
	case r.MustWait(p.readingSince.Add(p.hold()), now):
	default:
		since, before := p.readingSince, shown.Activity
		p.Refresh() // on a busy machine newer output may have waited longer than the hold
		r.WakeAt(p.nextRead)
		if !p.readingSince.Equal(since) {
			r.WakeAt(now)
		} else if p.frameSince.IsZero() || p.nextRead.IsZero() {
			if isOver {
				p.endTurn()
			}
			p.report(before)
		}
	}
}

// knowsBetter reports whether its screen adds something to what a program tells: its own word, if that is newer, as after an
// Escape, which no hook tells; that it asks what cannot be read; that it works or is at its prompt, and asks no more what only a
// hook has told of; and its prompt, after a while.
func (p *Terminal) knowsBetter(shown *reducer.Session, now time.Time) bool {
	r, rd := p.r, &p.reading
	seen := reducer.Session{Activity: rd.Activity}
	switch {
	case seen.Word() == shown.Word():
		return false
	case rd.Declared.State != "" && p.readingSince.After(shown.HeardAt):
		return !r.MustWait(shown.HeardAt.Add(r.Timing.Stale), now)
	case rd.Activity == reducer.Confirming:
		return !r.MustWait(p.readingSince.Add(r.Timing.Settle), now)
	}
	if w := shown.Waiting(); w != nil && w.ID == "" && (rd.Activity.IsWork() || rd.Activity == reducer.Idle) {
		return !r.MustWait(loop.Later(p.readingSince, w.Since).Add(r.Timing.Stale), now)
	}
	return rd.Prompt && shown.Word() == reducer.WordBusy && !r.MustWait(loop.Later(p.promptSince, shown.HeardAt).Add(reducer.MissedEnd*r.Timing.Stale), now)
}

// hold is how long a reading must stay the same before it counts: what the program declares at once, that it is idle for
// Timing.Idle, behind a text of ours that has shown no work for Timing.Unstarted, that nothing on it is known for Timing.Stale,
// and anything else for Timing.Settle.
func (p *Terminal) hold() time.Duration {
	rd, timing := &p.reading, p.r.Timing
	switch {
	case rd.Activity == reducer.Idle && p.turn.isOurs && !p.turn.hasWorked && !p.driver.Plain:
		return timing.Unstarted
	case rd.Declared.State != "":
		return 0
	case rd.Activity == reducer.Idle:
		return timing.Idle
	case rd.Activity == reducer.Unknown:
		return timing.Stale
	}
	return timing.Settle
}

// report reports what the program does as its screen, or its own declaration, shows it.
func (p *Terminal) report(previous reducer.Activity) {
	source := reducer.FromScreen
	if p.reading.Declared.State != "" {
		source = reducer.FromDeclared
	}
	if p.detail = p.reading.Detail; previous != p.reading.Activity || p.detail != "" {
		p.r.AppendChange(previous, p.reading.Activity, p.detail, source)
	}
}

// showsWork reports whether the screen shows that a text was accepted. A program that asks something is working, too.
func showsWork(rd driver.Reading) bool { return rd.Activity.IsWork() || rd.Dialog != nil }

func fingerprint(d *ask.Question) string {
	if d == nil {
		return ""
	}
	return d.Fingerprint
}

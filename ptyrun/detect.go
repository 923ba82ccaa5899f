package ptyrun

import (
	"runtime/debug"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
)

const (
	readDelay       = 20 * time.Millisecond // of output the screen is read: a burst is read once,
	floodReadEvery  = 3 * time.Second       // and a flood that goes on seldom: it is drawn for that
	freeAfter       = time.Second           // the end of a flood its memory is given back
	maxFrame        = time.Second           // a frame that is never closed counts as closed then
	maxStart        = 30 * time.Second      // for a program that is not known by its command
	missedEndFactor = 15                    // times Waits.Hooked at a prompt: a turn that was told of has ended
)

func (p *program) scheduleRead(now time.Time) {
	p.outputAt = now
	if p.screen.IsBehind() {
		p.freeAt = now.Add(freeAfter)
		p.nextRead = earlier(now.Add(2*readDelay), later(now, p.lastRead.Add(floodReadEvery)))
	} else if p.nextRead.IsZero() {
		p.nextRead = now.Add(readDelay)
	}
}

// read reads the screen now, unless it is in the middle of a frame.
func (p *program) read(now time.Time, anyDriver bool) {
	p.nextRead, p.lastRead = time.Time{}, now
	if !p.screen.Modes().Sync {
		p.frameSince = time.Time{}
	} else if p.frameSince.IsZero() {
		p.frameSince = now
	}
	if !p.frameSince.IsZero() && now.Sub(p.frameSince) < maxFrame {
		p.nextRead = now.Add(readDelay)
		return
	}
	if p.readVersion != 0 && p.readVersion == p.screen.Version() {
		return
	}
	p.readVersion = p.screen.Version()
	look := p.look()
	if anyDriver {
		p.driver = p.driver.Recognise(look)
	}
	before := p.reading
	p.reading = p.driver.Read(look, before)
	if rd := &p.reading; rd.Activity != before.Activity || rd.Detail != before.Detail || fingerprint(rd.Dialog) != fingerprint(before.Dialog) {
		p.readingSince = now
	}
	p.hasWorked = p.hasWorked || showsWork(p.reading)
	if !p.reading.Prompt {
		p.promptSince = time.Time{}
	} else if p.promptSince.IsZero() {
		p.promptSince = now
	}
}

// refresh takes in and reads what the program has written by now: before a key of ours, what has come meanwhile counts.
func (r *runner) refresh(now time.Time) {
	if r.prog == nil {
		return
	}
	r.takeOutput(nil)
	if p := r.prog; p.readVersion != p.screen.Version() || !p.frameSince.IsZero() {
		p.read(now, r.isAuto)
	}
}

func (p *program) look() driver.Look {
	look := driver.LookAt(p.screen)
	if p.driver.Plain {
		if group, name := p.child.Foreground(); group != p.child.PID() {
			look.Foreground = name
		}
		look.Hidden = p.child.HidesLines()
	}
	return look
}

// stepScreen reads the screen when that is due, and tells what has held for long enough.
func (r *runner) stepScreen(now time.Time) {
	p := r.prog
	if !p.nextRead.IsZero() && !now.Before(p.nextRead) {
		p.read(now, r.isAuto)
	}
	r.wakeAt(p.nextRead)
	if !p.freeAt.IsZero() && !r.mustWait(p.freeAt, now) {
		p.freeAt = time.Time{}
		go debug.FreeOSMemory() // else what the flood took is kept for minutes
	}
	if p.screen.ContentLost() {
		r.jiggle(p)
	}
	if !p.isReady && !p.promptSince.IsZero() {
		p.isReady = !r.mustWait(p.promptSince.Add(r.Timing.FirstIdle), now)
	}
	switch p.reading.Activity {
	case reducer.ToolRunning, reducer.Responding, reducer.Confirming, reducer.AwaitingInput:
		r.turn.hasActed = true
	}
	r.clearJunk(now)
	r.stepQuestion(now)
	r.stepActivity(now)
}

// jigglePause is between the two sizes of jiggle. Without it a program finds its size unchanged and does not repaint.
const jigglePause = 60 * time.Millisecond

// jiggle makes a program repaint: it takes a row away and gives it back. The same size again would be no news.
func (r *runner) jiggle(p *program) {
	p.child.Resize(r.Cols, max(1, r.Rows-1))
	time.AfterFunc(jigglePause, func() {
		r.post(func() { p.child.Resize(r.Cols, r.Rows) })
	})
}

func (r *runner) clearJunk(now time.Time) {
	p := r.prog
	isJunk := p.reading.HasDraft && p.driver.Junk(p.reading.Draft)
	if isJunk && r.mail.typing == nil && !now.Before(p.readingSince.Add(r.Timing.Idle)) && now.Sub(r.lastKey) > r.Timing.PersonQuiet {
		p.readingSince = now // once in a while, should it not help
		p.sendKeys(p.driver.ClearDraft(p.reading.Draft)...)
	}
}

// noteDialog opens or closes the question when the dialog on the screen has held.
func (r *runner) stepQuestion(now time.Time) {
	p, d, asked := r.prog, r.prog.reading.Dialog, ""
	if r.question != nil {
		asked = r.question.Dialog.Print
	}
	switch {
	case fingerprint(d) == asked || r.mustWait(p.readingSince.Add(r.Timing.Settle), now):
	case d == nil:
		r.closeQuestion(p.reading.Activity)
	default:
		r.openQuestion(*d)
	}
}

// noteActivity tells what the program does when that has held.
func (r *runner) stepActivity(now time.Time) {
	p, rd := r.prog, r.prog.reading
	if r.hasMissedTurnEnd(now) {
		p.reported = r.state.Turn().Activity // and the screen is told again
	}
	if rd.Activity == reducer.Starting && p.reported == reducer.Starting && p.driver.Plain && !p.isReady {
		if r.mustWait(p.started.Add(maxStart), now) {
			return
		}
		p.reported = reducer.Unknown
		r.appendStateChange(reducer.Starting, reducer.Unknown, "")
	}
	isWorking := isWork(rd.Activity)
	mayBeWrapper := isWorking && !p.isReady && r.isAuto && p.driver.Plain // whose program has not drawn anything yet
	switch {
	case rd.Activity == reducer.Starting && p.reported == reducer.Unknown: // it has shown nothing that is known
	case rd.Activity == p.reported && rd.Detail == p.reportedDetail:
	case rd.Dialog != nil: // what a dialog asks was told by its question
	case r.stopping != nil: // how a program looks that is being ended is the end of no turn
	case r.mustWait(p.readingSince.Add(r.settleTime(rd, now)), now):
	case mayBeWrapper && r.mustWait(p.started.Add(maxStart), now):
	case isWorking && r.mail.typing.isSubmitted(): // whether this is its turn is about to be known
	default:
		// On a busy machine the runner may get to run so late that what the program has drawn since lies
		// there unread for longer than the screen has to hold.
		since := p.readingSince
		r.refresh(now)
		r.wakeAt(p.nextRead)
		if !p.readingSince.Equal(since) {
			r.wakeAt(now)
		} else if p.frameSince.IsZero() || p.nextRead.IsZero() {
			r.reportActivity(p.reading)
		}
	}
}

// hasLostEnd reports whether a turn that was told of goes on at a prompt at which nothing has happened for long: its end
// was never told. Claude Code says none of a prompt that another hook has refused.
func (r *runner) hasMissedTurnEnd(now time.Time) bool {
	p, turn := r.prog, r.state.Turn()
	isContradicted := turn.Word() == reducer.WordBusy && p.reported == reducer.Idle && p.reading.Activity == reducer.Idle
	return isContradicted && p.reading.Prompt && !r.turn.isOurs && !p.driver.Tells &&
		!r.mustWait(later(p.outputAt, turn.HeardAt).Add(missedEndFactor*r.Timing.HookSettle), now)
}

func (r *runner) settleTime(rd driver.Reading, now time.Time) time.Duration {
	hold := r.Timing.Settle
	switch {
	case rd.Activity == reducer.Unknown:
		hold = r.Timing.HookSettle
	case rd.Activity == reducer.Idle && r.turn.isOurs && !r.prog.driver.Plain && !r.turn.isInterrupted:
		hold = r.unansweredSettleTime(now, r.Timing.Idle)
	case rd.Activity == reducer.Idle:
		hold = r.Timing.Idle
	}
	if r.hasHooks() {
		hold = max(hold, r.Timing.HookSettle)
	}
	return hold
}

// holdUnanswered is how long a screen has to look idle after a text of ours: longer than others while it
// shows no answer.
func (r *runner) unansweredSettleTime(now time.Time, hold time.Duration) time.Duration {
	p := r.prog
	isUnanswered := func() bool { return !now.Before(p.readingSince.Add(hold)) && r.response() == "" }
	if p.hasWorked {
		if isUnanswered() {
			hold *= 3 // between two things that it does it may show neither
		}
		return hold
	}
	// What was taken a moment ago may not show yet: opencode asks for a title first, for seconds on a slow
	// machine, and shows nothing of it.
	if hold *= 3; isUnanswered() {
		hold *= 7
	}
	return hold
}

// tellActivity appends what the screen shows, unless hooks have said as much.
func (r *runner) reportActivity(rd driver.Reading) {
	p := r.prog
	previous := p.reported
	p.reported, p.reportedDetail = rd.Activity, rd.Detail
	isBegun := isWork(rd.Activity) && !isWork(previous) && !r.turn.isOurs // by a person
	if isBegun {
		r.turn.id, r.turn.text, r.turn.startRow = "", "", p.screen.Scrolled()
	}
	if r.hasHooks() {
		shown := reducer.Turn{Activity: rd.Activity}
		if shown.Word() == r.state.Turn().Word() {
			return // hooks have said as much
		}
	} else if isBegun && p.isReady && r.state.Turn().Status != reducer.TurnBusy {
		r.appendTurnStarted("")
	}
	shown := rd.Activity
	if shown == reducer.Error && rd.Prompt && !strings.HasPrefix(rd.Detail, "usage limit") {
		shown = reducer.Idle // the last turn failed; the next may be begun
	}
	if rd.Activity == reducer.Idle || rd.Activity == reducer.Error {
		r.endTurn(rd, previous, shown)
	}
	r.appendStateChange(previous, shown, rd.Detail)
}

func isWork(a reducer.Activity) bool {
	return a == reducer.Thinking || a == reducer.Responding || a == reducer.ToolRunning
}

// showsWork reports whether a screen shows that a text was taken: also a program that asks is at work.
func showsWork(rd driver.Reading) bool { return isWork(rd.Activity) || rd.Dialog != nil }

func fingerprint(d *driver.Dialog) string {
	if d == nil {
		return ""
	}
	return d.Print
}

package ptyrun

import (
	"time"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

const (
	readDelay       = 20 * time.Millisecond // from output to reading the screen, so that a burst is read once
	floodReadEvery  = 3 * time.Second       // during a flood, which has to be drawn to be read
	freeAfter       = time.Second           // from a flood's end to returning its memory
	maxFrame        = time.Second           // after which an open frame counts as closed
	maxStart        = 30 * time.Second      // for a program whose command does not tell its driver
	missedEndFactor = 15                    // times timing.stale at a prompt, after which a turn has ended unreported
)

func (p *program) scheduleRead(now time.Time) {
	p.outputAt = now
	if p.screen.IsBehind() {
		p.freeMemory.Reset(freeAfter)
		p.nextRead = earlier(now.Add(2*readDelay), later(now, p.lastRead.Add(floodReadEvery)))
	} else if p.nextRead.IsZero() {
		p.nextRead = now.Add(readDelay)
	}
}

// readScreen reads the screen, unless a frame is open.
func (r *runner) readScreen(now time.Time) {
	p := r.prog
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
	if known := p.driver.Recognise(look); r.isAuto && known != p.driver {
		p.driver = known
		r.writeRunInfo()
	}
	before := p.reading
	p.reading = p.driver.Read(look, before)
	r.noteDeclared(before, now)
	r.endLimit(now)
	if !isSameReading(p.reading, before) {
		p.readingSince = now
	}
	r.turn.hasWorked = r.turn.hasWorked || showsWork(p.reading)
	r.turn.hasRetried = r.turn.hasRetried || p.reading.IsRetrying
	if !p.reading.Prompt {
		p.promptSince = time.Time{}
	} else if p.promptSince.IsZero() {
		p.promptSince = now
	}
}

// noteDeclared notes when what the program declares has changed. That it declares more than the protocol allows is
// reported once.
func (r *runner) noteDeclared(before driver.Reading, now time.Time) {
	p := r.prog
	if p.reading.Declared.State != before.Declared.State {
		p.declaredAt = now
	}
	if _, hasExcess := p.screen.Status(); hasExcess && !p.hasExcess {
		p.hasExcess = true
		const why = "the program declares more states than a terminal keeps, or longer ones: they are dropped"
		r.Log.Warn(why)
		r.appendEvent(wire.Event{Kind: wire.StreamError}.With("error_summary", why))
	}
}

// isSameReading reports whether nothing has changed that has to hold for some time.
func isSameReading(a, b driver.Reading) bool {
	return a.Activity == b.Activity && a.Detail == b.Detail && a.Failure == b.Failure && a.Source == b.Source &&
		fingerprint(a.Dialog) == fingerprint(b.Dialog)
}

// limit is a usage limit of which the transcript tells.
type limit struct {
	notice string
	end    time.Time // zero: the notice does not say

	reportedAt uint64 // the newest event when it was reported again
}

// endLimit makes idle of a reading that shows a usage limit whose time is over: its notice stays on the screen until
// the next turn. If the program shows the limit below its box it also takes it away, so that only this ends it.
func (r *runner) endLimit(now time.Time) {
	p, rd := r.prog, &r.prog.reading
	switch {
	case rd.Activity.IsWork():
		p.limit = limit{}
		return
	case rd.Activity != reducer.Limited:
		return
	case rd.Detail != p.limit.notice:
		p.limit = limit{notice: rd.Detail, end: driver.LimitEnd(rd.Detail, now)}
	}
	if rd.Prompt && !p.limit.end.IsZero() && !now.Before(p.limit.end) {
		rd.Activity, rd.Detail, rd.Failure = reducer.Idle, "", ""
	}
}

// refresh reads what the program has written so far. Called before every key of ours.
func (r *runner) refresh(now time.Time) {
	if r.prog != nil {
		r.takeOutput(nil)
		r.readScreen(now)
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

// stepScreen reads the screen when that is due, and reports what has been stable for long enough.
func (r *runner) stepScreen(now time.Time) {
	p := r.prog
	isLimitOver := p.reading.Activity == reducer.Limited && !p.limit.end.IsZero() && !r.mustWait(p.limit.end, now)
	if isLimitOver && p.reading.Prompt {
		p.nextRead, p.readVersion = now, 0
	}
	if !p.nextRead.IsZero() && !now.Before(p.nextRead) {
		r.readScreen(now)
	}
	r.wakeAt(p.nextRead)
	if p.screen.ContentLost() {
		r.jiggle(p)
	}
	if !p.isReady && !p.promptSince.IsZero() {
		p.isReady = !r.mustWait(p.promptSince.Add(r.timing.firstIdle), now)
	}
	switch p.reading.Activity {
	case reducer.ToolRunning, reducer.Confirming, reducer.AwaitingInput:
		r.turn.hasActed = true
	}
	r.stepQuestion(now)
	r.stepActivity(now)
}

// jigglePause is between the two sizes of jiggle. Without it a program finds its size unchanged and does not repaint.
const jigglePause = 60 * time.Millisecond

// jiggle makes the program repaint, by taking a row away and giving it back. Setting the same size does nothing.
func (r *runner) jiggle(p *program) {
	p.child.Resize(r.Cols, max(1, r.Rows-1))
	time.AfterFunc(jigglePause, func() {
		r.post(func() { p.child.Resize(r.Cols, r.Rows) })
	})
}

// stepQuestion opens or closes the question when the dialog on the screen has been stable.
func (r *runner) stepQuestion(now time.Time) {
	p, d, asked, hold := r.prog, r.prog.reading.Dialog, "", r.timing.settle
	if r.question != nil {
		asked = r.question.Dialog.Fingerprint
	}
	if p.reading.Source == reducer.FromDeclared && !p.asks() {
		hold = 0 // what it declares of its turn, which counts at once, comes after the answer
	}
	switch {
	case fingerprint(d) == asked || r.mustWait(p.readingSince.Add(hold), now):
	case d != nil && r.isOverruled(p.reading, now):
	case d == nil:
		r.closeQuestion(p.reading.Activity)
	default:
		r.openQuestion(*d)
	}
}

// stepActivity reports the program's activity when it has been stable.
func (r *runner) stepActivity(now time.Time) {
	p, rd := r.prog, r.prog.reading
	if r.hasMissedTurnEnd(now) {
		p.reported = r.state.Turn().Activity // so that the screen is reported again
	}
	isOverruled := rd.Activity == reducer.Limited && r.hasHooks() && r.state.Turn().Word() == reducer.WordIdle
	if isOverruled && p.limit.reportedAt != r.state.Seq { // a hook only said that the turn is over
		p.reported, p.limit.reportedAt = reducer.Idle, r.state.Seq
	}
	if isStarting := rd.Activity == reducer.Starting && p.reported == reducer.Starting; isStarting && r.mayBeWrapper() {
		if r.mustWait(p.started.Add(maxStart), now) {
			return
		}
		p.reported = reducer.Unknown
		r.appendStateChange(reducer.Starting, reducer.Unknown, "", "")
	}
	switch {
	case rd.Activity == reducer.Starting && p.reported == reducer.Unknown: // nothing known was shown yet
	case rd.Activity == p.reported && rd.Detail == p.reportedDetail:
	case rd.Dialog != nil: // reported by its question
	case r.stopping != nil: // what a program shows while it is stopped does not end its turn
	case r.isOverruled(rd, now):
	case r.mustWait(p.readingSince.Add(r.settleTime(rd, now)), now):
	case rd.Activity.IsWork() && r.isAuto && r.mayBeWrapper() && r.mustWait(p.started.Add(maxStart), now):
	case rd.Activity.IsWork() && r.mail.typing.isSubmitted(): // isAccepted is about to see whether this is the text's turn
	default:
		r.reportIfStill(p.readingSince, now)
	}
}

// mayBeWrapper reports whether the program may be about to start another one, which has drawn nothing yet.
func (r *runner) mayBeWrapper() bool { return r.prog.driver.Plain && !r.prog.isReady }

// reportIfStill reports what the screen shows if that has not changed since then. On a busy machine the runner may be
// so late that newer output has waited longer than the settle time.
func (r *runner) reportIfStill(since, now time.Time) {
	p := r.prog
	r.refresh(now)
	r.wakeAt(p.nextRead)
	if !p.readingSince.Equal(since) {
		r.wakeAt(now)
	} else if p.frameSince.IsZero() || p.nextRead.IsZero() {
		r.reportActivity(p.reading)
	}
}

// hasMissedTurnEnd reports whether a turn that hooks reported is still open although the program has long been idle at
// its prompt. Claude Code does not report the end of a prompt that another hook refused.
func (r *runner) hasMissedTurnEnd(now time.Time) bool {
	p, turn := r.prog, r.state.Turn()
	if turn.Word() != reducer.WordBusy || r.turn.isOurs || p.driver.LogsOwnEvents {
		return false
	}
	looksIdle := p.reported == reducer.Idle && p.reading.Activity == reducer.Idle && p.reading.Prompt
	return looksIdle && !r.mustWait(later(p.outputAt, turn.HeardAt).Add(missedEndFactor*r.timing.stale), now)
}

// isOverruled reports whether a stronger source has said something else so lately that the reading does not count yet:
// see reducer.Source. That the agent asks, which only the screen or the title shows, waits for what it declares.
func (r *runner) isOverruled(rd driver.Reading, now time.Time) bool {
	overrules := func(other reducer.Source, heard time.Time) bool {
		isFresh := !heard.IsZero() && r.mustWait(heard.Add(r.timing.stale), now)
		return !rd.Source.MayOverrule(rd.Activity, other, isFresh)
	}
	if rd.Declared.State != "" && overrules(reducer.FromDeclared, r.prog.declaredAt) {
		return true
	}
	seen, t := reducer.Turn{Activity: rd.Activity}, r.state.Turn()
	return r.hasHooks() && rd.Dialog == nil && seen.Word() != t.Word() && overrules(t.Source, t.HeardAt)
}

// settleTime is how long the screen must stay the same before it is reported. What a program declares counts at once,
// but idle only after it has shown work on our text: it may have declared that before it read the text. Else it is
//
//	unknown                             stale
//	idle, or at a usage limit           idle
//	idle behind a text of ours          idle, but three times that while it shows no answer: between two steps of its
//	                                    work a program may show neither work nor an answer
//	the same, and no work was seen yet  three times as long: opencode first asks the model for a title, which takes
//	                                    seconds on a slow machine, and shows nothing meanwhile (without an answer 21)
//	anything else                       settle
//
// If hooks report the turns it is at least stale.
func (r *runner) settleTime(rd driver.Reading, now time.Time) time.Duration {
	p, hold := r.prog, r.timing.settle
	if isOld := hasEndedTurn(rd.Activity) && r.turn.isOurs && !r.turn.hasWorked; rd.Source == reducer.FromDeclared && !isOld {
		return r.settleDeclared(rd)
	}
	switch rd.Activity {
	case reducer.Unknown:
		hold = r.timing.stale
	case reducer.Limited:
		hold = r.timing.idle
	case reducer.Idle:
		hold = r.timing.idle
		if !r.turn.isOurs || r.turn.isInterrupted || p.driver.Plain || rd.Failure != "" {
			break
		}
		unanswered := 3 * hold
		if !r.turn.hasWorked {
			hold, unanswered = 3*hold, 21*hold
		}
		if !now.Before(p.readingSince.Add(hold)) && r.response() == "" {
			hold = unanswered
		}
	}
	if r.hasHooks() {
		hold = max(hold, r.timing.stale)
	}
	return hold
}

// settleDeclared is settleTime for what the program declares. The dialog or the answer that belongs to it may be drawn
// behind it.
func (r *runner) settleDeclared(rd driver.Reading) time.Duration {
	isAnswerDue := hasEndedTurn(rd.Activity) && r.turn.isOurs && !r.turn.isInterrupted && r.response() == ""
	if rd.Activity == reducer.Confirming || isAnswerDue {
		return r.timing.settle
	}
	return 0
}

// reportActivity appends what the screen shows, unless hooks have reported the same.
func (r *runner) reportActivity(rd driver.Reading) {
	p := r.prog
	previous := p.reported
	p.reported, p.reportedDetail = rd.Activity, rd.Detail
	isBegun := rd.Activity.IsWork() && !previous.IsWork() && !r.turn.isOurs // a person began a turn
	if isBegun {
		r.turn.id, r.turn.text, r.turn.startRow = "", "", p.screen.Scrolled()
	}
	if r.hasHooks() {
		seen := reducer.Turn{Activity: rd.Activity}
		if seen.Word() == r.state.Turn().Word() {
			return
		}
	} else if isBegun && p.isReady && r.state.Turn().Status != reducer.TurnBusy {
		r.appendTurnStarted("")
	}
	if hasEndedTurn(rd.Activity) {
		r.endTurn(rd, previous)
	}
	r.appendSeen(previous, rd)
}

// hasEndedTurn reports whether an agent that does so has no open turn.
func hasEndedTurn(a reducer.Activity) bool { return a == reducer.Idle || a == reducer.Limited }

// showsWork reports whether the screen shows that a text was accepted. A program that asks something is working, too.
func showsWork(rd driver.Reading) bool { return rd.Activity.IsWork() || rd.Dialog != nil }

func fingerprint(d *driver.Dialog) string {
	if d == nil {
		return ""
	}
	return d.Fingerprint
}

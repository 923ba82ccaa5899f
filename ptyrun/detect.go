package ptyrun

import (
	"runtime/debug"
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
)

const (
	judgeAfter = 20 * time.Millisecond // of output the screen is read: a burst is read once,
	judgeFlood = 3 * time.Second       // and a flood that goes on seldom: it is drawn for that
	freeAfter  = time.Second           // the end of a flood its memory is given back
	longFrame  = time.Second           // a frame that is never closed counts as closed then
	longStart  = 30 * time.Second      // for a program that is not known by its command
	lostAfter  = 15                    // times Waits.Hooked at a prompt: a turn that was told of has ended
)

func (p *program) outputCame(now time.Time) {
	p.changed = now
	if p.screen.IsBehind() {
		p.freeAt = now.Add(freeAfter)
		p.readAt = earlier(now.Add(2*judgeAfter), later(now, p.judged.Add(judgeFlood)))
	} else if p.readAt.IsZero() {
		p.readAt = now.Add(judgeAfter)
	}
}

// read reads the screen now, unless it is in the middle of a frame.
func (p *program) read(now time.Time, anyDriver bool) {
	p.readAt, p.judged = time.Time{}, now
	if !p.screen.Modes().Sync {
		p.frame = time.Time{}
	} else if p.frame.IsZero() {
		p.frame = now
	}
	if !p.frame.IsZero() && now.Sub(p.frame) < longFrame {
		p.readAt = now.Add(judgeAfter)
		return
	}
	if p.version != 0 && p.version == p.screen.Version() {
		return
	}
	p.version = p.screen.Version()
	look := p.look()
	if anyDriver {
		p.driver = p.driver.Recognise(look)
	}
	before := p.reading
	p.reading = p.driver.Read(look, before)
	if rd := &p.reading; rd.Activity != before.Activity || rd.Detail != before.Detail || printOf(rd.Dialog) != printOf(before.Dialog) {
		p.since = now
	}
	p.worked = p.worked || showsWork(p.reading)
	if !p.reading.Prompt {
		p.promptAt = time.Time{}
	} else if p.promptAt.IsZero() {
		p.promptAt = now
	}
}

// refresh takes in and reads what the program has written by now: before a key of ours, what has come meanwhile counts.
func (r *runner) refresh(now time.Time) {
	if r.prog == nil {
		return
	}
	r.takeOutput(nil)
	if p := r.prog; p.version != p.screen.Version() || !p.frame.IsZero() {
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
	if !p.readAt.IsZero() && !now.Before(p.readAt) {
		p.read(now, r.isAuto)
	}
	r.wakeAt(p.readAt)
	if !p.freeAt.IsZero() && !r.awaits(p.freeAt, now) {
		p.freeAt = time.Time{}
		go debug.FreeOSMemory() // else what the flood took is kept for minutes
	}
	if p.screen.Lost() {
		r.jiggle(p)
	}
	if !p.isReady && !p.promptAt.IsZero() {
		p.isReady = !r.awaits(p.promptAt.Add(r.Waits.First), now)
	}
	switch p.reading.Activity {
	case reducer.ToolRunning, reducer.Responding, reducer.Confirming, reducer.AwaitingInput:
		r.turn.hasActed = true
	}
	r.clearJunk(now)
	r.noteDialog(now)
	r.noteActivity(now)
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
	if isJunk && r.mail.typing == nil && !now.Before(p.since.Add(r.Waits.Idle)) && now.Sub(r.lastKey) > r.Waits.Human {
		p.since = now // once in a while, should it not help
		p.put(p.driver.ClearDraft(p.reading.Draft)...)
	}
}

// noteDialog opens or closes the question when the dialog on the screen has held.
func (r *runner) noteDialog(now time.Time) {
	p, d, asked := r.prog, r.prog.reading.Dialog, ""
	if r.question != nil {
		asked = r.question.Dialog.Print
	}
	switch {
	case printOf(d) == asked || r.awaits(p.since.Add(r.Waits.Settle), now):
	case d == nil:
		r.closeQuestion(p.reading.Activity)
	default:
		r.openQuestion(*d)
	}
}

// noteActivity tells what the program does when that has held.
func (r *runner) noteActivity(now time.Time) {
	p, rd := r.prog, r.prog.reading
	if r.hasLostEnd(now) {
		p.told = r.state.Turn().Activity // and the screen is told again
	}
	if rd.Activity == reducer.Starting && p.told == reducer.Starting && p.driver.Plain && !p.isReady {
		if r.awaits(p.started.Add(longStart), now) {
			return
		}
		p.told = reducer.Unknown
		r.sayState(reducer.Starting, reducer.Unknown, "")
	}
	isWorking := isWork(rd.Activity)
	mayBeWrapper := isWorking && !p.isReady && r.isAuto && p.driver.Plain // whose program has not drawn anything yet
	switch {
	case rd.Activity == reducer.Starting && p.told == reducer.Unknown: // it has shown nothing that is known
	case rd.Activity == p.told && rd.Detail == p.detail:
	case rd.Dialog != nil: // what a dialog asks was told by its question
	case r.stopping != nil: // how a program looks that is being ended is the end of no turn
	case r.awaits(p.since.Add(r.holdFor(rd, now)), now):
	case mayBeWrapper && r.awaits(p.started.Add(longStart), now):
	case isWorking && r.mail.typing.isSubmitted(): // whether this is its turn is about to be known
	default:
		// On a busy machine the runner may get to run so late that what the program has drawn since lies
		// there unread for longer than the screen has to hold.
		since := p.since
		r.refresh(now)
		r.wakeAt(p.readAt)
		if !p.since.Equal(since) {
			r.wakeAt(now)
		} else if p.frame.IsZero() || p.readAt.IsZero() {
			r.tellActivity(p.reading)
		}
	}
}

// hasLostEnd reports whether a turn that was told of goes on at a prompt at which nothing has happened for long: its end
// was never told. Claude Code says none of a prompt that another hook has refused.
func (r *runner) hasLostEnd(now time.Time) bool {
	p, turn := r.prog, r.state.Turn()
	isContradicted := turn.Word() == reducer.WordBusy && p.told == reducer.Idle && p.reading.Activity == reducer.Idle
	return isContradicted && p.reading.Prompt && !r.turn.isOurs && !p.driver.Tells &&
		!r.awaits(later(p.changed, turn.HeardAt).Add(lostAfter*r.Waits.Hooked), now)
}

func (r *runner) holdFor(rd driver.Reading, now time.Time) time.Duration {
	hold := r.Waits.Settle
	switch {
	case rd.Activity == reducer.Unknown:
		hold = r.Waits.Hooked
	case rd.Activity == reducer.Idle && r.turn.isOurs && !r.prog.driver.Plain && !r.turn.isCut:
		hold = r.holdUnanswered(now, r.Waits.Idle)
	case rd.Activity == reducer.Idle:
		hold = r.Waits.Idle
	}
	if r.hasHooks() {
		hold = max(hold, r.Waits.Hooked)
	}
	return hold
}

// holdUnanswered is how long a screen has to look idle after a text of ours: longer than others while it
// shows no answer.
func (r *runner) holdUnanswered(now time.Time, hold time.Duration) time.Duration {
	p := r.prog
	isUnanswered := func() bool { return !now.Before(p.since.Add(hold)) && r.response() == "" }
	if p.worked {
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
func (r *runner) tellActivity(rd driver.Reading) {
	p := r.prog
	previous := p.told
	p.told, p.detail = rd.Activity, rd.Detail
	isBegun := isWork(rd.Activity) && !isWork(previous) && !r.turn.isOurs // by a person
	if isBegun {
		r.turn.id, r.turn.text, r.turn.from = "", "", p.screen.Scrolled()
	}
	if r.hasHooks() {
		shown := reducer.Turn{Activity: rd.Activity}
		if shown.Word() == r.state.Turn().Word() {
			return // hooks have said as much
		}
	} else if isBegun && p.isReady && r.state.Turn().Status != reducer.TurnBusy {
		r.sayTurnStarted("")
	}
	shown := rd.Activity
	if shown == reducer.Error && rd.Prompt && !strings.HasPrefix(rd.Detail, "usage limit") {
		shown = reducer.Idle // the last turn failed; the next may be begun
	}
	if rd.Activity == reducer.Idle || rd.Activity == reducer.Error {
		r.endTurn(rd, previous, shown)
	}
	r.sayState(previous, shown, rd.Detail)
}

func isWork(a reducer.Activity) bool {
	return a == reducer.Thinking || a == reducer.Responding || a == reducer.ToolRunning
}

// showsWork reports whether a screen shows that a text was taken: also a program that asks is at work.
func showsWork(rd driver.Reading) bool { return isWork(rd.Activity) || rd.Dialog != nil }

func printOf(d *driver.Dialog) string {
	if d == nil {
		return ""
	}
	return d.Print
}

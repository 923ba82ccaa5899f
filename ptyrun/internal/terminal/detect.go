package terminal

import (
	"time"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

const (
	readDelay = 20 * time.Millisecond // from output to reading the screen, so that a burst is read once
	maxFrame  = time.Second           // after which an open frame counts as closed
	oldLimit  = 12 * time.Hour        // for which the notice of a limit may have been on the screen of a program that starts
)

func (p *Terminal) scheduleRead(now time.Time) {
	p.outputAt = now
	if p.nextRead.IsZero() {
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
	look := p.look()
	before := p.reading
	p.reading = p.driver.Read(look, before)
	p.noteDeclared(before, now)
	p.endLimit(now)
	if !isSameReading(p.reading, before) {
		p.readingSince = now
	}
	p.turn.hasWorked = p.turn.hasWorked || showsWork(p.reading)
	p.turn.hasRetried = p.turn.hasRetried || p.reading.IsRetrying
	if !p.reading.Prompt {
		p.promptSince = time.Time{}
	} else if p.promptSince.IsZero() {
		p.promptSince = now
	}
}

// noteDeclared notes when what the program declares has changed. That it declares more than the protocol allows is
// reported once.
func (p *Terminal) noteDeclared(before driver.Reading, now time.Time) {
	if p.reading.Declared.State != before.Declared.State {
		p.declaredAt = now
	}
	if _, hasExcess := p.emulator.Status(); hasExcess && !p.hasExcess {
		p.hasExcess = true
		const why = "the program declares more states than a terminal keeps, or longer ones: they are dropped"
		p.r.Log.Warn(why)
		p.r.Append(wire.Event{Kind: wire.StreamError}.With("error_summary", why))
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
}

// endLimit makes idle of a reading that shows a usage limit whose time is over: its notice stays on the screen until
// the next turn. If the program shows the limit below its box it also takes it away, so that only this ends it.
func (p *Terminal) endLimit(now time.Time) {
	rd := &p.reading
	switch {
	case rd.Activity.IsWork():
		p.limit = limit{}
		return
	case rd.Activity != reducer.Limited:
		return
	case rd.Detail != p.limit.notice:
		shown := now
		if !p.isReady && !p.turn.hasWorked { // it comes from the conversation that goes on
			shown = now.Add(-oldLimit)
		}
		p.limit = limit{notice: rd.Detail, end: agents.LimitEnd(rd.Detail, shown, now)}
		if known := p.r.State.Limit; known.IsNotice(rd.Detail) { // an earlier program showed it; "3pm" was of that day
			p.limit.end = known.Until
		}
	}
	if rd.Prompt && !p.limit.end.IsZero() && !now.Before(p.limit.end) {
		rd.Activity, rd.Detail, rd.Failure = reducer.Idle, "", ""
	}
}

// Refresh draws what the program has written, and reads its screen.
func (p *Terminal) Refresh() {
	p.Take()
	p.readScreen(p.r.Now())
}

// stillAt is when a title or a progress bar that shows work was left behind, if the program writes nothing until then.
func (p *Terminal) stillAt() time.Time {
	return p.outputAt.Add(reducer.MissedEnd * p.r.Timing.Stale)
}

func (p *Terminal) look() driver.Look {
	look := driver.LookAt(p.emulator)
	look.IsStill = !p.r.Now().Before(p.stillAt())
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
	isLimitOver := p.reading.Activity == reducer.Limited && !p.limit.end.IsZero() && !r.MustWait(p.limit.end, now)
	if isLimitOver && p.reading.Prompt {
		p.nextRead, p.readVersion = now, 0
	}
	isAround := p.reading.Source == reducer.FromTitle || p.reading.Source == reducer.FromProgress
	if isAround && p.reading.Activity.IsWork() && !r.MustWait(p.stillAt(), now) {
		p.nextRead, p.readVersion = now, 0
	}
	if !p.nextRead.IsZero() && !now.Before(p.nextRead) {
		p.readScreen(now)
	}
	r.WakeAt(p.nextRead)
	if !p.isReady && !p.promptSince.IsZero() {
		p.isReady = !r.MustWait(p.promptSince.Add(r.Timing.FirstIdle), now)
	}
	switch p.reading.Activity {
	case reducer.ToolRunning, reducer.Confirming, reducer.AwaitingInput:
		p.turn.hasActed = true
	}
	p.stepQuestion(now)
	p.stepActivity(now)
}

// stepQuestion opens or closes the question when the dialog on the screen has been stable.
func (p *Terminal) stepQuestion(now time.Time) {
	r, d, asked, hold := p.r, p.reading.Dialog, "", p.r.Timing.Settle
	if r.Question != nil {
		asked = r.Question.Fingerprint
	}
	if p.reading.Source == reducer.FromDeclared && !p.isAsking() {
		hold = 0 // what it declares of its turn, which counts at once, comes after the answer
	}
	switch {
	case fingerprint(d) == asked || r.MustWait(p.readingSince.Add(hold), now):
	case d != nil && !p.counts(now):
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
	if q := p.r.Question; q != nil && q.Pressed != nil {
		p.o.Questions.Close(p.afterAnswer(q, reducer.Thinking)) // it was answered, and the program asks the next one
	}
	before := p.r.State.Session().Activity
	p.o.Questions.Open(&run.Question{Question: d}, wire.Event{Source: wire.SourcePTY})
	if before != p.reading.Activity { // not from one dialog to another
		p.report(before, p.reading)
	}
}

func (p *Terminal) questionGone() {
	if q := p.r.Question; q != nil {
		p.detail = ""
		p.o.Questions.Close(p.afterAnswer(q, p.reading.Activity))
	}
}

// afterAnswer returns what the agent does after the answer to a question, if its screen shows now an activity.
func (p *Terminal) afterAnswer(q *run.Question, now reducer.Activity) reducer.Activity {
	shown := p.r.State.Session()
	switch {
	case p.r.State.HasHooks() && shown.Word() != reducer.WordBlocked:
		return shown.Activity
	case !p.isReady && q.Dialog != "permission":
		return reducer.Starting // a dialog at the start belongs to no turn
	case run.HasEndedTurn(now):
		return reducer.Thinking // whether the answer ended the turn is known when the prompt has been stable
	}
	return now
}

// readFrame reads every complete frame while an answer is awaited. If one shows that the program went on, the answer
// had its effect, and a dialog after it is a new one even if it looks the same.
func (p *Terminal) readFrame() {
	p.readScreen(p.r.Now())
	if p.reading.Dialog == nil && (p.reading.Prompt || p.reading.Activity.IsWork()) {
		p.questionGone()
	}
}

// counts reports whether the reading counts against what events have said.
func (p *Terminal) counts(now time.Time) bool {
	rd := &p.reading
	c := reducer.Claim{
		Activity: rd.Activity, Source: rd.Source, Since: p.readingSince, QuietFrom: p.outputAt,
		IsAsked: rd.Dialog != nil, IsPrompt: rd.Prompt,
	}
	if rd.Declared.State != "" {
		c.Declared = p.declaredAt
	}
	counts, again := p.r.State.Weigh(c, now, p.r.Timing.Stale)
	if !counts {
		p.r.WakeAt(again)
	}
	return counts
}

// stepActivity reports the program's activity when it has been stable and says something new.
func (p *Terminal) stepActivity(now time.Time) {
	r, rd, shown := p.r, &p.reading, p.r.State.Session()
	switch {
	case rd.Activity == reducer.Starting && shown.Activity == reducer.Unknown: // nothing known was shown yet
	case !p.isNews() && !(p.turn.isOurs && run.HasEndedTurn(rd.Activity)):
	case rd.Dialog != nil: // reported by its question
	case r.IsStopping: // what a program shows while it is stopped does not end its turn
	case !p.counts(now):
	case r.MustWait(p.readingSince.Add(p.hold()), now):
	case rd.Activity.IsWork() && p.isSubmitted(): // isAccepted is about to see whether this is the text's turn
	default:
		p.reportIfStill(p.readingSince, now)
	}
}

// isNews reports whether the reading says something else than the events. Where hooks report the turns, the screen adds
// only what they do not know.
func (p *Terminal) isNews() bool {
	seen, shown := p.reading.Activity, p.r.State.Session()
	if p.r.State.HasHooks() {
		return seen.Word() != shown.Word()
	}
	return seen != shown.Activity || p.reading.Detail != p.detail
}

// reportIfStill reports what the screen shows if that has not changed since then. On a busy machine the runner may be
// so late that newer output has waited longer than the hold.
func (p *Terminal) reportIfStill(since, now time.Time) {
	p.Refresh()
	p.r.WakeAt(p.nextRead)
	if !p.readingSince.Equal(since) {
		p.r.WakeAt(now)
	} else if p.frameSince.IsZero() || p.nextRead.IsZero() {
		p.reportActivity(p.reading)
	}
}

// hold is how long a reading must stay the same before it counts:
//
//	what the program declares            not at all; but settle if a dialog or an answer belongs to it, which may be drawn
//	                                     behind it
//	that it is idle, or at a limit       idle
//	the same, behind a text of ours      unanswered, while there is no sign of work or no answer; unstarted, while there is
//	                                     neither: the program may not have read the text, and opencode first asks its
//	                                     model for a title. What it declares then may be older than the text
//	that nothing on it is known          stale
//	anything else                        settle
//
// If hooks report the turns it is at least stale.
func (p *Terminal) hold() time.Duration {
	rd, t, timing := &p.reading, &p.turn, p.r.Timing
	isOver := run.HasEndedTurn(rd.Activity)
	isDue := isOver && t.isOurs && !t.isInterrupted && !p.driver.Plain && rd.Failure == "" && rd.Activity != reducer.Limited
	isDue = isDue && (!t.hasWorked || p.Response() == "")
	if rd.Source == reducer.FromDeclared && !(isOver && t.isOurs && !t.hasWorked) {
		if isDue || rd.Activity == reducer.Confirming {
			return timing.Settle
		}
		return 0
	}
	hold := timing.Settle
	switch {
	case isDue && !t.hasWorked && p.Response() == "":
		hold = timing.Unstarted
	case isDue:
		hold = timing.Unanswered
	case isOver:
		hold = timing.Idle
	case rd.Activity == reducer.Unknown:
		hold = timing.Stale
	}
	if p.r.State.HasHooks() {
		hold = max(hold, timing.Stale)
	}
	return hold
}

// reportActivity reports what the screen shows, and what that means for the turn.
func (p *Terminal) reportActivity(rd driver.Reading) {
	r, t, isNews := p.r, &p.turn, p.isNews()
	before := r.State.Session().Activity
	if isBegun := rd.Activity.IsWork() && !t.isOpen && !t.isOurs; isBegun { // a person began a turn
		t.id, t.text, t.startRow, t.isOpen = "", "", p.emulator.Scrolled(), true
		if !r.State.HasHooks() && p.isReady && r.State.Session().Turn.Status != reducer.TurnBusy {
			p.appendTurnStarted("")
		}
	}
	if run.HasEndedTurn(rd.Activity) {
		p.endTurn(rd, before != reducer.Starting)
	}
	if isNews {
		p.report(before, rd)
	}
}

// report reports what the program does as its screen, its title or its own declaration shows it.
func (p *Terminal) report(previous reducer.Activity, rd driver.Reading) {
	p.detail = rd.Detail
	until := ""
	if rd.Activity == reducer.Limited && !p.limit.end.IsZero() {
		until = p.limit.end.UTC().Format(time.RFC3339)
	}
	p.r.AppendChange(previous, rd.Activity, rd.Detail, rd.Source, "until", until)
}

// showsWork reports whether the screen shows that a text was accepted. A program that asks something is working, too.
func showsWork(rd driver.Reading) bool { return rd.Activity.IsWork() || rd.Dialog != nil }

func fingerprint(d *ask.Question) string {
	if d == nil {
		return ""
	}
	return d.Fingerprint
}

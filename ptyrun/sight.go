package ptyrun

import (
	"strings"
	"time"

	"github.com/agentteammail/atm/ptyrun/driver"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// sight is what has been seen of a program's screen, and since when.
type sight struct {
	reading driver.Reading
	since   time.Time // since when activity, detail and dialog are what they are
	prompt  time.Time // since when it could be typed into; zero: it cannot
	version uint64    // of the screen that was judged
	changed time.Time // when the screen was written to last
	frame   time.Time // since when a frame is being drawn; zero: none is
	judge   time.Time // when to judge anew; zero: nothing was written
	told    reducer.Activity
	detail  string // told
	worked  bool   // it was busy since a text of ours was taken
	ready   bool   // it was idle for long enough once
}

// How soon after output a screen is judged: a burst is judged once. A frame
// that is never closed counts as closed after a while.
const (
	judgeAfter = 20 * time.Millisecond
	longFrame  = time.Second
	longStart  = 30 * time.Second // for a program that is not known by its command
)

func (s *sight) begin(now time.Time) {
	s.told, s.since, s.changed = reducer.Starting, now, now
	s.reading = driver.Reading{Activity: reducer.Starting, Why: "starting"}
}

func (s *sight) wrote(now time.Time) {
	s.changed = now
	if s.judge.IsZero() {
		s.judge = now.Add(judgeAfter)
	}
}

// see judges the screen now, unless it is in the middle of a frame.
func (p *program) see(now time.Time, auto bool) {
	p.judge = time.Time{}
	if p.screen.Modes().Sync {
		if p.frame.IsZero() {
			p.frame = now
		}
		if now.Sub(p.frame) < longFrame {
			p.judge = now.Add(judgeAfter)
			return
		}
	} else {
		p.frame = time.Time{}
	}
	if v := p.screen.Version(); v == p.version && p.version != 0 {
		return
	} else {
		p.version = v
	}
	look := p.lookAt()
	if auto {
		p.driver = p.driver.Recognise(look)
	}
	before := p.reading
	p.reading = p.driver.Read(look, before)
	if r := &p.reading; r.Activity != before.Activity || r.Detail != before.Detail || printOf(r.Dialog) != printOf(before.Dialog) {
		p.since = now
	}
	p.worked = p.worked || atWork(p.reading)
	if !p.reading.Prompt {
		p.prompt = time.Time{}
	} else if p.prompt.IsZero() {
		p.prompt = now
	}
}

// freshen takes in and judges what the program has written by now: before a key
// of ours, what has come meanwhile counts.
func (r *runner) freshen(now time.Time) {
	r.output()
	if p := r.prog; p.version != p.screen.Version() || !p.frame.IsZero() {
		p.see(now, r.Auto)
	}
}

func (p *program) lookAt() driver.Look {
	look := driver.LookAt(p.screen)
	if p.driver.Plain {
		if group, name := p.child.Foreground(); group != p.child.PID() {
			look.Foreground = name
		}
	}
	return look
}

// atWork reports whether a screen shows that a text was taken: who asks is at it.
func atWork(r driver.Reading) bool { return busy(r.Activity) || r.Dialog != nil }

func printOf(d *driver.Dialog) string {
	if d == nil {
		return ""
	}
	return d.Print
}

// look judges the screen when that is due, and tells what has held for long
// enough.
func (r *runner) look(now time.Time) (next time.Time) {
	p := r.prog
	if !p.judge.IsZero() && !now.Before(p.judge) {
		p.see(now, r.Auto)
	}
	next = p.judge
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if !p.ready && !p.prompt.IsZero() {
		if at := p.prompt.Add(r.waits.First); now.Before(at) {
			sooner(at)
		} else {
			p.ready = true
			if r.Ready != nil {
				r.Ready()
			}
		}
	}
	rd := p.reading
	if rd.HasDraft && p.driver.Junk(rd.Draft) && r.typing == nil && !now.Before(p.since.Add(r.waits.Idle)) && now.Sub(r.lastHuman) > r.waits.Human {
		p.since = now // once in a while, should it not help
		for _, k := range p.driver.ClearDraft(rd.Draft) {
			p.out.put(k)
		}
	}
	if d := rd.Dialog; printOf(d) != r.asked() {
		if at := p.since.Add(r.waits.Settle); now.Before(at) {
			sooner(at)
		} else if d == nil {
			r.closeQuestion(rd.Activity)
		} else {
			r.openQuestion(*d, now)
		}
	}
	if p.driver.Plain && !p.ready && rd.Activity == reducer.Starting && p.told == reducer.Starting {
		at := p.began.Add(longStart)
		if now.Before(at) {
			sooner(at)
			return next
		}
		p.told = reducer.Unknown
		r.say(wire.Event{Kind: "state_change"}.With("previous", string(reducer.Starting)).With("new", string(reducer.Unknown)))
		if r.Unsure != nil {
			r.Unsure()
		}
	}
	if rd.Activity == reducer.Starting && p.told == reducer.Unknown {
		return next // it has shown nothing that is known
	}
	if rd.Activity == p.told && rd.Detail == p.detail || rd.Dialog != nil {
		return next // what a dialog asks was told by its question
	}
	if r.stopping != nil {
		return next // how a program looks that is being ended is the end of no turn
	}
	hold := r.waits.Settle
	switch {
	case rd.Activity == reducer.Unknown:
		hold = r.waits.Hooked
	case rd.Activity == reducer.Idle:
		hold = r.waits.Idle
		if r.turnOurs && !p.driver.Plain && !r.cut {
			hold = r.unanswered(now, hold)
		}
	}
	if r.hooked() {
		hold = max(hold, r.waits.Hooked)
	}
	if at := p.since.Add(hold); now.Before(at) {
		sooner(at)
		return next
	}
	if busy(rd.Activity) && !p.ready && r.Auto && p.driver.Plain && now.Before(p.began.Add(longStart)) {
		sooner(p.began.Add(longStart))
		return next // a wrapper, perhaps, whose program has not drawn anything yet
	}
	if busy(rd.Activity) && r.typing.returned() {
		return next // whether this is its turn is about to be known
	}
	// On a busy machine the runner may get to run so late that what the program has
	// drawn since lies there unread for longer than the screen has to hold.
	since := p.since
	if r.freshen(now); !p.since.Equal(since) {
		return now
	}
	if !p.frame.IsZero() && !p.judge.IsZero() {
		sooner(p.judge)
		return next
	}
	rd = p.reading
	r.tellState(rd, now)
	return next
}

// unanswered is how long a screen has to look idle after a text of ours: longer
// than others while it shows no answer.
func (r *runner) unanswered(now time.Time, hold time.Duration) time.Duration {
	p := r.prog
	without := func() bool { return !now.Before(p.since.Add(hold)) && r.response() == "" }
	switch {
	case !p.worked:
		// What was taken a moment ago may not show yet: opencode asks for a title
		// first, for seconds on a slow machine, and shows nothing of it.
		if hold *= 3; without() {
			hold *= 7
		}
	case without():
		hold *= 3 // between two things that it does it may show neither
	}
	return hold
}

// tellState appends what the screen shows, unless hooks have said as much.
func (r *runner) tellState(rd driver.Reading, now time.Time) {
	p := r.prog
	previous := p.told
	p.told, p.detail = rd.Activity, rd.Detail
	turn := r.state.Turn()
	if busy(rd.Activity) && !busy(previous) && !r.turnOurs {
		r.turnText, r.turnFrom = "", p.screen.Scrolled() // a person began it
	}
	if r.hooked() && word(rd.Activity) == turn.Word() {
		return // hooks have said as much
	}
	if rd.Activity == reducer.Idle || rd.Activity == reducer.Error {
		if (r.turnOurs || turn.Status == reducer.TurnBusy) && !r.hooked() && previous != reducer.Starting && p.ready {
			r.say(r.completed(rd))
		}
		r.turnOurs, p.worked, r.cut = false, false, false
	}
	shown := rd.Activity
	if shown == reducer.Error && rd.Prompt && !strings.HasPrefix(rd.Detail, "usage limit") {
		shown = reducer.Idle // the last turn failed; the next may be begun
	}
	e := wire.Event{Kind: "state_change"}.With("previous", string(previous)).With("new", string(shown))
	if rd.Detail != "" {
		e = e.With("detail", rd.Detail)
	}
	r.say(e)
}

// completed is the end of a turn that only the screen tells of, with what was
// answered in it.
func (r *runner) completed(rd driver.Reading) wire.Event {
	status := reducer.Completed
	switch {
	case r.cut:
		status = reducer.Interrupted
	case rd.Activity == reducer.Error:
		status = reducer.Failed
	}
	e := wire.Event{Kind: "turn_completed"}.With("status", status)
	if status == reducer.Failed && rd.Detail != "" {
		e = e.With("error", rd.Detail)
	}
	if text := r.response(); text != "" && !(status == reducer.Interrupted && text == r.said) {
		e, r.said = e.With("response", text), text
	}
	return e
}

// maxResponse is how much of an answer an event keeps.
const maxResponse = 64 << 10

// response cuts the answer to the last prompt out of what the program has
// written since.
func (r *runner) response() string {
	p := r.prog
	_, rows := p.screen.Size()
	n := int(min(p.screen.Scrolled()-r.turnFrom, scrollback)) + rows
	return clip(p.driver.Response(p.screen.Tail(n), r.turnText), maxResponse)
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

func busy(a reducer.Activity) bool {
	return a == reducer.Thinking || a == reducer.Responding || a == reducer.ToolRunning
}

// word is what docs/states.md makes of an activity.
func word(a reducer.Activity) reducer.Word {
	t := reducer.Turn{Activity: a}
	return t.Word()
}

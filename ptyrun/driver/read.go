package driver

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/agentteammail/atm/reducer"
)

// Read says what l means. before is the reading before, the zero one at first: it is what remains when the
// screen shows nothing that is known, and what counts while a redraw frame is open.
func (d *Driver) Read(l Look, before Reading) Reading {
	if l.Modes.Sync {
		before.Prompt, before.Why = false, "the screen is being redrawn"
		before.Activity = cmp.Or(before.Activity, reducer.Starting)
		return before
	}
	if d.Plain {
		return d.readPlain(&l, before)
	}
	return d.readAgent(&l, before)
}

func (d *Driver) readAgent(l *Look, before Reading) Reading {
	p, boxed := d.findBox(l)
	if q := d.readDialog(l, p, boxed); q != nil {
		r := Reading{Activity: reducer.Confirming, Detail: q.Kind, Dialog: q, Why: "dialog"}
		if q.Kind == "question" {
			r.Activity = reducer.AwaitingInput
		}
		return r
	}
	says := d.titleActivity(l.Title)
	if says == reducer.Confirming {
		// The program says that it asks, and what it asks cannot be read: nothing may be typed, and
		// nothing can be answered from here.
		return Reading{Activity: reducer.Confirming, Detail: "unknown", Why: "dialog"}
	}
	if !boxed {
		return d.readWithoutBox(l, says, before)
	}
	r := Reading{Draft: p.draft, HasDraft: p.draft != ""}
	s := d.lastTurnAbove(l, p.top)
	hint := d.footMeaning(l, p)
	switch {
	case says == reducer.Thinking || s.busy != "" || hint == busyFoot:
		r.Activity, r.Detail = s.activity()
		r.Why = "busy"
	case s.errorLine != "":
		r.Activity, r.Detail = reducer.Error, s.errorLine
	default:
		r.Activity = reducer.Idle
	}
	// Codex draws its box seconds before it can take a message, and may ask for trust instead.
	early := d.box.startingFoot != "" && blank(l.Title) && l.solidRows(p.bottom+1, len(l.Lines)) == Solid(d.box.startingFoot)
	if r.Why == "" && early {
		r.Activity, r.Why = reducer.Starting, "starting"
	}
	switch {
	case r.Why != "":
	case p.mode != "":
		r.Why, r.HasDraft = p.mode, true
	case p.isCut:
		r.Why, r.HasDraft = "draft", true
	case r.HasDraft:
		r.Why = "draft"
	case hint != "":
		r.Why = hint
	case !p.cursorAtStart(l):
		r.Why = "the cursor is elsewhere"
	default:
		r.Prompt = true
	}
	return r
}

// readWithoutBox is the reading of a screen without an input box: while starting, in an overlay, in the middle of a redraw.
func (d *Driver) readWithoutBox(l *Look, says reducer.Activity, before Reading) Reading {
	r := Reading{Why: "no prompt on the screen"}
	switch {
	case says == reducer.Thinking:
		r.Activity, r.Detail = d.lastTurnAbove(l, len(l.Lines)).activity()
	case before.Activity == "" || before.Activity == reducer.Starting:
		r.Activity = reducer.Starting
	case before.Activity == reducer.Confirming || before.Activity == reducer.AwaitingInput:
		r.Activity = reducer.Unknown // what was asked is gone, what came is not there yet
	case says == reducer.Idle && before.Activity != reducer.Error:
		r.Activity = reducer.Idle
	default:
		// Nothing seen is not nothing done: an overlay hides a turn as well.
		r.Activity, r.Detail = before.Activity, before.Detail
	}
	return r
}

// busyFoot is what footSays calls a foot that tells of a turn.
const busyFoot = "busy"

// footMeaning reads the rows below the box: busyFoot if they tell of a turn, else why nothing may be typed.
func (d *Driver) footMeaning(l *Look, p inputBox) (hint string) {
	for y := p.bottom + 1; y < len(l.Lines); y++ {
		for _, n := range d.foot {
			if strings.Contains(l.line(y), n.text) && (hint == "" || n.means == busyFoot) {
				hint = n.means
			}
		}
	}
	return hint
}

// activity is what an agent does whose turn goes on.
func (s lastTurn) activity() (reducer.Activity, string) {
	switch {
	case s.isRetrying:
		if m := retryCount.FindStringSubmatch(s.busy); m != nil {
			return reducer.Thinking, "API retry " + m[1]
		}
		return reducer.Thinking, "API retry"
	case strings.Contains(s.busy, "ompacting"):
		return reducer.Thinking, "compacting"
	case s.isToolRunning:
		return reducer.ToolRunning, s.tool
	case s.isAnswering:
		return reducer.Responding, ""
	}
	return reducer.Thinking, ""
}

// retryCount is how a line counts its retries.
var retryCount = regexp.MustCompile(`(?:attempt |Reconnecting(?:\.\.\.|…) )#?([0-9/]+)`)

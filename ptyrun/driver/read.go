package driver

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"github.com/agentteammail/atm/reducer"
)

// How long a reading must hold before the caller acts on it.
const (
	FirstSettle  = time.Second
	Settle       = 500 * time.Millisecond
	DialogSettle = 200 * time.Millisecond
)

// A Reading is the meaning of a screen. The zero Reading means that nothing of the program was seen yet.
//
// At a prompt Activity is Idle, or Error if the last turn ended in an error. Only Prompt says whether the program would
// accept a message.
type Reading struct {
	Activity        reducer.Activity
	Detail          string  // the tool, "permission", "question", "trust", "API retry 4/10", "compacting", the line of a usage limit
	Dialog          *Dialog // nil if there is none
	Draft           string  // the text in the input box, its rows joined by newlines
	HasDraft        bool
	Prompt          bool   // a text typed now would be accepted as a message
	BoxRow          int    // the first row of an agent's input box at its prompt
	NotPromptReason string // why Prompt is false: "dialog", "busy", "draft", "no prompt on the screen", …

	memory memory
}

// memory is what the next reading must know. Only a plain driver uses it.
type memory struct {
	usesPaste bool   // the program has enabled bracketed paste before
	prompt    string // the last prompt that had nothing typed after it
}

// Read interprets a screen. before is the previous reading, at first the zero one: it counts while a synchronized
// update is open or the screen shows nothing known.
func (d *Driver) Read(l Look, before Reading) Reading {
	if l.Modes.Sync {
		before.Prompt, before.NotPromptReason = false, "it is redrawing its screen"
		before.Activity = cmp.Or(before.Activity, reducer.Starting)
		return before
	}
	if d.Plain {
		return d.readPlain(&l, before)
	}
	return d.readAgent(&l, before)
}

func (d *Driver) readAgent(l *Look, before Reading) Reading {
	box := d.findBox(l)
	if q := d.readDialog(l, box); q != nil {
		r := Reading{Activity: reducer.Confirming, Detail: q.Kind, Dialog: q, NotPromptReason: "dialog"}
		if q.Kind == "question" {
			r.Activity = reducer.AwaitingInput
		}
		return r
	}
	titleShows := d.titleActivity(l.Title)
	if titleShows == reducer.Confirming {
		// The title shows a dialog that cannot be read: nothing may be typed or answered.
		return Reading{Activity: reducer.Confirming, Detail: "unknown", NotPromptReason: "dialog"}
	}
	if box == nil {
		return d.readWithoutBox(l, titleShows, before)
	}
	r := Reading{Draft: box.draft, HasDraft: box.draft != "" || box.mode != "", BoxRow: box.top}
	turn := d.lastTurnAbove(l, box.top)
	isBusyInTitle := titleShows == reducer.Thinking && !turn.isWaiting
	switch {
	case isBusyInTitle || turn.isBusy || box.foot == busyFoot:
		r.Activity, r.Detail, r.NotPromptReason = turn.activity, turn.detail, "busy"
		return r
	case d.isStarting(l, box):
		r.Activity, r.NotPromptReason = reducer.Starting, "starting"
		return r
	case turn.errorLine != "":
		r.Activity, r.Detail = reducer.Error, turn.errorLine
	default:
		r.Activity = reducer.Idle
	}
	switch {
	case box.mode != "" || box.foot != "":
		r.NotPromptReason = cmp.Or(box.mode, box.foot)
	case r.HasDraft:
		r.NotPromptReason = "draft"
	case !box.hasCursorAtStart(l):
		r.NotPromptReason = "the cursor is not in its prompt"
	}
	r.Prompt = r.NotPromptReason == ""
	return r
}

// isStarting reports whether the program has drawn its box but does not accept a message yet: Codex does so for
// seconds, and may ask for trust instead.
func (d *Driver) isStarting(l *Look, box *inputBox) bool {
	foot := RemoveBlanks(d.box.startingFoot)
	return foot != "" && blank(l.Title) && l.solidRows(box.bottom+1, len(l.Lines)) == foot
}

// readWithoutBox reads a screen without an input box: at the start, in an overlay, or in the middle of a redraw.
func (d *Driver) readWithoutBox(l *Look, titleShows reducer.Activity, before Reading) Reading {
	r := Reading{NotPromptReason: "no prompt on the screen"}
	switch {
	case titleShows == reducer.Thinking:
		turn := d.lastTurnAbove(l, len(l.Lines))
		r.Activity, r.Detail = turn.activity, turn.detail
	case strings.Contains(l.solidFoot(), "Esctocancel"):
		// A dialog whose options are not on the screen: it is too small.
		r.Activity, r.Detail, r.NotPromptReason = reducer.Confirming, "unknown", "dialog"
	case before.Activity == "" || before.Activity == reducer.Starting:
		r.Activity = reducer.Starting
	case before.Activity == reducer.Confirming || before.Activity == reducer.AwaitingInput:
		r.Activity = reducer.Unknown // the dialog is gone, and nothing has followed it yet
	case titleShows == reducer.Idle && before.Activity != reducer.Error:
		r.Activity = reducer.Idle
	default:
		// An overlay may hide a turn.
		r.Activity, r.Detail = before.Activity, before.Detail
	}
	return r
}

// A rowKind says what a row of the transcript is.
type rowKind int

const (
	otherRow  rowKind = iota
	userRow           // starts a message to the agent
	answerRow         // starts an answer
	toolRow           // a tool call, running or not
	runsRow           // shows that a tool is running, this one or the one above
	busyRow           // shows an open turn
	retryRow          // shows an open turn after an error
	doneRow           // ends a turn
	waitsRow          // likewise; sub-agents go on in the background
	errorRow          // ends a turn with an error or a usage limit
	noteRow           // a note of the program itself
	hintRow           // anything else that is no text of an answer: a hint, a tool's output, a queued message
)

// A rowPattern recognizes rows of one kind. A group names the tool.
type rowPattern struct {
	kind rowKind
	re   *regexp.Regexp
}

var pattern = regexp.MustCompile

// spins are the braille characters of spinners, for a character class.
const spins = `\x{2801}-\x{28ff}`

func (d *Driver) kindOf(line string) rowKind {
	kind, _ := d.readRow(line)
	return kind
}

// readRow returns a row's kind and the tool that it names.
func (d *Driver) readRow(line string) (kind rowKind, tool string) {
	if blank(line) {
		return otherRow, ""
	}
	for _, p := range d.rows {
		if m := p.re.FindStringSubmatch(line); m != nil {
			return p.kind, strings.Join(m[1:], "")
		}
	}
	return otherRow, ""
}

// A lastTurn is the turn above the input box, from the last message on.
type lastTurn struct {
	isBusy    bool
	activity  reducer.Activity // if it is open
	detail    string
	isWaiting bool   // it is over, and only sub-agents work
	errorLine string // an error or usage limit, if that comes last
}

// lastTurnAbove reads upwards from row y (exclusive) to the last message.
func (d *Driver) lastTurnAbove(l *Look, y int) (t lastTurn) {
	t.activity = reducer.Thinking
	isLast, isOver := true, false // no row of the turn, or its end, was seen yet
	for y--; y >= 0; y-- {
		line := strings.TrimSpace(l.line(y))
		switch k := d.kindOf(l.line(y)); k {
		case busyRow, retryRow:
			if isLast && !isOver && !t.isBusy {
				t.isBusy, t.detail = true, busyDetail(line, k == retryRow)
			}
		case doneRow, waitsRow:
			t.isWaiting = t.isWaiting || k == waitsRow && isLast && !t.isBusy
			isOver = true
		case runsRow, toolRow, answerRow, errorRow, noteRow:
			switch {
			case !isLast:
			case k == errorRow:
				t.errorLine = line
			case isOver || t.detail != "":
			case k == answerRow:
				t.activity = reducer.Responding
			case k == runsRow:
				t.activity, t.detail = reducer.ToolRunning, d.runningTool(l, y)
			}
			isLast = false
		case userRow:
			if !d.isQueued(l, y) {
				return t
			}
		}
	}
	return t
}

// busyDetail returns what a busy line says beside that.
func busyDetail(line string, isRetry bool) string {
	switch {
	case isRetry:
		count := append(retryCount.FindStringSubmatch(line), "", "")[1]
		return strings.TrimSpace("API retry " + count)
	case strings.Contains(line, "ompacting"):
		return "compacting"
	}
	return ""
}

// retryCount matches the count in the line of a retry.
var retryCount = regexp.MustCompile(`(?:attempt |Reconnecting(?:\.\.\.|…) )#?([0-9/]+)`)

// isQueued reports whether the message in row y waits for the end of the turn: it is below the busy line.
func (d *Driver) isQueued(l *Look, y int) bool {
	for y--; y >= 0; y-- {
		switch d.kindOf(l.line(y)) {
		case busyRow, retryRow:
			return true
		case otherRow, userRow, hintRow:
		default:
			return false
		}
	}
	return false
}

// runningTool returns the tool that row y shows as running: its name in that row or in the nearest call above it.
func (d *Driver) runningTool(l *Look, y int) string {
	for n := y; n >= 0 && n > y-12; n-- {
		kind, tool := d.readRow(l.line(n))
		if rest, ok := strings.CutPrefix(l.line(n), "  "); ok && tool == "" {
			_, tool = d.readRow("● " + rest) // it blinks in Claude Code
		}
		if tool != "" {
			return cmp.Or(d.dialogs.verbs[tool], tool)
		}
		if n < y && kind == userRow {
			break
		}
	}
	return ""
}

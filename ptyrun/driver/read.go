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
	r := Reading{Draft: box.draft, HasDraft: box.draft != "", BoxRow: box.top}
	turn, foot := d.lastTurnAbove(l, box.top), d.footMeaning(l, box)
	isBusyInTitle := titleShows == reducer.Thinking && !turn.isWaiting
	switch {
	case isBusyInTitle || turn.busy != "" || foot == busyFoot:
		r.Activity, r.Detail = turn.activity()
		r.NotPromptReason = "busy"
	case d.isStarting(l, box):
		r.Activity, r.NotPromptReason = reducer.Starting, "starting"
	case turn.errorLine != "":
		r.Activity, r.Detail = reducer.Error, turn.errorLine
	default:
		r.Activity = reducer.Idle
	}
	if r.NotPromptReason == "" {
		r.NotPromptReason = box.notReadyReason(l, foot)
		r.HasDraft = r.HasDraft || box.mode != ""
	}
	r.Prompt = r.NotPromptReason == ""
	return r
}

// isStarting reports whether the program has drawn its box but does not accept a message yet: Codex does so for seconds,
// and may ask for trust instead.
func (d *Driver) isStarting(l *Look, box *inputBox) bool {
	foot := RemoveBlanks(d.box.startingFoot)
	return foot != "" && blank(l.Title) && l.solidRows(box.bottom+1, len(l.Lines)) == foot
}

// readWithoutBox reads a screen without an input box: at the start, in an overlay, or in the middle of a redraw.
func (d *Driver) readWithoutBox(l *Look, titleShows reducer.Activity, before Reading) Reading {
	r := Reading{NotPromptReason: "no prompt on the screen"}
	switch {
	case titleShows == reducer.Thinking:
		r.Activity, r.Detail = d.lastTurnAbove(l, len(l.Lines)).activity()
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

// busyFoot is the meaning of a text below the box that shows a turn.
const busyFoot = "busy"

// footMeaning reads the rows below the box. It returns busyFoot, or else why nothing may be typed, or "".
func (d *Driver) footMeaning(l *Look, box *inputBox) (hint string) {
	for y := box.bottom + 1; y < len(l.Lines); y++ {
		for _, ph := range d.foot {
			if strings.Contains(l.line(y), ph.text) && (hint == "" || ph.means == busyFoot) {
				hint = ph.means
			}
		}
	}
	return hint
}

// activity returns what the agent does in an open turn, with the Detail of a Reading.
func (t lastTurn) activity() (reducer.Activity, string) {
	switch {
	case t.isRetrying:
		if m := retryCount.FindStringSubmatch(t.busy); m != nil {
			return reducer.Thinking, "API retry " + m[1]
		}
		return reducer.Thinking, "API retry"
	case strings.Contains(t.busy, "ompacting"):
		return reducer.Thinking, "compacting"
	case t.isToolRunning:
		return reducer.ToolRunning, t.tool
	case t.isAnswering:
		return reducer.Responding, ""
	}
	return reducer.Thinking, ""
}

// retryCount matches the count in the line of a retry.
var retryCount = regexp.MustCompile(`(?:attempt |Reconnecting(?:\.\.\.|…) )#?([0-9/]+)`)

// A rowKind says what a row of the transcript is.
type rowKind int

const (
	otherRow  rowKind = iota
	userRow           // starts a message to the agent
	queuedRow         // a message that waits for the end of the turn
	answerRow         // starts an answer
	toolRow           // a tool call, running or not
	runsRow           // shows that a tool is running, this one or the one above
	busyRow           // shows an open turn
	retryRow          // shows an open turn after an error
	doneRow           // ends a turn
	waitsRow          // likewise; sub-agents go on in the background
	errorRow          // ends a turn with an error or a usage limit
	noteRow           // a note of the program itself
	hintRow           // a hint about keys
)

// A rowPattern recognizes rows of one kind.
type rowPattern struct {
	kind   rowKind
	re     *regexp.Regexp
	isCall bool // Name(…) must follow
}

var pattern = regexp.MustCompile

// spins are the braille characters of spinners, for a character class.
const spins = `\x{2801}-\x{28ff}`

var toolName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_:. -]*$`)

// callName returns the name in "Name(arguments…", or "" for anything else, such as a sentence with a parenthesis.
func callName(s string) string {
	name, _, ok := strings.Cut(s, "(")
	if !ok || !toolName.MatchString(name) {
		return ""
	}
	words := strings.Contains(name, " ") && !strings.Contains(name, " - ")
	if lower := name[0] >= 'a' && !strings.Contains(name, "_"); words || lower {
		return ""
	}
	return strings.TrimSpace(name)
}

func (d *Driver) kindOf(line string) rowKind {
	if blank(line) {
		return otherRow
	}
	for _, p := range d.rows {
		at := p.re.FindStringIndex(line)
		if at != nil && (!p.isCall || callName(line[at[1]:]) != "") {
			return p.kind
		}
	}
	return otherRow
}

// A lastTurn is the turn above the input box, from the last message on.
type lastTurn struct {
	busy          string // the busy line, or ""
	isRetrying    bool   // the busy line reports an error
	isToolRunning bool
	tool          string // the running tool
	isAnswering   bool   // an answer comes last
	isWaiting     bool   // it is over, and only sub-agents work
	errorLine     string // an error or usage limit, if that comes last
}

// lastTurnAbove reads upwards from row y (exclusive) to the last message.
func (d *Driver) lastTurnAbove(l *Look, y int) (t lastTurn) {
	isLast, isOver := true, false // no row of the turn, or its end, was seen yet
	for y--; y >= 0; y-- {
		line := strings.TrimSpace(l.line(y))
		switch k := d.kindOf(l.line(y)); k {
		case busyRow, retryRow:
			if isLast && !isOver && t.busy == "" {
				t.busy, t.isRetrying = line, k == retryRow
			}
		case doneRow, waitsRow:
			t.isWaiting = t.isWaiting || k == waitsRow && isLast && t.busy == ""
			isOver = true
		case runsRow, toolRow, answerRow, errorRow, noteRow:
			switch {
			case !isLast:
			case k == errorRow:
				t.errorLine = line
			case k == answerRow:
				t.isAnswering = !isOver
			case k == runsRow && !isOver:
				t.isToolRunning, t.tool = true, d.runningTool(l, y)
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

// isQueued reports whether the message in row y waits for the end of the turn: it is below the busy line.
func (d *Driver) isQueued(l *Look, y int) bool {
	for y--; y >= 0; y-- {
		switch d.kindOf(l.line(y)) {
		case busyRow, retryRow:
			return true
		case otherRow, queuedRow, userRow:
		default:
			return false
		}
	}
	return false
}

// runningRow matches the start of a row that names the running tool.
var runningRow = pattern(`^[~` + spins + `] `)

// runningTool returns the tool that row y shows as running: its name in that row or in the nearest call above it, else
// the text after the row's spinner.
func (d *Driver) runningTool(l *Look, y int) string {
	text := ""
	if row, _ := unframe(l.line(y)); runningRow.MatchString(row) {
		text = firstRunes(strings.TrimSpace(skipRunes(row, 1)), 60)
	}
	for n := 0; y >= 0 && n < 12; y, n = y-1, n+1 {
		line := strings.TrimLeft(l.line(y), " ●⏺•│┃⊷")
		if name := callName(line); name != "" {
			return name
		}
		if n > 0 && d.kindOf(l.line(y)) == userRow {
			break
		}
		if verb, ok := findPrefix(line, d.dialogs.verbs); ok {
			return verb.means
		}
	}
	return text
}

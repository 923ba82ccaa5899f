package driver

import (
	"regexp"
	"strings"
)

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

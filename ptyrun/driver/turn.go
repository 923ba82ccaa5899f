package driver

import (
	"regexp"
	"strings"
)

// A rowKind is what a row of the transcript is the mark of.
type rowKind int

const (
	otherRow  rowKind = iota
	userRow           // what was sent to the agent
	queuedRow         // what waits for the turn's end
	answerRow         // an answer begins
	toolRow           // a tool's call, over or not
	runsRow           // says that the tool above it, or it itself, runs
	busyRow           // a turn goes on
	retryRow          // a turn goes on, after an error
	doneRow           // a turn is over
	errorRow          // a turn ended in an error, or at a usage limit
	noteRow           // something the program says by itself
	hintRow           // what keys do
)

// A rowPattern is one way to tell what a row of the screen is.
type rowPattern struct {
	kind   rowKind
	re     *regexp.Regexp
	isCall bool // what follows is Name(…)
}

var pattern = regexp.MustCompile

// spins is a spinner of braille characters, in a class.
const spins = `\x{2801}-\x{28ff}`

func (m *rowPattern) matches(line string) bool {
	at := m.re.FindStringIndex(line)
	return at != nil && (!m.isCall || callName(line[at[1]:]) != "")
}

var toolName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_:. -]*$`)

// callName is Name of "Name(arguments…"; "" when s is no such thing, but a sentence with a parenthesis.
func callName(s string) string {
	name, _, ok := strings.Cut(s, "(")
	if !ok || len(name) > 80 || !toolName.MatchString(name) {
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
	for i := range d.rows {
		if d.rows[i].matches(line) {
			return d.rows[i].kind
		}
	}
	return otherRow
}

// A lastTurn is what stands above the input box, from the last message sent on.
type lastTurn struct {
	busy          string // the busy line, "" without one
	isRetrying    bool   // it tells of an error
	tool          string // the tool that runs
	isToolRunning bool
	isAnswering   bool   // an answer is the last thing
	errorLine     string // the line of an error or a usage limit that is the last thing
}

// lastTurnAbove reads l upwards from row y (without it) to the last message sent.
func (d *Driver) lastTurnAbove(l *Look, y int) lastTurn {
	var s lastTurn
	settled := false // the last thing of the turn was seen
	over := false    // the turn's end was seen: what stands above does not go on
	for y--; y >= 0; y-- {
		line := strings.TrimSpace(l.line(y))
		switch k := d.kindOf(l.line(y)); k {
		case busyRow, retryRow:
			if !settled && !over && s.busy == "" {
				s.busy, s.isRetrying = line, k == retryRow
			}
		case doneRow:
			over = true
		case runsRow, toolRow, answerRow, errorRow, noteRow:
			if settled {
				continue
			}
			settled = true
			switch k {
			case runsRow:
				if !over {
					s.isToolRunning, s.tool = true, d.runningTool(l, y)
				}
			case answerRow:
				s.isAnswering = !over
			case errorRow:
				s.errorLine = line
			}
		case userRow:
			if !d.isQueued(l, y) {
				return s
			}
		}
	}
	return s
}

// isQueued reports whether the message in row y waits for the end of the turn: it stands below the busy line.
func (d *Driver) isQueued(l *Look, y int) bool {
	for y--; y >= 0; y-- {
		switch d.kindOf(l.line(y)) {
		case busyRow, retryRow:
			return true
		case otherRow, queuedRow:
		case userRow: // several may wait
		default:
			return false
		}
	}
	return false
}

// runningRow is the beginning of a row that names what runs.
var runningRow = pattern(`^[~` + spins + `] `)

// runningTool names the tool that row y says of that it runs: by that row or the nearest call above it, else by
// what stands behind the row's spinner.
func (d *Driver) runningTool(l *Look, y int) string {
	said := ""
	if text, _ := unframe(l.line(y)); runningRow.MatchString(text) {
		said = firstRunes(strings.TrimSpace(skipRunes(text, 1)), 60)
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
	return said
}

package driver

import (
	"regexp"
	"strings"
)

// A kind is what a row of the transcript is the mark of.
type kind int

const (
	other     kind = iota
	userRow        // what was sent to the agent
	queuedRow      // what waits for the turn's end
	answerRow      // an answer begins
	toolRow        // a tool's call, over or not
	runsRow        // says that the tool above it, or it itself, runs
	busyRow        // a turn goes on
	retryRow       // a turn goes on, after an error
	doneRow        // a turn is over
	errorRow       // a turn ended in an error, or at a usage limit
	noteRow        // something the program says by itself
	hintRow        // what keys do
)

// A mark is one way to tell what a row of the screen is.
type mark struct {
	is   kind
	on   *regexp.Regexp
	call bool // what follows is Name(…)
}

var pattern = regexp.MustCompile

// spins is a spinner of braille characters, in a class.
const spins = `\x{2801}-\x{28ff}`

func (m *mark) fits(line string) bool {
	at := m.on.FindStringIndex(line)
	return at != nil && (!m.call || callName(line[at[1]:]) != "")
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

func (d *Driver) kindOf(line string) kind {
	if blank(line) {
		return other
	}
	for i := range d.marks {
		if d.marks[i].fits(line) {
			return d.marks[i].is
		}
	}
	return other
}

// A scene is what stands above the input box, from the last message sent on.
type scene struct {
	busy    string // the busy line, "" without one
	retry   bool   // it tells of an error
	running string // the tool that runs
	runs    bool
	answers bool   // an answer is the last thing
	failed  string // the line of an error or a usage limit that is the last thing
}

// sceneAbove reads l upwards from row y (without it) to the last message sent.
func (d *Driver) sceneAbove(l *Look, y int) scene {
	var s scene
	settled := false // the last thing of the turn was seen
	over := false    // the turn's end was seen: what stands above does not go on
	for y--; y >= 0; y-- {
		line := strings.TrimSpace(l.line(y))
		switch k := d.kindOf(l.line(y)); k {
		case busyRow, retryRow:
			if !settled && !over && s.busy == "" {
				s.busy, s.retry = line, k == retryRow
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
					s.runs, s.running = true, d.toolAt(l, y)
				}
			case answerRow:
				s.answers = !over
			case errorRow:
				s.failed = line
			}
		case userRow:
			if !d.queued(l, y) {
				return s
			}
		}
	}
	return s
}

// queued reports whether the message in row y waits for the end of the turn: it stands below the busy line.
func (d *Driver) queued(l *Look, y int) bool {
	for y--; y >= 0; y-- {
		switch d.kindOf(l.line(y)) {
		case busyRow, retryRow:
			return true
		case other, queuedRow:
		case userRow: // several may wait
		default:
			return false
		}
	}
	return false
}

// running is the beginning of a row that names what runs.
var running = pattern(`^[~` + spins + `] `)

// toolAt names the tool that row y says of that it runs: by that row or the nearest call above it, else by
// what stands behind the row's spinner.
func (d *Driver) toolAt(l *Look, y int) string {
	said := ""
	if text, _ := unframe(l.line(y)); running.MatchString(text) {
		said = firstRunes(strings.TrimSpace(after(text, 1)), 60)
	}
	for n := 0; y >= 0 && n < 12; y, n = y-1, n+1 {
		line := strings.TrimLeft(l.line(y), " ●⏺•│┃⊷")
		if name := callName(line); name != "" {
			return name
		}
		if n > 0 && d.kindOf(l.line(y)) == userRow {
			break
		}
		if verb, ok := startOf(line, d.asks.verbs); ok {
			return verb.why
		}
	}
	return said
}

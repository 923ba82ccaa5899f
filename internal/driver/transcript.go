package driver

import "strings"

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
	errorRow       // a turn ended in an error
	limitRow       // a turn ended at a usage limit
	noteRow        // something the program says by itself
	hintRow        // what keys do
)

// A row is one way to tell what a row of the screen is. Every condition that is
// set must hold.
type row struct {
	is      kind
	start   []string // the row begins with one of these, blanks included
	spins   string   // the row, or what follows start, begins with one of these characters and a blank
	trim    bool     // blanks before start and spins are passed over
	has     string   // somewhere in the row
	has2    string   // and this
	twice   string   // twice or more
	lacks   string
	braille bool // spins: any braille character too
	call    bool // what follows the start is Name(…)
}

func (r *row) fits(line string) bool {
	if r.trim {
		line = strings.TrimLeft(line, " \u00a0")
	}
	rest := line
	if r.start != nil {
		found := false
		for _, s := range r.start {
			if rest, found = strings.CutPrefix(line, s); found {
				break
			}
		}
		if !found {
			return false
		}
	}
	if (r.spins != "" || r.braille) && !spinning(rest, r.spins, r.braille) {
		return false
	}
	if r.call && callName(rest) == "" {
		return false
	}
	if r.twice != "" && strings.Count(line, r.twice) < 2 {
		return false
	}
	return strings.Contains(line, r.has) && strings.Contains(line, r.has2) && (r.lacks == "" || !strings.Contains(line, r.lacks))
}

// spinning reports whether s begins with a spinner's character and a blank.
func spinning(s, spinners string, withBraille bool) bool {
	for i, r := range s {
		if i > 0 {
			return r == ' ' || r == '\u00a0'
		}
		if !strings.ContainsRune(spinners, r) && !(withBraille && r > 0x2800 && r <= 0x28ff) {
			return false
		}
	}
	return false
}

// callName is Name of "Name(arguments…"; "" when s is no such thing.
func callName(s string) string {
	name, _, ok := strings.Cut(s, "(")
	if !ok || name == "" || len(name) > 80 {
		return ""
	}
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789_-: .", r)) {
			return ""
		}
	}
	if c := name[0]; strings.Contains(name, " ") && !strings.HasSuffix(strings.TrimSpace(name), "(MCP)") && !strings.Contains(name, " - ") || c >= 'a' && c <= 'z' && !strings.Contains(name, "_") {
		return "" // a sentence with a parenthesis
	}
	return strings.TrimSpace(name)
}

// kindOf says what a row is.
func (d *Driver) kindOf(line string) kind {
	if blank(line) {
		return other
	}
	for i := range d.rows {
		if d.rows[i].fits(line) {
			return d.rows[i].is
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
	failed  string // the line of an error that is the last thing
	limit   string
}

// sceneAbove reads l upwards from row y (without it) to the last message sent.
func (d *Driver) sceneAbove(l *Look, y int) scene {
	var s scene
	settled := false // the last thing of the turn was seen
	over := false    // the turn's end was seen: what stands above does not go on
	for y--; y >= 0; y-- {
		line := strings.ReplaceAll(l.line(y), "\u00a0", " ")
		k := d.kindOf(line)
		switch k {
		case busyRow, retryRow:
			if !settled && !over && s.busy == "" {
				s.busy, s.retry = strings.TrimSpace(line), k == retryRow
			}
		case doneRow:
			over = true
		case runsRow:
			if !settled && !over {
				s.runs, s.running = true, d.toolAt(l, y)
			}
			settled = true
		case toolRow:
			settled = true
		case answerRow:
			if !settled && !over {
				s.answers = true
			}
			settled = true
		case errorRow:
			if !settled {
				s.failed = strings.TrimSpace(line)
			}
			settled = true
		case limitRow:
			if !settled {
				s.limit = strings.TrimSpace(line)
			}
			settled = true
		case noteRow:
			settled = true
		case userRow:
			if d.queued(l, y) {
				continue
			}
			return s
		}
	}
	return s
}

// queued reports whether the message in row y waits for the end of the turn: it
// stands below the busy line.
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

// toolAt names the tool that row y says of that it runs: by that row or the
// nearest call above it, else by what stands behind the row's spinner.
func (d *Driver) toolAt(l *Look, y int) string {
	said := ""
	if text, _ := unframe(l.line(y)); spinning(text, "~", true) {
		said = firstRunes(strings.TrimSpace(after(text, 1)), 60)
	}
	for n := 0; y >= 0 && n < 12; y, n = y-1, n+1 {
		line := strings.TrimLeft(l.line(y), " \u00a0●⏺•│┃⊷")
		if name := callName(line); name != "" {
			return name
		}
		if n > 0 && d.kindOf(l.line(y)) == userRow {
			break
		}
		for _, t := range d.asks.verbs {
			if strings.HasPrefix(line, t.has) {
				return t.why
			}
		}
	}
	return said
}

package fakeagent

import (
	"strconv"
	"strings"
	"time"
)

// plain is the profile of the shell, which is a program of its own: runShell.
const plain = "plain"

// profile is what tells one agent from another: how it takes input, and what
// it shows.
type profile struct {
	name  string
	full  bool   // it draws on the alternate screen
	hello string // modes and queries at its start, but for bracketed paste
	bye   string // and what puts them back
	asks  string // the answers it waits for, if it waits: final bytes of CSI sequences

	swallow      time.Duration
	guess        int // so many characters in one read are a paste
	lines, chars int // a paste of more is shown as a placeholder; 0: never
	placeholder  func(n int, text string) string
	busy         string // what Return does during a turn
	escs         int    // how many interrupt
	ctrlC        string // at the prompt
	restores     bool   // a prompt that was interrupted before any answer comes back
	unqueues     bool   // and what waited, at any interrupt
	digitsSelect bool   // a digit only selects in its dialogs
	exits        bool   // HUP and TERM make it exit with 129 and 143; else it dies of them
	titleFirst   bool   // its title changes before its screen does
	trustFirst   bool   // it asks for trust before it shows anything else
	trustAnew    bool   // and starts anew when it got it

	title    func(a *agent) string
	frame    func(a *agent) frame
	farewell func(a *agent) string

	// Pieces of the transcript.
	banner    func(a *agent) []entry
	asked     func(text string) []entry
	answer    func(text string) []entry
	approved  func(command string) []entry
	ran       func(command string) []entry
	refused   func(command, reason string) []entry
	failed    func() []entry
	stopped   func(t *turn) []entry // interrupted by its user
	denied    func(t *turn) []entry
	completed func(t *turn) []entry

	permission func(a *agent, command string) *dialog
	question   func(a *agent) *dialog
	trust      func(a *agent) *dialog
}

func profileNamed(name string) *profile {
	switch name {
	case "claude":
		return claude()
	case "codex":
		return codex()
	case "gemini":
		return gemini()
	case "opencode":
		return opencode()
	}
	return nil
}

// quote is a dialog as an answer would show it, that fits into one.
func (p *profile) quote(a *agent) string {
	narrow := &agent{o: a.o, p: p, cols: max(a.cols-8, 20), rows: a.rows, cwd: a.cwd, dir: a.dir, shortDir: a.shortDir}
	d := p.permission(narrow, "touch made.txt")
	var lines []string
	for _, line := range d.draw(narrow, d) {
		line = strings.TrimRight(plainText(line), " ")
		// The frame around it is not what anybody would copy.
		if strings.Trim(line, "─ ") != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// seconds is a length of time as all of them show it.
func seconds(d time.Duration) string {
	if s := int(d.Seconds()); s >= 60 {
		return strconv.Itoa(s/60) + "m " + strconv.Itoa(s%60) + "s"
	} else {
		return strconv.Itoa(s) + "s"
	}
}

// oneOf is one of several, always the first where nothing may be random.
func (a *agent) oneOf(some ...string) string {
	if a.o.Deterministic {
		return some[0]
	}
	return some[a.turns%len(some)]
}

const braille = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

// cycle is the glyph of a spinner at its n-th step.
func cycle(glyphs string, n int) string {
	all := []rune(glyphs)
	return string(all[n%len(all)])
}

// box is a rounded frame around lines, so wide.
func box(sgr string, lines []string, width int) []string {
	inner := max(width-2, 1)
	out := []string{sgr + "╭" + rule("─", inner) + "╮" + reset}
	for _, line := range lines {
		out = append(out, sgr+"│"+reset+apart(" "+line+reset, sgr+"│"+reset, inner+1))
	}
	return append(out, sgr+"╰"+rule("─", inner)+"╯"+reset)
}

// indented moves lines to the right.
func indented(by string, lines []string) []string {
	for i, line := range lines {
		lines[i] = by + line
	}
	return lines
}

//go:build linux || darwin

package acp

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/driver"
)

// Marks at the start of a row, for package driver.
const (
	note   = driver.FrontNote
	says   = driver.FrontSays
	tool   = driver.FrontTool
	user   = driver.FrontPrompt + " "
	indent = "  "
)

// screen is a transcript and below it live rows, which each frame draws again.
type screen struct {
	out     io.Writer
	undrawn strings.Builder // of the transcript
	mark    string          // of the last text in it
	live    int             // the number of live rows
	last    string          // the live rows, as drawn
}

// print adds a text with a mark to the transcript. Words of the agent after others get no mark.
func (s *screen) print(mark, text string) {
	text = strings.Trim(plain(text), "\n")
	if text == "" {
		return
	}
	before := mark
	if mark == says && s.mark == says {
		before = indent
	}
	s.mark = mark
	for line := range strings.SplitSeq(text, "\n") {
		s.undrawn.WriteString(before + line + "\r\n")
		before = indent
	}
}

// plain escapes the control characters except line feeds.
func plain(s string) string {
	return letter.EscapeBody(strings.NewReplacer("\r\n", "\n", "\t", "    ").Replace(s))
}

// frame draws the new part of the transcript and below it the live rows, none wider than the terminal, with the cursor
// at their end.
func (s *screen) frame(cursor string, rows ...string) {
	live := strings.Join(rows, "\r\n") + cursor
	if s.undrawn.Len() == 0 && live == s.last {
		return
	}
	up := strings.Repeat("\x1b[A", max(0, s.live-1))
	fmt.Fprint(s.out, "\x1b[?2026h\x1b[?25l\r"+up+"\x1b[J"+s.undrawn.String()+live+"\x1b[?2026l")
	s.undrawn.Reset()
	s.live, s.last = len(rows), live
}

const showCursor = "\x1b[?25h"

func (f *front) draw() {
	cols, rows, _ := term.GetSize(int(os.Stdout.Fd()))
	f.drawSized(max(cols, 20), rows)
}

func (f *front) drawSized(cols, rows int) {
	// The end of the draft is enough for the driver.
	draft := strings.Join(strings.Fields(plain(f.draft)), " ")
	box := user + ansi.TruncateLeft(draft, max(0, ansi.StringWidth(draft)-cols+4), "")
	switch {
	case f.shown() != nil:
		f.screen.frame("", f.shown().rows(cols, rows)...)
	case f.session == "":
		f.screen.frame("", indent+"…")
	case f.turn != nil:
		f.screen.frame(showCursor, ansi.Truncate(driver.FrontBusy+", Ctrl-C ends the turn", cols-1, ""), box)
	default:
		f.screen.frame(showCursor, box)
	}
}

// rows draws a request in at most so many rows. If its input does not fit the driver cannot read it, and no rule
// answers.
func (r *request) rows(cols, maxRows int) []string {
	var rows []string
	if r.kind == "permission" {
		request := driver.FrontRequest(r.tool, r.alias, r.isCommand, r.input)
		for piece := range slices.Chunk([]byte(request), cols-len(indent)) {
			rows = append(rows, string(piece))
		}
	}
	if r.prompt != r.input {
		prompt := strings.Split(ansi.Hardwrap(plain(r.prompt), cols-len(indent)-1, false), "\n")
		isBlank := func(row string) bool { return strings.TrimSpace(row) == "" } // at one the driver would stop reading
		rows = append(rows, slices.DeleteFunc(prompt, isBlank)...)
	}
	rows = rows[:min(len(rows), max(maxRows-len(r.options)-3, 1))]
	for i, o := range r.options {
		selector := indent
		if i == 0 {
			selector = "❯ "
		}
		label := strings.Join(strings.Fields(plain(o.Name)), " ")
		rows = append(rows, fmt.Sprintf("%s%d. %s (%s)", selector, i+1, ansi.Truncate(label, max(cols-30, 8), "…"), o.Kind))
	}
	for i := range rows {
		rows[i] = indent + rows[i]
	}
	foot := driver.FrontFoot
	if len(r.options) > 9 {
		foot += "; a is 10, b 11"
	}
	return slices.Concat([]string{driver.FrontAsks + r.kind}, rows, []string{foot})
}

func (f *front) press(typed []string) {
	for _, k := range typed {
		r := f.shown()
		switch {
		case k == "\x03" || k == "\x1b":
			f.cancel()
		case r != nil && len(k) == 1:
			f.choose(r, strings.Index(driver.FrontKeys, k))
		case r != nil:
		case k == "\r":
			f.submit()
		case k == "\x7f":
			r := []rune(f.draft)
			f.draft = string(r[:max(0, len(r)-1)])
		case k == "\x15":
			f.draft = ""
		case k == "\x04" && f.draft == "" && f.turn == nil:
			f.exit(0, "left")
		case k != "\x04":
			f.draft += k
		}
	}
}

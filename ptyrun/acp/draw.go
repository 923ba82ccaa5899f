//go:build linux || darwin

package acp

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/agentteammail/atm/ptyrun/driver"
)

// maxDraft is how many rows of a draft are shown.
const maxDraft = 6

// resize takes in the terminal's size.
func (t *transcript) resize() {
	if cols, rows, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
		t.cols, t.rows = cols, rows
	}
	t.isStale = true
}

// draw draws what is new, and what stands below it now.
func (f *front) draw() {
	switch {
	case f.end != nil:
		f.screen.frame(nil, true)
	case len(f.requests) > 0:
		f.screen.frame(f.dialog(f.requests[0]), false)
	case f.session == "":
		f.screen.frame([]string{indent + "…"}, false)
	case f.turn != nil:
		f.screen.frame(append([]string{driver.FrontBusy + "working, Ctrl-C ends the turn"}, f.box()...), true)
	default:
		f.screen.frame(f.box(), true)
	}
}

// box is the draft behind its prompt. Of one that is long it is said how long it is.
func (f *front) box() []string {
	rows := strings.Split(ansi.Hardwrap(plain(f.draft), max(f.screen.cols-3, 8), true), "\n")
	if len(rows) > maxDraft {
		rows = []string{fmt.Sprintf("[Pasted text: %d lines]", len(rows))}
	}
	for i := range rows {
		rows[i] = indent + rows[i]
	}
	rows[0] = user + strings.TrimPrefix(rows[0], indent)
	return rows
}

// isShort reports whether the whole draft is shown.
func (f *front) isShort() bool { return !strings.HasPrefix(f.box()[0], user+"[Pasted text: ") }

// dialog is how a request is asked. Rows that do not fit are left out: then what is asked for is not known
// for sure, and no rule answers.
func (f *front) dialog(r *request) []string {
	cols, room := max(f.screen.cols, 20), max(f.screen.rows-len(r.options)-4, 2)
	var rows []string
	if r.kind == "permission" {
		rows = split(driver.FrontRequest(r.tool, r.alias, r.input), cols-2)
	}
	rows = slices.Concat(rows[:min(len(rows), room)], strings.Split(ansi.Wrap(plain(r.prompt), cols-3, ""), "\n"))
	rows = rows[:min(len(rows), room+1)]
	for i, o := range r.options {
		selector := "  "
		if i == 0 {
			selector = "❯ "
		}
		label := strings.Join(strings.Fields(plain(o.label)), " ")
		rows = append(rows, fmt.Sprintf("%s%d. %s (%s)", selector, i+1, ansi.Truncate(label, max(cols-30, 8), "…"), o.kind))
	}
	for i := range rows {
		rows[i] = indent + rows[i]
	}
	return slices.Concat([]string{driver.FrontAsks + r.kind}, rows, []string{driver.FrontFoot})
}

// split cuts an ASCII text into pieces of n bytes.
func split(s string, n int) (pieces []string) {
	for piece := range slices.Chunk([]byte(s), n) {
		pieces = append(pieces, string(piece))
	}
	return pieces
}

// press carries out keys.
func (f *front) press(typed []key) {
	for _, k := range typed {
		switch isAsked := len(f.requests) > 0; {
		case k.does == interrupt || k.does == escapeKey:
			f.cancel()
		case isAsked && k.does == typing && len(k.text) == 1:
			f.answer(int(k.text[0] - '1'))
		case isAsked:
		case k.does == typing || k.does == paste:
			f.draft += k.text
		case k.does == enter:
			f.submit()
		case k.does == backspace:
			r := []rune(f.draft)
			f.draft = string(r[:max(0, len(r)-1)])
		case k.does == clearLine:
			f.draft = f.draft[:strings.LastIndexByte(f.draft, '\n')+1]
			if !f.isShort() {
				f.draft = ""
			}
		case k.does == endOfInput && f.draft == "" && f.turn == nil:
			f.leave(0)
		}
	}
}

//go:build linux || darwin

package acpfront

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/driver"
	emulator "github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/wire"
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
	return letter.Reveal(strings.NewReplacer("\r\n", "\n", "\t", "    ").Replace(s))
}

// frame draws the new part of the transcript and below it the live rows, none wider than the terminal, with the cursor
// at their end. request is what the driver reads of them, if they are a request.
func (s *screen) frame(request, cursor string, rows ...string) {
	live := "\x1b]" + emulator.RequestOSC + ";" + request + "\x1b\\" + strings.Join(rows, "\r\n") + cursor
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
		f.screen.frame(f.shown().dialog(), "", f.shown().rows(cols, rows)...)
	case f.session == "":
		f.screen.frame("", "", indent+"…")
	case f.turn != nil || f.awaited > 0:
		f.screen.frame("", showCursor, ansi.Truncate(driver.FrontBusy+", Ctrl-C ends the turn", cols-1, ""), box)
	default:
		f.screen.frame("", showCursor, box)
	}
}

// dialog returns the request for the driver. It has no tool if its input is too long: then no rule answers.
func (r *request) dialog() string {
	q := driver.Dialog{Kind: r.kind, Prompt: wire.Clip(plain(cmp.Or(r.prompt, r.input)), maxPrompt)}
	if r.kind == "permission" && len(r.input) <= maxRaw {
		q.Tool, q.Alias, q.IsCommand, q.Input = r.tool, r.alias, r.isCommand, r.input
	}
	for i, o := range r.options {
		option := driver.Option{ID: strconv.Itoa(i + 1), Label: r.label(i), Kind: string(o.Kind)}
		q.Options = append(q.Options, option)
	}
	raw, _ := json.Marshal(q)
	return string(raw)
}

const maxPrompt = 4 << 10 // bytes of a text for people, in the request for the driver

func (r *request) label(i int) string {
	return wire.Clip(strings.Join(strings.Fields(plain(r.options[i].Name)), " "), 200)
}

// rows draws a request for people, in at most so many rows.
func (r *request) rows(cols, maxRows int) []string {
	text := r.prompt
	if r.kind == "permission" && r.input != r.prompt {
		text += "\n" + r.input
	}
	rows := strings.Split(ansi.Hardwrap(plain(text), cols-len(indent), true), "\n")
	rows = rows[:min(len(rows), max(maxRows-len(r.options)-3, 1))]
	for i := range r.options {
		rows = append(rows, ansi.Truncate(fmt.Sprintf("%c. %s", driver.FrontKeys[i], r.label(i)), cols-len(indent), "…"))
	}
	rows = append(rows, "its number or letter answers, Esc ends the turn")
	return append([]string{"? " + r.kind}, rows...)
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

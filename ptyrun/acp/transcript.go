package acp

import (
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/ptyrun/driver"
)

// How rows begin, which package driver reads.
const (
	note   = driver.FrontNote
	says   = driver.FrontSays
	tool   = driver.FrontTool
	user   = driver.FrontPrompt + " "
	indent = "  "
)

// transcript is what was said and done, line by line, and below it what stands there now and is drawn anew
// with each frame.
type transcript struct {
	out        io.Writer
	cols, rows int
	kept       []string // the last lines, each with its mark
	fresh      int      // of them are not drawn yet
	live       int      // rows that stand below the transcript
	isStale    bool     // all is to be drawn again
}

// maxKept is how many lines are kept for a terminal of another size.
const maxKept = 500

// say adds a text behind a mark.
func (t *transcript) say(mark, text string) {
	for line := range strings.SplitSeq(strings.Trim(plain(text), "\n"), "\n") {
		t.kept = append(t.kept, mark+line)
		t.fresh++
		mark = indent
	}
	t.kept = t.kept[max(0, len(t.kept)-maxKept):]
	t.fresh = min(t.fresh, len(t.kept))
}

// plain is a text without control characters but line feeds.
func plain(s string) string {
	return letter.EscapeBody(strings.NewReplacer("\r\n", "\n", "\t", "    ").Replace(s))
}

// wrap breaks a line that begins with a mark into rows, of which all but the first are indented.
func (t *transcript) wrap(line string) []string {
	n := len(line) - len(strings.TrimLeft(line, " "))
	if i := strings.IndexByte(line, ' '); i > 0 {
		n = i + 1
	}
	n = min(max(n, len(indent)), len(line))
	rows := strings.Split(ansi.Wrap(line[n:], max(t.cols-3, 8), ""), "\n")
	for i := range rows {
		if rows[i] = indent + rows[i]; i == 0 {
			rows[i] = line[:n] + strings.TrimPrefix(rows[i], indent)
		}
	}
	return rows
}

// frame draws what is new of the transcript, and below it rows that are no wider than the terminal, with the
// cursor at their end.
func (t *transcript) frame(live []string, hasCursor bool) {
	var b strings.Builder
	b.WriteString("\x1b[?2026h\x1b[?25l\r")
	if t.live > 1 {
		b.WriteString(ansi.CursorUp(t.live - 1))
	}
	b.WriteString("\x1b[J")
	if t.isStale {
		b.WriteString("\x1b[2J\x1b[H")
		t.fresh = min(len(t.kept), max(t.rows, 1))
	}
	for _, line := range t.kept[len(t.kept)-t.fresh:] {
		b.WriteString(strings.Join(t.wrap(line), "\r\n") + "\r\n")
	}
	b.WriteString(strings.Join(live, "\r\n"))
	if hasCursor {
		b.WriteString("\x1b[?25h")
	}
	b.WriteString("\x1b[?2026l")
	t.fresh, t.live, t.isStale = 0, len(live), false
	io.WriteString(t.out, b.String())
}

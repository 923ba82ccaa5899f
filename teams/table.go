package teams

import (
	"fmt"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
)

// Table shows members to people. text/tabwriter would do, but for the wide characters
// in what agents say and for lines that fit the terminal.
type Table struct {
	Now    time.Time
	Width  int  // columns of the terminal; 0: lines are as long as they are
	Colour bool // mark the states
}

// gap is between two columns.
const gap = 2

// Lines are a line a member and one that adds up. Where the width is too small for all,
// what there is to say about the state is cut before the mail.
func (t *Table) Lines(members []Member) (out []string) {
	const columns, detail = 5, 3
	rows := make([][columns]string, len(members))
	var widths [columns]int
	for i, m := range members {
		since := ""
		if m.Since != nil {
			since = letter.Span(max(0, t.Now.Sub(*m.Since)))
		}
		mail := counted(m.Unread, "unread", m.Leased, "taken", m.Owed, "owed", m.Bad, "bad")
		rows[i] = [columns]string{string(m.Name), string(m.State), since, t.about(m), mail}
		for c, s := range rows[i] {
			widths[c] = max(widths[c], displaywidth.String(s))
		}
	}
	total := 1 - gap
	for _, w := range widths {
		if w > 0 {
			total += w + gap
		}
	}
	if t.Width > 0 && total > t.Width {
		widths[detail] = max(0, widths[detail]-(total-t.Width))
	}
	for i, row := range rows {
		line := ""
		for c, s := range row {
			if widths[c] > 0 {
				s = displaywidth.TruncateString(s, widths[c], "…")
				line += s + strings.Repeat(" ", widths[c]-displaywidth.String(s)+gap)
			}
		}
		line = t.Fit(strings.TrimRight(line, " "))
		if t.Colour {
			line = paint(line, widths[0]+gap, members[i].State)
		}
		out = append(out, line)
	}
	if foot := footer(members); foot != "" {
		out = append(out, t.Fit(foot))
	}
	return out
}

// FirstLines are the lines of a table that fit a height: the rest is counted.
func FirstLines(lines []string, height int) []string {
	if len(lines) <= height || height < 1 {
		return lines
	}
	return append(lines[:height-1:height-1], fmt.Sprintf("%d more: atm team", len(lines)-height+1))
}

// Fit cuts a line to the terminal's width.
func (t *Table) Fit(line string) string {
	if t.Width == 0 {
		return line
	}
	return displaywidth.TruncateString(line, t.Width-1, "…")
}

// about is what there is to say about the state: why mail waits, and how old the
// evidence is where nothing says that it still holds.
func (t *Table) about(m Member) string {
	if m.State == reducer.WordPerson {
		return ""
	}
	said, held := "", ""
	switch {
	case m.Presence != reducer.PresenceUnknown && m.State != reducer.WordUnknown:
	case m.isSilent():
	case m.Running:
		said = "runs"
	case m.PresenceAt == nil:
		said = "never seen"
	case m.ReadAt != nil && !m.PresenceAt.After(*m.ReadAt):
		said = "last read " + letter.Age(t.Now, *m.ReadAt)
	default:
		said = "last seen " + letter.Age(t.Now, *m.PresenceAt)
	}
	if m.Held != "" {
		held = "mail waits: " + m.Held
	}
	return join("; ", m.about(), said, held)
}

// join joins what is not empty.
func join(separator string, parts ...string) (out string) {
	for _, p := range parts {
		if p != "" && out != "" {
			out += separator
		}
		out += p
	}
	return out
}

// footer adds members up: `5 members, 3 running: 1 idle, 2 busy; 2 stopped`. "" where
// nothing is known that would be worth a line.
func footer(members []Member) string {
	s := statsOf(members)
	if s.Running+s.Stopped == 0 {
		return ""
	}
	blocked, unknown, noun := 0, 0, "members"
	for _, m := range members {
		if m.State == reducer.WordBlocked {
			blocked++
		} else if m.State == reducer.WordUnknown && !m.Running {
			unknown++
		}
	}
	if s.Total == 1 {
		noun = "member"
	}
	all := counted(s.Total, noun, s.Running, "running")
	return join(": ", all, join("; ", counted(s.Idle, "idle", s.Busy-blocked, "busy", blocked, "blocked"),
		counted(s.Stopped, "stopped", unknown, "unknown")))
}

// counted lists numbers and their words, but for 0.
func counted(pairs ...any) (out string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] != 0 {
			out = join(", ", out, fmt.Sprintf("%d %s", pairs[i], pairs[i+1]))
		}
	}
	return out
}

// paint marks the state, which begins at a byte of the line.
func paint(line string, at int, w reducer.Word) string {
	code := map[reducer.Word]string{
		reducer.WordBlocked: "1;31", reducer.WordError: "1;31", reducer.WordBusy: "33",
		reducer.WordIdle: "32", reducer.WordOff: "2", reducer.WordUnknown: "2",
	}[w]
	end := at + len(w)
	if code == "" || end > len(line) {
		return line
	}
	return line[:at] + "\x1b[" + code + "m" + line[at:end] + "\x1b[0m" + line[end:]
}

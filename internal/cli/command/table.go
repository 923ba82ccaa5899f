package command

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
)

const gap = 2

// Columns lines up rows of cells for a terminal, and cuts them to its width, the last
// column first. Each column has a colour ("1": bold, "": none).
func Columns(rows [][]string, colours ...string) (lines []string) {
	return lineUp(rows, Width(), len(colours)-1, func(_, column int) string { return colours[column] })
}

// lineUp is a line for each row. Where the width is too small for all columns, one is cut before the others; 0: lines
// are as long as they are. text/tabwriter would do, but for wide characters and for lines that fit.
func lineUp(rows [][]string, width, cutFirst int, colour func(row, column int) string) (lines []string) {
	widths := map[int]int{}
	for _, row := range rows {
		for n, cell := range row {
			widths[n] = max(widths[n], displaywidth.String(cell))
		}
	}
	for n := range widths { // so that no long name leaves the rest without room
		if width > 0 && n != cutFirst {
			widths[n] = min(widths[n], max(8, width/3))
		}
	}
	total := 1 - gap
	for _, w := range widths {
		total += min(w, 1) * (w + gap)
	}
	if width > 0 && total > width {
		widths[cutFirst] = max(0, widths[cutFirst]-(total-width))
	}
	for i, row := range rows {
		line := ""
		for n, cell := range row {
			if widths[n] > 0 {
				cell = displaywidth.TruncateString(cell, widths[n], "…")
				line += paint(cell, colour(i, n)) + strings.Repeat(" ", widths[n]-displaywidth.String(cell)+gap)
			}
		}
		lines = append(lines, Fit(strings.TrimRight(line, " "), width))
	}
	return lines
}

func paint(text, colour string) string {
	if text == "" || colour == "" || !Colour() {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[m"
}

// Fit cuts a line to a terminal's width; 0: it is as long as it is.
func Fit(line string, width int) string {
	if width == 0 {
		return line
	}
	return displaywidth.Options{ControlSequences: true}.TruncateString(line, width-1, "…") // colours take no room
}

// TeamWithin are the lines of a team that fit a height; the rest is counted.
func TeamWithin(members []teams.Member, width, height int) []string {
	lines := Team(members, width)
	if len(lines) <= height || height < 1 {
		return lines
	}
	return append(lines[:height-1:height-1], fmt.Sprintf("%d more: atm team", len(members)-height+1))
}

var stateColours = map[reducer.Word]string{
	reducer.WordBlocked: "1;31", reducer.WordError: "1;31", reducer.WordBusy: "33",
	reducer.WordIdle: "32", reducer.WordOff: "2", reducer.WordUnknown: "2",
}

// Team is a line a member and one that adds up. Where the width is too small, what there
// is to say about the state is cut before the mail.
func Team(members []teams.Member, width int) []string {
	const stateColumn, aboutColumn = 1, 3
	rows, now := make([][]string, len(members)), time.Now()
	for i, m := range members {
		since := ""
		if m.Since != nil {
			since = letter.Span(max(0, now.Sub(*m.Since)))
		}
		mail := counted(m.Unread, "unread", m.Leased, "taken", m.Owed, "owed", m.Bad, "bad")
		rows[i] = []string{string(m.Name), string(m.State), since, about(m, now), mail}
	}
	lines := lineUp(rows, width, aboutColumn, func(row, column int) string {
		if column != stateColumn {
			return ""
		}
		return stateColours[members[row].State]
	})
	if foot := footer(members); foot != "" {
		lines = append(lines, Fit(foot, width))
	}
	return lines
}

// about is what there is to say about a member's state: why mail waits, and how old the
// evidence is where nothing says that it still holds.
func about(m teams.Member, now time.Time) string {
	if m.Host != "" {
		return JoinFilled("; ", m.About(), m.Seen(now))
	}
	if m.State == reducer.WordPerson {
		return ""
	}
	said, held := "", ""
	switch {
	case m.Presence != reducer.PresenceUnknown && m.State != reducer.WordUnknown, m.IsSilent(), m.Running:
	case m.PresenceAt == nil:
		said = "never seen"
	case m.ReadAt != nil && !m.PresenceAt.After(*m.ReadAt):
		said = "last read " + letter.Age(now, *m.ReadAt)
	default:
		said = "last seen " + letter.Age(now, *m.PresenceAt)
	}
	if m.Held != "" {
		held = "mail waits: " + m.Held
	}
	return JoinFilled("; ", m.About(), said, held)
}

// JoinFilled is strings.Join without the parts that are empty.
func JoinFilled(separator string, parts ...string) string {
	isEmpty := func(p string) bool { return p == "" }
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), isEmpty), separator)
}

// footer adds members up: `5 members, 3 running: 1 idle, 2 busy; 2 stopped`. "" where
// nothing is known that would be worth a line.
func footer(members []teams.Member) string {
	s := teams.StatsOf(members)
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
	return JoinFilled(": ", all, JoinFilled("; ", counted(s.Idle, "idle", s.Busy-blocked, "busy", blocked, "blocked"),
		counted(s.Stopped, "stopped", unknown, "unknown")))
}

func counted(pairs ...any) string {
	var parts []string
	for pair := range slices.Chunk(pairs, 2) {
		if pair[0] != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", pair...))
		}
	}
	return strings.Join(parts, ", ")
}

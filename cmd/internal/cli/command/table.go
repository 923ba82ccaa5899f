package command

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
)

// Columns aligns rows of cells and cuts them to the terminal's width, the last column first. Each column has a colour
// ("1": bold, "": none).
func Columns(rows [][]string, colours ...string) (lines []string) {
	return alignRows(rows, Width(), []int{len(colours) - 1}, func(_, column int) string { return colours[column] })
}

// alignRows returns a line for each row, cut to a width (0: not cut), these columns before the others and in this order;
// only the first may go altogether. text/tabwriter knows neither widths nor wide characters.
func alignRows(rows [][]string, width int, cutFirst []int, colour func(row, column int) string) (lines []string) {
	const gap = 2
	widths, last := map[int]int{}, 0
	for _, row := range rows {
		last = max(last, len(row)-1)
		for n, cell := range row {
			widths[n] = max(widths[n], letter.Columns(cell))
		}
	}
	total := 1 - gap
	for n, w := range widths {
		if width > 0 && n != cutFirst[0] && n != last { // one long name must not take all the room
			widths[n] = min(w, max(8, width/3))
		}
		total += min(w, 1) * (widths[n] + gap)
	}
	least := 0
	for _, n := range cutFirst {
		if cut := min(total-width, widths[n]-least); width > 0 && cut > 0 {
			widths[n] -= cut
			total -= cut
			if widths[n] == 0 {
				total -= gap
			}
		}
		least = 6 // of a name
	}
	for i, row := range rows {
		line := ""
		for n, cell := range row {
			if widths[n] > 0 {
				cell = letter.Fit(cell, widths[n])
				line += paint(cell, colour(i, n)) + strings.Repeat(" ", widths[n]-letter.Columns(cell)+gap)
			}
		}
		lines = append(lines, Fit(strings.TrimRight(line, " "), width))
	}
	return lines
}

func paint(text, colour string) string {
	if text == "" || colour == "" || !isColoured() {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[m"
}

// Fit cuts a line to a terminal's width, whose last column stays free; 0: not at all.
func Fit(line string, width int) string {
	if width == 0 {
		return line
	}
	return letter.Fit(line, max(width-1, 1))
}

var stateColours = map[reducer.Word]string{
	reducer.WordBlocked: "1;31", reducer.WordError: "1;31", reducer.WordLimited: "1;31", reducer.WordBusy: "33",
	reducer.WordIdle: "32", reducer.WordOff: "2", reducer.WordUnknown: "2",
}

// Team shows each member in a line, and the totals in another. In a narrow terminal the detail of the state is cut
// before the mail.
func Team(members []teams.Member, width int) []string {
	const nameColumn, stateColumn, detailColumn = 0, 1, 3
	rows, now := make([][]string, len(members)), time.Now()
	for i, m := range members {
		since := ""
		if m.Since != nil {
			since = letter.Span(now.Sub(*m.Since))
		}
		mail := counted(m.Unread, "unread", m.Leased, "taken", m.Owed, "to ack", m.Bad, "bad")
		rows[i] = []string{string(m.Name), string(m.State), since, detail(m, now), mail}
	}
	lines := alignRows(rows, width, []int{detailColumn, nameColumn}, func(row, column int) string {
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

// detail says more about a member's state: why mail waits and, if nothing proves that the state still holds, how old
// the evidence is.
func detail(m teams.Member, now time.Time) string {
	if m.Host != "" {
		return app.JoinFilled("; ", m.StateDetail(), m.EvidenceAge(now))
	}
	if m.State == reducer.WordPerson {
		return ""
	}
	evidence, held := "", ""
	isQuiet := m.State == reducer.WordBusy && m.PresenceAt != nil && now.Sub(*m.PresenceAt) > time.Minute &&
		m.Since != nil && m.PresenceAt.Sub(*m.Since) > time.Minute // else it says what since says
	switch {
	case m.Presence != reducer.PresenceUnknown && m.State != reducer.WordUnknown && !isQuiet, m.IsSilent(), m.Running:
	case m.PresenceAt == nil:
		evidence = "never seen"
	case m.ReadAt != nil && !m.PresenceAt.After(*m.ReadAt):
		evidence = "last read " + letter.Ago(now, *m.ReadAt)
	default:
		evidence = "last seen " + letter.Ago(now, *m.PresenceAt)
	}
	if m.Held != "" {
		held = "mail waits: " + m.Held
	}
	return app.JoinFilled("; ", m.StateDetail(), evidence, held)
}

// footer counts the members: `5 members: 1 idle, 2 busy, 2 off`. "" where nothing is known of any.
func footer(members []teams.Member) string {
	counts := map[reducer.Word]int{}
	for _, m := range members {
		counts[m.State]++
	}
	if counts[reducer.WordPerson]+counts[reducer.WordUnknown] == len(members) {
		return ""
	}
	var pairs []any
	for _, w := range []reducer.Word{reducer.WordIdle, reducer.WordBusy, reducer.WordBlocked, reducer.WordStarting,
		reducer.WordError, reducer.WordLimited, reducer.WordOff, reducer.WordUnknown} {
		pairs = append(pairs, counts[w], w)
	}
	return letter.Many(len(members), "member") + ": " + counted(pairs...)
}

// counted lists pairs of a number and a noun, without zeros: "2 unread, 1 to ack".
func counted(pairs ...any) string {
	var parts []string
	for pair := range slices.Chunk(pairs, 2) {
		if pair[0] != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", pair...))
		}
	}
	return strings.Join(parts, ", ")
}

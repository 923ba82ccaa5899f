package command

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
)

func stateColour(w reducer.Word) string {
	switch w {
	case reducer.WordBlocked, reducer.WordError:
		return "1;31"
	case reducer.WordLimited:
		return "35"
	case reducer.WordBusy:
		return "36"
	case reducer.WordIdle:
		return "32"
	case reducer.WordOff, reducer.WordUnknown:
		return "2"
	}
	return ""
}

// Team shows each member in a line, and the totals in another. In a narrow terminal long names are cut, then the detail
// of the state, then its age. The numbers are never cut: a line may be wider than a very narrow terminal.
func Team(members []presence.Member, width int, isColoured bool) []string {
	const nameColumn, sinceColumn, detailColumn = 0, 2, 3
	rows := teamRows(members)
	widths := columnWidths(rows)
	for _, cut := range []struct{ column, least int }{
		{nameColumn, max(shortName, width/4)}, {detailColumn, 0}, {sinceColumn, 0}, {nameColumn, shortName},
	} {
		over := lineWidth(widths) - (width - 1)
		if width > 0 && over > 0 {
			w := max(widths[cut.column]-over, min(cut.least, widths[cut.column]))
			if cut.least == 0 && w < shortName { // too little to read
				w = 0
			}
			widths[cut.column] = w
		}
	}
	var lines []string
	for i, row := range rows {
		for n := range row {
			row[n] = letter.Fit(row[n], widths[n])
		}
		colours := make([]string, len(row))
		if isColoured {
			colours[1] = stateColour(members[i].State)
		}
		lines = append(lines, alignRow(row, widths, colours))
	}
	if foot := footer(members); foot != "" {
		lines = append(lines, foot)
	}
	return lines
}

// Team is the function Team for stdout.
func (p *Printer) Team(members []presence.Member) []string {
	return Team(members, p.Width(), IsColoured(p.Out))
}

// shortName is how much of a name has to be seen.
const shortName = 8

// TeamWidth is the least width in which Team cuts no mail.
func TeamWidth(members []presence.Member) int {
	widths := columnWidths(teamRows(members))
	if len(widths) == 0 {
		return 1
	}
	return lineWidth([]int{min(widths[0], shortName), widths[1], widths[4]}) + 1
}

// teamRows has the name, the state, its age and detail, and the mail of each member.
func teamRows(members []presence.Member) [][]string {
	rows, now := make([][]string, len(members)), time.Now()
	for i, m := range members {
		since := ""
		if m.Since != nil {
			since = letter.Span(now.Sub(*m.Since))
		}
		mail := counted(m.Unread, "unread", m.Leased, "taken", m.Aside, "set aside", m.Owed, "to ack", m.Bad, "bad")
		rows[i] = []string{string(m.Name), string(m.State), since, detail(m, now), mail}
	}
	return rows
}

// detail says more about a member's state: why mail waits and, if nothing proves that the state still holds, how old
// the evidence is.
func detail(m presence.Member, now time.Time) string {
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
	case m.Presence != reducer.PresenceUnknown && m.State != reducer.WordUnknown && !isQuiet, m.IsSilent(), m.Running, m.HasJob:
	case m.Shared:
		evidence = "shared inbox"
	case m.PresenceAt == nil:
		evidence = "never seen"
	case m.ReadAt != nil && !m.PresenceAt.After(*m.ReadAt):
		evidence = "last read " + letter.Ago(now, *m.ReadAt)
	default:
		evidence = "last seen " + letter.Ago(now, *m.PresenceAt)
	}
	if m.Held != "" {
		held = "mail waits: " + m.Held
		if m.Runner.Gate == control.GateUnknown {
			held += ": atm doctor -h"
		}
	}
	return app.JoinFilled("; ", m.StateDetail(), evidence, held)
}

// footer counts the members: `5 members: 1 idle, 2 busy, 2 off`. "" where nothing is known of any.
func footer(members []presence.Member) string {
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
	people := string(reducer.WordPerson)
	if counts[reducer.WordPerson] > 1 {
		people = "people"
	}
	pairs = append(pairs, counts[reducer.WordPerson], people)
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

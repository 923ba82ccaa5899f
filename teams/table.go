package teams

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Table shows rows to people.
type Table struct {
	Now    time.Time
	Width  int  // columns of the terminal; 0: lines are as long as they are
	Height int  // lines of the terminal; 0: all
	Colour bool // mark the states that want somebody
}

// Lines are a line a member and one that adds up. Where the width is too small
// for all, what there is to say about the state is cut before the mail. What
// does not fit the height is counted: those who want somebody are shown first.
func (t *Table) Lines(rows []Member) []string {
	foot := t.fit(Foot(rows))
	if t.Height > 0 && len(rows)+1 > t.Height {
		n := max(0, t.Height-2)
		foot = t.fit(strings.TrimSuffix(fmt.Sprintf("%d more not shown; %s", len(rows)-n, foot), "; "))
		rows = slices.Clone(rows)
		slices.SortStableFunc(rows, func(a, b Member) int { return urgency(a) - urgency(b) })
		rows = rows[:n]
	}
	cells := make([][]string, len(rows))
	var wide [4]int
	mail := 0
	for i, m := range rows {
		cells[i] = []string{string(m.Name), string(m.State), t.since(m), t.about(m), mailOf(m)}
		for c := range wide {
			wide[c] = max(wide[c], Cells(cells[i][c]))
		}
		mail = max(mail, Cells(cells[i][4]))
	}
	if mail > 0 && t.Width > 0 {
		room := t.Width - 1 - min(mail, t.Width/2)
		for _, w := range wide[:3] {
			if w > 0 {
				room -= w + 2
			}
		}
		if wide[3] = min(wide[3], room-2); wide[3] < 3 {
			wide[3] = 0
		}
		for _, c := range cells {
			if c[3] = Cut(c[3], wide[3]); wide[3] == 0 {
				c[3] = ""
			}
		}
	}
	var out []string
	for i, c := range cells {
		var b strings.Builder
		for n, s := range c {
			b.WriteString(s)
			if n < len(wide) && wide[n] > 0 {
				b.WriteString(strings.Repeat(" ", wide[n]-Cells(s)+2))
			}
		}
		line := t.fit(strings.TrimRight(b.String(), " "))
		if t.Colour {
			line = paint(line, wide[0]+2, rows[i].State)
		}
		out = append(out, line)
	}
	if foot != "" {
		out = append(out, foot)
	}
	return out
}

// urgency orders rows of which not all can be shown: least first.
func urgency(m Member) int {
	switch {
	case m.State == reducer.WordBlocked:
		return 0
	case m.State == reducer.WordError:
		return 1
	case m.Unread+m.Owed+m.Bad > 0:
		return 2
	case m.State == reducer.WordBusy || m.State == reducer.WordStarting:
		return 3
	case m.State == reducer.WordIdle:
		return 4
	}
	return 5
}

func (t *Table) fit(s string) string {
	if t.Width <= 0 || Cells(s) < t.Width {
		return s
	}
	return Cut(s, t.Width-1)
}

// since is how long the state has been so.
func (t *Table) since(m Member) string {
	if m.Since == nil {
		return ""
	}
	return letter.Span(max(0, t.Now.Sub(*m.Since)))
}

// about is what there is to say about the state, and how old the evidence is
// where nothing says that it still holds.
func (t *Table) about(m Member) string {
	var parts []string
	if s := m.about(); s != "" {
		parts = append(parts, letter.Clip(s, 60))
	}
	if m.State == reducer.WordPerson {
		return ""
	}
	switch {
	case m.Presence != reducer.PresenceUnknown && m.State != reducer.WordUnknown:
	case m.Running:
		parts = append(parts, "runs")
	case m.PresenceAt == nil:
		parts = append(parts, "never seen")
	case m.ReadAt != nil && !m.PresenceAt.After(*m.ReadAt):
		parts = append(parts, "last read "+letter.Age(t.Now, *m.ReadAt))
	default:
		parts = append(parts, "last seen "+letter.Age(t.Now, *m.PresenceAt))
	}
	return strings.Join(parts, "; ")
}

func mailOf(m Member) string {
	var parts []string
	if m.Unread > 0 {
		parts = append(parts, fmt.Sprintf("%d unread", m.Unread))
	}
	if m.Leased > 0 {
		parts = append(parts, fmt.Sprintf("%d taken", m.Leased))
	}
	if m.Owed > 0 {
		s := fmt.Sprintf("%d owed", m.Owed)
		if len(m.OwesTo) > 0 {
			s += " to " + names(m.OwesTo)
		}
		parts = append(parts, s)
	}
	if len(m.WaitsFor) > 0 {
		parts = append(parts, "waits for "+names(m.WaitsFor))
	}
	if m.Bad > 0 {
		parts = append(parts, fmt.Sprintf("%d bad", m.Bad))
	}
	return strings.Join(parts, ", ")
}

func names(list []wire.Name) string {
	var out []string
	for i, n := range list {
		if i == 3 && len(list) > 4 {
			return strings.Join(out, ", ") + fmt.Sprintf(" and %d more", len(list)-3)
		}
		out = append(out, string(n))
	}
	return strings.Join(out, ", ")
}

// Foot adds rows up: `5 members, 3 running: 1 idle, 2 busy; 2 stopped`. "" where
// nothing is known that would be worth a line.
func Foot(rows []Member) string {
	s := Sum(rows)
	if s.Running+s.Stopped == 0 {
		return ""
	}
	blocked, unknown := 0, 0
	for _, m := range rows {
		switch m.State {
		case reducer.WordBlocked:
			blocked++
		case reducer.WordUnknown:
			if !m.Running {
				unknown++
			}
		}
	}
	foot := fmt.Sprintf("%d members", s.Total)
	if s.Total == 1 {
		foot = "1 member"
	}
	lead := ": " // the first list is of those who run, if any do
	if s.Running > 0 {
		foot += fmt.Sprintf(", %d running", s.Running)
		if of := counted(s.Idle, "idle", s.Busy-blocked, "busy", blocked, "blocked"); of != "" {
			foot += ": " + of
		}
		lead = "; "
	}
	if of := counted(s.Stopped, "stopped", unknown, "unknown"); of != "" {
		foot += lead + of
	}
	return foot
}

// counted lists numbers and their words, but for 0.
func counted(pairs ...any) string {
	var parts []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", pairs[i], pairs[i+1]))
		}
	}
	return strings.Join(parts, ", ")
}

// paint marks the state, which begins at a byte of the line: what wants
// somebody stands out, who is not there is dim.
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

// Cells is how many columns of a terminal a text takes.
func Cells(s string) (n int) {
	for _, r := range s {
		n += cells(r)
	}
	return n
}

// Cut cuts a text to at most so many columns, with an ellipsis.
func Cut(s string, width int) string {
	if Cells(s) <= width {
		return s
	}
	n := 1 // the ellipsis
	for i, r := range s {
		if n += cells(r); n > width {
			return s[:i] + "…"
		}
	}
	return s
}

// cells: East Asian wide and emoji take two columns, marks none (UAX 11, as
// terminals commonly have it).
func cells(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0x303e, r >= 0x3041 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f680 && r <= 0x1f6ff, r >= 0x1f900 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

package teams

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Table shows members to people. text/tabwriter would do, but for the wide characters
// in what agents say and for lines that fit the terminal.
type Table struct {
	Now    time.Time
	Width  int  // columns of the terminal; 0: lines are as long as they are
	Height int  // lines of the terminal; 0: all
	Colour bool // mark the states
}

// gap is between two columns.
const gap = 2

// Lines are a line a member and one that adds up. Where the width is too small for all,
// what there is to say about the state is cut before the mail. Members that do not fit
// the height are counted: those that want somebody are shown first.
func (t *Table) Lines(members []Member) []string {
	foot := footer(members)
	if t.Height > 0 && len(members)+1 > t.Height {
		n := max(0, t.Height-2)
		foot = strings.TrimSuffix(fmt.Sprintf("%d more not shown; %s", len(members)-n, foot), "; ")
		members = slices.Clone(members)
		slices.SortStableFunc(members, func(a, b Member) int { return rank(a) - rank(b) })
		members = members[:n]
	}
	rows := make([][5]string, len(members))
	var widths [5]int
	for i, m := range members {
		rows[i] = [5]string{string(m.Name), string(m.State), t.since(m), t.about(m), mailText(m)}
		for c, s := range rows[i] {
			widths[c] = max(widths[c], displaywidth.String(s))
		}
	}
	t.narrow(&widths)
	var out []string
	for i, row := range rows {
		line := ""
		for c, s := range row {
			if c == 3 {
				s = displaywidth.TruncateString(s, widths[c], "…")
			}
			if widths[c] > 0 {
				line += s + strings.Repeat(" ", widths[c]-displaywidth.String(s)+gap)
			}
		}
		line = t.Fit(strings.TrimRight(line, " "))
		if t.Colour {
			line = paint(line, widths[0]+gap, members[i].State)
		}
		out = append(out, line)
	}
	if foot != "" {
		out = append(out, t.Fit(foot))
	}
	return out
}

// narrow makes room for the mail at the cost of what there is to say about the state.
func (t *Table) narrow(widths *[5]int) {
	if t.Width == 0 || widths[4] == 0 {
		return
	}
	room := t.Width - 1 - min(widths[4], t.Width/2) - gap
	for _, w := range widths[:3] {
		if w > 0 {
			room -= w + gap
		}
	}
	if widths[3] = min(widths[3], room); widths[3] < 3 {
		widths[3] = 0
	}
}

// Fit cuts a line to the terminal's width.
func (t *Table) Fit(line string) string {
	if t.Width == 0 {
		return line
	}
	return displaywidth.TruncateString(line, t.Width-1, "…")
}

// rank orders members of which not all can be shown: least first.
func rank(m Member) int {
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

// since is how long the state has been so.
func (t *Table) since(m Member) string {
	if m.Since == nil {
		return ""
	}
	return letter.Span(max(0, t.Now.Sub(*m.Since)))
}

// about is what there is to say about the state: why mail waits, and how old the
// evidence is where nothing says that it still holds.
func (t *Table) about(m Member) string {
	if m.State == reducer.WordPerson {
		return ""
	}
	var parts []string
	if s := m.about(); s != "" {
		parts = append(parts, s)
	}
	if m.Presence == reducer.PresenceUnknown || m.State == reducer.WordUnknown {
		parts = append(parts, t.evidence(m))
	}
	if m.Held != "" {
		parts = append(parts, "mail waits: "+m.Held)
	}
	return strings.Join(parts, "; ")
}

func (t *Table) evidence(m Member) string {
	switch {
	case m.Running:
		return "runs"
	case m.PresenceAt == nil:
		return "never seen"
	case m.ReadAt != nil && !m.PresenceAt.After(*m.ReadAt):
		return "last read " + letter.Age(t.Now, *m.ReadAt)
	}
	return "last seen " + letter.Age(t.Now, *m.PresenceAt)
}

// mailText is what waits in a mailbox.
func mailText(m Member) string {
	parts := counted(m.Unread, "unread", m.Leased, "taken")
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
	return strings.Join(append(parts, counted(m.Bad, "bad")...), ", ")
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

// footer adds members up: `5 members, 3 running: 1 idle, 2 busy; 2 stopped`. "" where
// nothing is known that would be worth a line.
func footer(members []Member) string {
	s := statsOf(members)
	if s.Running+s.Stopped == 0 {
		return ""
	}
	blocked, unknown := 0, 0
	for _, m := range members {
		if m.State == reducer.WordBlocked {
			blocked++
		}
		if m.State == reducer.WordUnknown && !m.Running {
			unknown++
		}
	}
	foot, lead := fmt.Sprintf("%d members", s.Total), ": "
	if s.Total == 1 {
		foot = "1 member"
	}
	if s.Running > 0 {
		foot += fmt.Sprintf(", %d running", s.Running)
		if of := counted(s.Idle, "idle", s.Busy-blocked, "busy", blocked, "blocked"); of != nil {
			foot += ": " + strings.Join(of, ", ")
		}
		lead = "; "
	}
	if of := counted(s.Stopped, "stopped", unknown, "unknown"); of != nil {
		foot += lead + strings.Join(of, ", ")
	}
	return foot
}

// counted lists numbers and their words, but for 0.
func counted(pairs ...any) (parts []string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", pairs[i], pairs[i+1]))
		}
	}
	return parts
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

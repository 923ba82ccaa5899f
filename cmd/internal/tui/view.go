package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/room"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/mailbox/letter"
)

var (
	bold  = lipgloss.NewStyle().Bold(true)
	faint = lipgloss.NewStyle().Faint(true)
	alert = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Red)
)

// selectedQuestion renders the selected question in as many lines as there is room for. isWhole reports whether they
// are all of it.
func (m *model) selectedQuestion() (lines []string, isWhole bool) {
	if len(m.snapshot.Waiting) == 0 {
		return nil, false
	}
	q, width := nth(m.snapshot.Waiting, m.waiting.selected), max(m.width-waitingIndent, 10)
	lines = wrap(questionText(q, false), width)
	most := max(1, m.height/4)
	if m.writing != nil {
		most = 1
	}
	isWhole = len(lines) <= most && m.width >= waitingIndent+10 && !q.Cut
	lines = lines[:min(len(lines), most)]
	if !isWhole {
		lines[len(lines)-1] = ansi.Truncate(lines[len(lines)-1], width-2, "") + " …"
	}
	return lines, isWhole
}

// questionLine renders a question, what it is about, and its options in one line. What an agent wrote has no three blanks
// in a row, which are before everything of ours.
func questionLine(q room.Question, about string) string {
	line := fmt.Sprintf("%s %s", q.Agent, letter.KeepDirection(letter.Escape(about)))
	if reason, _ := app.AnsweredElsewhere(&q.Question); q.TakesText() {
		line += "   (r answers)"
	} else if reason != "" {
		line += "   (" + reason + ")"
	} else if !q.MayAnswer {
		line += "   (not yours to answer)"
	}
	for i, o := range q.Options {
		line += fmt.Sprintf("   %d %s", i+1, letter.Name(cmp.Or(o.Label, o.ID), 200))
	}
	return line
}

// questionText renders a question: its line, below that what has more lines than one, and the prompt, unless that only
// repeats the input and isWhole is not asked for.
func questionText(q room.Question, isWhole bool) string {
	about, text, prompt, below := q.Summary(), strings.TrimSpace(cmp.Or(q.Input, q.Prompt)), strings.TrimSpace(q.Prompt), ""
	if strings.Contains(text, "\n") {
		about, below = strings.TrimSuffix(about, " "+withoutSpace(text, " ")), "\n"+text
	}
	if prompt != text && prompt != "" && (isWhole || !strings.Contains(withoutSpace(prompt, ""), withoutSpace(text, ""))) {
		below += "\n" + prompt
	}
	text = questionLine(q, about) + strings.ReplaceAll(letter.EscapeBody(below), "\n", "\n  ")
	if q.Cut {
		text += "\n(only its terminal shows the rest)"
	}
	return text
}

// withoutSpace replaces white space, which a terminal breaks lines at.
func withoutSpace(text, by string) string { return strings.Join(strings.Fields(text), by) }

// leftWidth is the width of the members, -1 if the terminal is too narrow to show them beside the middle.
func (m *model) leftWidth() int {
	if m.width < 80 {
		return -1
	}
	need := len("> ") + command.TeamWidth(m.snapshot.Members)
	if m.width >= 100 {
		need += len("  59m") // for how long
	}
	return min(max(m.width/3, 28, need), 60, m.width/2)
}

// layOut fits everything into the terminal, as View draws it.
func (m *model) layOut() {
	if c := m.writing; c != nil {
		c.line.SetWidth(max(10, m.width-len("search: ")-2))
		c.text.SetWidth(m.width)
		c.text.SetHeight(min(10, max(3, m.height/3)) - 2)
	}
	m.waiting.scroll(len(m.snapshot.Waiting), m.waitingRows())
	waiting, at := m.waitingLines()
	m.waitingAt, m.bodyTop = at, 1+len(waiting)+1
	m.bodyHeight = max(1, m.height-m.bodyTop-len(m.writingLines())-len(m.footLines()))
	m.members.scroll(len(m.snapshot.Members), m.bodyHeight)
	c, n := m.list(middlePane)
	c.scroll(n, m.bodyHeight)
	if p, width := m.page(), m.middleWidth(); p.isText() {
		isAtEnd := p.kind == agentPage && p.view.AtBottom()
		p.view.SetWidth(width)
		p.view.SetHeight(m.bodyHeight)
		p.view.SetContentLines(m.lines(p, width))
		if isAtEnd {
			p.view.GotoBottom()
		}
	}
}

// View draws, from top to bottom, a line about the team, the questions, a rule, the body, what is being written, and
// two lines for status and keys.
func (m *model) View() tea.View {
	if m.width == 0 {
		return tea.View{AltScreen: true} // the terminal's size is not known yet
	}
	waiting, _ := m.waitingLines()
	lines := slices.Concat([]string{m.header()}, waiting, m.bodyLines(), m.writingLines(), m.footLines())
	if m.writing != nil || m.confirm != nil { // on a low terminal, what is being typed counts most
		lines = lines[max(0, len(lines)-m.height):]
	}
	for i, line := range lines {
		lines[i] = fit(line, m.width)
	}
	v := tea.NewView(strings.Join(lines[:min(len(lines), m.height)], "\n"))
	v.AltScreen, v.MouseMode = true, tea.MouseModeCellMotion
	v.WindowTitle = fmt.Sprintf("atm %s: %d waiting, %d unread", m.snapshot.Team, len(m.snapshot.Waiting), len(m.snapshot.Unread))
	return v
}

func (m *model) middleWidth() int { return m.width - m.leftWidth() - 1 }

// bodyLines draws the members and the middle, each below its title.
func (m *model) bodyLines() (lines []string) {
	left := m.leftWidth()
	if left < 0 && m.focus == membersPane {
		return m.memberLines(m.width)
	} else if left < 0 {
		return m.middleLines(m.width)
	}
	members, border := m.memberLines(left), "┬"
	for i, line := range m.middleLines(m.middleWidth()) {
		lines, border = append(lines, fit(nth(members, i), left)+border+line), "│"
	}
	return lines
}

func fit(line string, width int) string {
	line = ansi.Truncate(line, max(width, 0), "…")
	return line + strings.Repeat(" ", max(0, width-ansi.StringWidth(line)))
}

func (m *model) header() string {
	s, who := m.snapshot, "read-only"
	if s.Me != "" {
		who = "as " + string(s.Me)
	}
	counts := fmt.Sprintf("   %d waiting, %d unread, %d to ack", len(s.Waiting), len(s.Unread), len(s.Owed))
	if n := len(s.Overdue); n > 0 {
		counts += alert.Render(fmt.Sprintf(", %d overdue", n))
	}
	if n := len(s.Held); n > 0 {
		counts += fmt.Sprintf(", %d held up", n)
	}
	room := max(m.width-ansi.StringWidth(counts), 8) // for two names
	who = ansi.Truncate(", "+who, max(room*2/3, room-len(s.Team)), "…")
	if s.Problem != "" {
		counts += "   " + alert.Render(letter.Escape(s.Problem))
	}
	return bold.Render(ansi.Truncate(string(s.Team), room-ansi.StringWidth(who), "…")) + who + counts
}

// marker returns the prefix of a line: > for the selected one of the focused pane, - for that of another pane.
func (m *model) marker(in pane, isSelected bool) string {
	switch {
	case isSelected && m.focus == in:
		return bold.Render(">") + " "
	case isSelected:
		return "- "
	}
	return "  "
}

// waitingIndent is the width of the marker and the age.
const waitingIndent = 8

// waitingRows is how many questions are shown.
func (m *model) waitingRows() int { return min(len(m.snapshot.Waiting), max(1, m.height/4)) }

// waitingLines draws the questions, the selected one in full if there is room for it. at has the question of each line.
func (m *model) waitingLines() (lines []string, at []int) {
	for i := m.waiting.top; i < m.waiting.top+m.waitingRows(); i++ {
		q := m.snapshot.Waiting[i]
		text := []string{questionLine(q, q.Summary())}
		if i == m.waiting.selected {
			text, _ = m.selectedQuestion()
		}
		before := m.marker(waitingPane, i == m.waiting.selected) + letter.Span(m.now.Sub(q.Since))
		for _, line := range text {
			if q.MayAnswer {
				line = alert.Render(line)
			}
			lines, at = append(lines, fit(before, waitingIndent)+line), append(at, i)
			before = ""
		}
	}
	return lines, at
}

func (m *model) memberLines(width int) []string {
	lines := []string{m.rule("members", width, membersPane)}
	all := command.Team(m.snapshot.Members, width-1, m.isColoured) // it keeps one more column free
	for i := m.members.top; i < len(m.snapshot.Members); i++ {
		lines = append(lines, m.marker(membersPane, i == m.members.selected)+all[i])
	}
	if i := m.members.selected; i < len(m.snapshot.Members) { // what was cut of the selected one is shown below
		whole := command.Team(m.snapshot.Members[i:i+1], 0, m.isColoured)[0]
		if !slices.Equal(strings.Fields(ansi.Strip(whole)), strings.Fields(ansi.Strip(all[i]))) {
			lines = append(lines, "")
			for _, line := range wrap(whole, width-3) {
				lines = append(lines, "  "+line)
			}
		}
	}
	return m.pad(lines)
}

// pad makes the lines of a pane as many as the body and its rule have.
func (m *model) pad(lines []string) []string {
	lines = lines[:min(len(lines), m.bodyHeight+1)]
	return append(lines, make([]string, m.bodyHeight+1-len(lines))...)
}

func (m *model) pageTitle() string {
	p := m.page()
	if p.kind == agentPage {
		row, isMember := m.snapshot.Member(p.agent)
		if !isMember {
			return string(p.agent) + " is no longer a member"
		}
		return command.Team([]presence.Member{row}, 0, false)[0]
	}
	return letter.Escape(p.title)
}

func (m *model) rule(title string, width int, in pane) string {
	if m.focus == in {
		title = bold.Render(title)
	}
	line := ansi.Truncate("─ "+title+" ", width, "…")
	return lipgloss.PlaceHorizontal(width, lipgloss.Left, line, lipgloss.WithWhitespaceChars("─"))
}

func (m *model) middleLines(width int) []string {
	p, title := m.page(), m.pageTitle()
	if p.isText() && !p.view.AtBottom() {
		title += " (Down: more)"
	}
	lines := []string{m.rule(title, width, middlePane)}
	c, n := m.list(middlePane)
	switch {
	case p.isText():
		lines = append(lines, strings.Split(p.view.View(), "\n")...)
	case p.kind == mailPage && m.snapshot.Me == "":
		lines = append(lines, wrap("  Nobody has said who you are: atm tui --as NAME shows your mail.", width)...)
	case p.kind == mailPage && n == 0 && m.snapshot.Version > 0:
		lines = append(lines, "  no messages")
	}
	for i := c.top; i < min(n, c.top+m.bodyHeight); i++ {
		lines = append(lines, m.mailRow(i, i == c.selected))
	}
	return m.pad(lines)
}

func (m *model) mailRow(i int, isSelected bool) string {
	it, isRead := nth(m.page().items, i), true
	if m.page().kind == mailPage {
		it, isRead = m.rows[m.mail[i]].item, m.rows[m.mail[i]].isRead
	}
	switch {
	case !isRead:
		return m.marker(middlePane, isSelected)
	case it == nil:
		return m.marker(middlePane, isSelected) + faint.Render("moved")
	}
	fromWidth, isNarrow := 12, m.middleWidth() < 62
	if isNarrow {
		fromWidth = 8
	}
	r, title := m.renderer(), letter.KeepDirection(letter.Escape(letter.Clip(it.Title(), 300)))
	notes := command.Notes(r, it)
	if it.State == maildir.Unread {
		title = bold.Render(title)
		if !isNarrow {
			notes = app.JoinFilled(", ", "unread", notes)
		}
	}
	before := fmt.Sprintf("%s%-4s  %s  ", m.marker(middlePane, isSelected), letter.Span(m.now.Sub(it.SentAt)), fit(r.Who(it.From), fromWidth))
	room := m.middleWidth() - ansi.StringWidth(before) - 2
	notes = ansi.Truncate(notes, max(room/2, room-ansi.StringWidth(title)), "…")
	return before + faint.Render(notes) + "  " + title
}

func (m *model) writingLines() []string {
	c := m.writing
	if c == nil {
		return nil
	}
	if c.kind == searching {
		return []string{c.title + c.line.View()}
	}
	title := bold.Render(c.title)
	if c.kind == sending {
		title += c.line.View()
	}
	return append([]string{strings.Repeat("─", m.width), title}, strings.Split(c.text.View(), "\n")...)
}

// footLines are the result of the last key, and the keys.
func (m *model) footLines() []string {
	status := letter.Escape(m.status)
	if m.isError {
		status = alert.Render(status)
	}
	keys := keysWithin(m.width)
	switch {
	case m.confirm != nil:
		status, keys = m.prompt, "y yes; any other key: no"
	case m.writing != nil && m.writing.kind == searching:
		keys = "Enter search  Esc close"
	case m.writing != nil:
		keys = "Ctrl-S send  Esc keep the draft  Ctrl-E $EDITOR"
	}
	return []string{status, faint.Render(keys)}
}

// keysWithin lists the keys that a line of this width has room for, the most needed first.
func keysWithin(width int) (line string) {
	for _, key := range []string{
		"? keys", "q leave", "Esc back", "Enter open", "a approve", "x reject", "r reply", "s send", "k ack", "Space read",
		"t attach", "i interrupt", "/ search", "e editor",
	} {
		if len(line)+2+len(key) > width {
			break
		}
		line = app.JoinFilled("  ", line, key)
	}
	return line
}

// paneAt returns the pane at a point of the terminal as it was drawn last, and the index in its list of what is there,
// -1 for none.
func (m *model) paneAt(x, y int) (in pane, i int) {
	line := y - m.bodyTop
	switch {
	case y > 0 && y <= len(m.waitingAt):
		return waitingPane, m.waitingAt[y-1]
	case line < 0 || line >= m.bodyHeight:
		return middlePane, -1
	case x < m.leftWidth(), m.leftWidth() < 0 && m.focus == membersPane:
		return membersPane, m.members.top + line
	}
	return middlePane, m.page().top + line
}

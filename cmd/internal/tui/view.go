package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/room"
	"github.com/agentteammail/atm/cmd/internal/tui/keymap"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/wire"
)

var (
	bold     = lipgloss.NewStyle().Bold(true)
	faint    = lipgloss.NewStyle().Faint(true)
	alert    = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Red)
	selected = lipgloss.NewStyle().Reverse(true)
)

// selectedQuestion renders the selected question in as many lines as there is room for. isWhole reports whether they
// are all of it.
func (m *model) selectedQuestion() (lines []string, isWhole bool) {
	if len(m.snapshot.Waiting) == 0 {
		return nil, false
	}
	q, width := nth(m.snapshot.Waiting, m.waiting.selected), max(m.width-waitingIndent, 10)
	lines, options := wrap(questionText(q), width), optionLines(q, width)
	most := max(1, m.height/3)
	if m.writing != nil && !m.writing.kind.isLine() {
		most, options = 1, nil
	}
	isWhole = len(lines)+len(options) <= most && m.width >= waitingIndent+10 && !q.Cut
	if len(options) > most-1 {
		options = shortOptions(q, width, most-1)
	}
	if lines = lines[:min(len(lines), most-len(options))]; !isWhole {
		lines[len(lines)-1] = ansi.Truncate(lines[len(lines)-1], width-2, "") + " …"
	}
	return append(lines, options...), isWhole
}

// questionLine renders a question and what it is about in one line, and who answers it, if that is not a key.
func questionLine(q room.Question, about string) string {
	line := fmt.Sprintf("%s %s", q.Agent, letter.KeepDirection(letter.Escape(about)))
	if reason, _ := app.AnsweredElsewhere(&q.Question); q.TakesText() {
		line += "   (r answers)"
	} else if reason != "" {
		line += "   (" + reason + ")"
	} else if !q.MayAnswer {
		line += "   (not yours to answer)"
	}
	return line
}

// questionText renders a question: its line, and below that what has more lines than one. What an agent wrote is indented
// further than its options.
func questionText(q room.Question) string {
	about, below := q.Summary(), ""
	if text := q.Text(); strings.Contains(text, "\n") {
		about, below = q.Does()+":", "\n"+text
	}
	text := questionLine(q, about) + strings.ReplaceAll(letter.EscapeBody(below), "\n", "\n    ")
	if left := q.Left(); left != "" {
		text += "\n  (" + left + ")"
	}
	return text
}

// optionLines renders the options of a question, whole, in rows in which no number is parted from its words.
func optionLines(q room.Question, width int) (lines []string) {
	row := ""
	for i, o := range q.Options {
		option := fmt.Sprintf("  %d %s", i+1, o.Words())
		if row != "" && letter.Columns(row+option) >= width {
			lines, row = append(lines, wrap(row, width)...), ""
		}
		if row != "" {
			row += " "
		}
		row += option
	}
	if row != "" {
		lines = append(lines, wrap(row, width)...)
	}
	return lines
}

// shortOptions renders the options in at most so many lines, one in each. What is too long is cut in the middle: the end of a
// path or of a rule says most.
func shortOptions(q room.Question, width, most int) (lines []string) {
	if most < 1 {
		return nil
	}
	for i, o := range q.Options {
		line, half := fmt.Sprintf("  %d %s", i+1, o.Words()), (width-1)/2
		if columns := letter.Columns(line); columns > width {
			line = ansi.Truncate(line, half, "") + "…" + ansi.TruncateLeft(line, columns-half, "")
		}
		lines = append(lines, line)
	}
	if more := len(lines) - most + 1; more > 1 {
		lines = append(lines[:most-1], fmt.Sprintf("  … %d more: Enter", more))
	}
	return lines
}

// wholeQuestion is all of a question.
func wholeQuestion(q room.Question, width int) string {
	return strings.Join(append([]string{questionText(q)}, optionLines(q, width)...), "\n")
}

// isFull reports whether the page has all of the terminal but for the header, its title and the keys: what was opened has,
// if there is no room beside it.
func (m *model) isFull() bool {
	return m.width < previewFrom && m.focus == middlePane && m.page().isText()
}

// leftWidth is the width of the members, -1 if they are not beside the middle.
func (m *model) leftWidth() int {
	if m.width < 80 || m.isFull() {
		return -1
	}
	need := len("> ") + command.TeamWidth(m.snapshot.Members)
	if m.width >= 100 {
		need += len("  59m") // for how long
	}
	share := m.width / 3
	if m.width >= previewFrom {
		share = m.width / 4
	}
	return min(max(share, 28, need), 60, m.width/2)
}

// layOut fits everything into the terminal, as View draws it.
func (m *model) layOut() {
	m.left = m.leftWidth()
	if c := m.writing; c != nil {
		c.line.SetWidth(max(10, m.width-len("search: ")-2))
		c.line.SetSuggestions(m.suggestions(c))
		c.file.SetWidth(max(1, m.width-len("file: ")-2))
		c.text.SetWidth(m.width)
		c.text.SetHeight(min(10, max(3, m.height/3)) - 2)
	}
	m.waiting.scroll(len(m.snapshot.Waiting), m.waitingRows())
	waiting, at := m.waitingLines()
	m.waitingAt, m.bodyTop = at, 1+len(waiting)+len(m.lateLines())+1
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
	if p := m.preview; p != nil {
		p.view.SetWidth(m.rightWidth())
		p.view.SetHeight(m.bodyHeight)
		p.view.SetContentLines(m.lines(p, m.rightWidth()))
	}
}

// View draws, from top to bottom, a line about the team, the questions, a rule, the body, what is being written, and
// two lines for status and keys.
func (m *model) View() tea.View {
	if m.width == 0 {
		return tea.View{AltScreen: true} // the terminal's size is not known yet
	}
	waiting, _ := m.waitingLines()
	lines := slices.Concat([]string{m.header()}, waiting, m.lateLines(), m.bodyLines(), m.writingLines(), m.footLines())
	if m.writing != nil || m.confirm != nil { // on a low terminal, what is being typed counts most
		lines = lines[max(0, len(lines)-m.height):]
	}
	for i, line := range lines {
		lines[i] = fit(line, m.width)
	}
	v := tea.NewView(strings.Join(lines[:min(len(lines), m.height)], "\n"))
	v.AltScreen, v.MouseMode = true, tea.MouseModeCellMotion
	v.WindowTitle = fmt.Sprintf("atm %s/%s: %d waiting, %d unread", letter.Escape(m.snapshot.Project), m.snapshot.Team, len(m.snapshot.Waiting), m.snapshot.New)
	return v
}

// middleWidth is the width of the middle, rightWidth that of the preview.
func (m *model) middleWidth() int {
	width := m.width - m.left - 1
	if m.preview != nil {
		width -= m.rightWidth() + 1
	}
	return width
}

func (m *model) rightWidth() int { return (m.width - m.left - 2) / 2 }

// bodyLines draws the members and the middle, each below its title.
func (m *model) bodyLines() (lines []string) {
	left := m.left
	if left < 0 && m.focus == membersPane {
		return m.memberLines(m.width)
	} else if left < 0 {
		return m.middleLines(m.width)
	}
	members, right, border := m.memberLines(left), m.previewLines(), "┬"
	for i, line := range m.middleLines(m.middleWidth()) {
		line = fit(nth(members, i), left) + border + line
		if right != nil {
			line = fit(line, left+1+m.middleWidth()) + border + right[i]
		}
		lines, border = append(lines, line), "│"
	}
	return lines
}

// previewLines draws the preview; nil: there is none.
func (m *model) previewLines() []string {
	p := m.preview
	if p == nil {
		return nil
	}
	title := letter.Escape(p.title)
	if p.kind == agentPage {
		title = string(p.agent)
	}
	if !p.view.AtBottom() {
		title += " (Enter: all of it)"
	}
	return m.pad(append([]string{m.rule(title, m.rightWidth(), previewPane)}, strings.Split(p.view.View(), "\n")...))
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
	counts := fmt.Sprintf("   %d waiting, %d unread", len(s.Waiting), s.New)
	if n := len(s.Owed); n > 0 {
		counts += fmt.Sprintf(", %d to ack", n)
	}
	if n := len(s.Overdue); n > 0 {
		counts += alert.Render(fmt.Sprintf(", %d overdue", n))
	}
	if n := len(s.Held); n > 0 {
		counts += fmt.Sprintf(", %d held up", n)
	}
	team, room := string(s.Team), max(m.width-ansi.StringWidth(counts), 8) // for two names
	if all := letter.Escape(s.Project) + "/" + team; s.Project != "" && len(all)+len(", "+who) <= room {
		team = all
	}
	who = ansi.Truncate(", "+who, max(room*2/3, room-len(team)), "…")
	if s.Problem != "" {
		counts += "   " + alert.Render(letter.Escape(s.Problem))
	}
	return bold.Render(ansi.Truncate(team, room-ansi.StringWidth(who), "…")) + who + counts
}

// row is a line of a pane's list. The selected one is the brightest thing of the focused pane, and marked in the others.
func (m *model) row(in pane, isSelected bool, line string, width int) string {
	switch {
	case isSelected && m.focus == in:
		return selected.Render(fit("> "+ansi.Strip(line), width))
	case isSelected:
		return "- " + line
	}
	return "  " + line
}

// waitingIndent is the width of the marker and the age.
const waitingIndent = 8

// waitingRows is how many questions are shown.
func (m *model) waitingRows() int { return min(len(m.snapshot.Waiting), max(1, m.height/4)) }

// waitingLines draws the questions, the selected one in full if there is room for it. at has the question of each line.
func (m *model) waitingLines() (lines []string, at []int) {
	for i := m.waiting.top; i < m.waiting.top+m.waitingRows(); i++ {
		q, isSelected := m.snapshot.Waiting[i], i == m.waiting.selected
		if m.isFull() && !(isSelected && m.page().kind == agentPage && m.isSelected(q)) { // its keys answer what the agent asks
			continue
		}
		text := []string{questionLine(q, q.Summary())}
		if isSelected {
			text, _ = m.selectedQuestion()
		}
		before := fit(letter.Span(m.now.Sub(q.Since)), waitingIndent-len("> "))
		for n, line := range text {
			if agent := string(q.Agent); n == 0 && q.MayAnswer && strings.HasPrefix(line, agent) {
				line = alert.Render(agent) + bold.Render(line[len(agent):])
			}
			lines, at = append(lines, m.row(waitingPane, isSelected && n == 0, before+line, m.width)), append(at, i)
			before = strings.Repeat(" ", len(before))
		}
	}
	return lines, at
}

// lateLines says what else waits for somebody, below the questions: what is overdue, and mail that is held up.
func (m *model) lateLines() (lines []string) {
	if m.isFull() {
		return nil
	}
	late := m.snapshot.Late()
	shown := min(len(late), max(1, m.height/10))
	for i, w := range late[:shown] {
		rest := ""
		if more := len(late) - shown; more > 0 && i == shown-1 {
			rest = fmt.Sprintf("; %d more: atm pending", more)
		}
		lines = append(lines, ansi.Truncate("  "+letter.Escape(w.Line), m.width-len(rest), "…")+rest)
	}
	return lines
}

func (m *model) memberLines(width int) []string {
	lines := []string{m.rule("members"+place(&m.members, len(m.snapshot.Members)), width, membersPane)}
	members := slices.Clone(m.snapshot.Members)
	if i := slices.IndexFunc(members, func(one presence.Member) bool { return one.Name == m.snapshot.Me }); i >= 0 {
		members[i].Unread = m.snapshot.New // as the header says: a question that stands above is no mail
	}
	all := command.Team(members, width-1, m.isColoured) // it keeps one more column free
	for i := m.members.top; i < len(m.snapshot.Members); i++ {
		lines = append(lines, m.row(membersPane, i == m.members.selected, all[i], width))
	}
	if i := m.members.selected; i < len(m.snapshot.Members) { // what was cut of the selected one is shown below
		whole := command.Team(members[i:i+1], 0, m.isColoured)[0]
		isAsked := slices.ContainsFunc(m.snapshot.Waiting, func(q room.Question) bool { return q.Agent == m.snapshot.Members[i].Name }) // which stands above
		if !isAsked && !slices.Equal(strings.Fields(ansi.Strip(whole)), strings.Fields(ansi.Strip(all[i]))) {
			lines = append(lines, "")
			for _, line := range wrap(whole, width-3) {
				lines = append(lines, "  "+line)
			}
		}
	}
	return m.pad(lines)
}

// place says which of a list's lines is selected.
func place(c *cursor, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" %d of %d", c.selected+1, n)
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
	c, n := m.list(middlePane)
	title += place(c, n)
	lines := []string{m.rule(title, width, middlePane)}
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

// mailRow draws a message: age, sender, what it is about, and what is to be said of it.
func (m *model) mailRow(i int, isSelected bool) string {
	width := m.middleWidth()
	it, readBy, isRead, isKept := nth(m.page().items, i), nth(m.page().readBy, i), true, false
	if m.page().kind == mailPage {
		r := m.rows[m.snapshot.Mail[i]]
		it, readBy, isRead, isKept = r.item, "", r.isRead, r.isKept
	}
	switch {
	case !isRead:
		return m.row(middlePane, isSelected, "", width)
	case it == nil:
		return m.row(middlePane, isSelected, faint.Render("moved"), width)
	}
	fromWidth := 12
	if width < 62 {
		fromWidth = 8
	}
	r, title := m.renderer(), letter.KeepDirection(letter.Escape(letter.Clip(it.Title(), 300)))
	r.IsKept = func(*wire.Message) bool { return isKept }
	var notes []string
	for _, note := range room.Notes(command.Notes(r, it), it, readBy) {
		style := faint
		if note.IsStrong {
			style = alert
		}
		notes = append(notes, style.Render(note.Text))
	}
	before := fmt.Sprintf("%-4s  %s  ", letter.Span(m.now.Sub(it.SentAt)), fit(r.Who(it.From), fromWidth))
	left := max(width-len("> ")-ansi.StringWidth(before), 0)
	behind := ansi.Truncate(strings.Join(notes, ", "), left/2, "…")
	if behind != "" {
		behind = "  " + behind
	}
	if title = ansi.Truncate(title, left-ansi.StringWidth(behind), "…"); it.State == wire.Unread {
		title = bold.Render(title)
	}
	return m.row(middlePane, isSelected, before+title+behind, width)
}

func (m *model) writingLines() []string {
	c := m.writing
	if c == nil {
		return nil
	}
	if c.kind.isLine() {
		return []string{c.title + c.line.View()}
	}
	title := bold.Render(c.title)
	if c.kind == sending {
		title += c.line.View()
	}
	if c.file.Focused() || c.file.Value() != "" {
		title += "\n" + bold.Render("file: ") + c.file.View()
	}
	return append([]string{strings.Repeat("─", m.width)}, strings.Split(title+"\n"+c.text.View(), "\n")...)
}

// footLines are the result of the last key, and the keys.
func (m *model) footLines() []string {
	status := letter.Escape(m.status)
	if m.isError {
		status = alert.Render(status)
	}
	keys := keysWithin(m.width, m.keys())
	switch {
	case m.confirm != nil:
		status, keys = m.prompt, "y yes; any other key: no"
	case m.writing != nil && m.writing.kind == commanding:
		keys = keymap.Command.Help().Desc + "; " + keymap.Line("", keymap.As(keymap.Close, "Esc", "close"))
	case m.writing != nil && m.writing.kind == searching:
		keys = keymap.Line("  ", keymap.As(keymap.Open, "Enter", "search"), keymap.As(keymap.Close, "Esc", "close"))
	case m.writing != nil:
		keys = keymap.Line("  ", keymap.Send, keymap.Close, keymap.EditDraft)
		if m.writing.takesFile() {
			keys += "  " + keymap.Line("", keymap.As(keymap.File, "S-Tab", "file"))
		}
	}
	return []string{status, faint.Render(keys)}
}

// keys are those for what is selected or open, the most needed first.
func (m *model) keys() (keys []key.Binding) {
	q, i := m.question()
	p := m.page()
	elsewhere, _ := app.AnsweredElsewhere(&q.Question)
	isMember := m.focus == membersPane || m.focus == middlePane && p.kind == agentPage
	options := fmt.Sprintf("1-%d", min(len(q.Options), 9))
	switch {
	case i >= 0 && m.isSelected(q) && q.TakesText():
		keys = []key.Binding{keymap.Answer, keymap.Open}
	case i >= 0 && m.isSelected(q) && q.IsMail() && q.MayAnswer:
		keys = []key.Binding{keymap.As(keymap.Option, options, "answer"), keymap.As(keymap.Answer, "r", "another answer"), keymap.Open}
	case i >= 0 && m.isSelected(q) && (elsewhere != "" || !q.MayAnswer):
		keys = []key.Binding{keymap.Open, keymap.Attach, keymap.Write}
	case i >= 0 && m.isSelected(q) && len(q.Options) > 0:
		keys = []key.Binding{keymap.Approve, keymap.Reject, keymap.As(keymap.Option, options, "option"), keymap.Open}
	case i >= 0 && m.isSelected(q):
		keys = []key.Binding{keymap.Approve, keymap.Reject, keymap.Open}
	case isMember:
		keys = []key.Binding{keymap.Open, keymap.Write}
		row, _ := m.snapshot.Member(m.member())
		if row.Running {
			keys = append(keys, keymap.Attach, keymap.Interrupt, keymap.As(keymap.StartStop, "o", "stop"))
		} else if row.Kind != "person" && !row.Shared && row.Host == "" {
			keys = append(keys, keymap.As(keymap.StartStop, "o", "start"))
		}
	case p.kind == keysPage:
	default:
		keys = []key.Binding{keymap.Reply, keymap.Ack, keymap.Read, keymap.Write}
		if it := cmp.Or(p.message, m.shownItem(p.selected)); it != nil && m.focus == middlePane && m.isMine(it) {
			keys = []key.Binding{keymap.Reply, keymap.As(keymap.Undo, "u", "withdraw"), keymap.Write}
		}
		if !p.isText() {
			keys = slices.Insert(keys, 0, keymap.Open)
		}
		if i >= 0 {
			keys = append(keys, keymap.As(keymap.Approve, "a", "the question"))
		}
	}
	if len(m.wasRead) > 0 {
		keys = slices.Insert(keys, min(1, len(keys)), keymap.As(keymap.Undo, "u", "undo read"))
	}
	if p.kind == threadPage && m.focus == middlePane {
		keys = slices.Insert(keys, min(1, len(keys)), keymap.As(keymap.NextMail, "n", "next"))
	}
	out := keymap.As(keymap.Quit, "q", "leave")
	if len(m.pages) > 1 {
		out = keymap.As(keymap.Back, "q", "back")
	}
	keys = append(keys, keymap.Next, keymap.Search)
	if m.focus == middlePane && !p.isText() {
		keys = append(keys, keymap.ReadAll)
	}
	return append(keys, keymap.Keys, out)
}

// keysWithin lists the keys that a line of this width has room for, and always the last two: how to learn of the others, and
// the way out.
func keysWithin(width int, keys []key.Binding) (line string) {
	keys, always := keys[:len(keys)-2], keys[len(keys)-2:]
	for n := len(keys); ; n-- {
		line = keymap.Line("  ", slices.Concat(keys[:n], always)...)
		if n == 0 || letter.Columns(line) <= width {
			return line
		}
	}
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
	case x < m.left, m.left < 0 && m.focus == membersPane:
		return membersPane, m.members.top + line
	case m.preview != nil && x > m.left+m.middleWidth():
		return previewPane, -1
	}
	return middlePane, m.page().top + line
}

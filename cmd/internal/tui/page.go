package tui

import (
	"regexp"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"

	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/room"
	"github.com/agentteammail/atm/cmd/internal/tui/keymap"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/wire"
)

type kind int

const (
	mailPage kind = iota
	searchPage
	threadPage
	agentPage
	questionPage
	keysPage
)

// A page is shown in the middle. It is a list or a text.
type page struct {
	kind  kind
	title string

	cursor              // of a list
	items  []*wire.Item // of a search or a thread
	readBy []string     // who has read each of them

	view  viewport.Model
	text  string // an agent's screen with its colours, or its turns; the keys
	isRaw bool   // its lines are cut, not wrapped

	message  *wire.Item // the one that the thread was opened from, which keys act on
	before   wire.ID    // the messages beside that one in its list
	after    wire.ID
	agent    wire.Name      // whose screen, turns or question this is
	readFor  *room.Snapshot // that the agent's turns were read for
	question room.Question  // of a question's page
}

func (p *page) isText() bool { return p.kind != mailPage && p.kind != searchPage }

func (m *model) push(p *page) { m.pages, m.focus = append(m.pages, p), middlePane }

func (m *model) pop() {
	m.again = ""
	if len(m.pages) > 1 {
		m.pages = m.pages[:len(m.pages)-1]
	}
}

// open opens the selected message with its thread, or the selected question or agent. It marks nothing.
func (m *model) open() tea.Cmd {
	m.again = ""
	it, name := m.message(), m.member()
	switch {
	case m.focus == waitingPane:
		q, _ := m.question()
		m.opened, m.targetSince = q, time.Now()
		m.push(&page{kind: questionPage, agent: q.Agent, question: q, title: "question; Enter: its screen"})
	case m.focus == middlePane && m.page().kind != questionPage:
		if it != nil && !m.page().isText() {
			at := m.page().selected
			p := &page{kind: threadPage, title: "thread", message: it, items: []*wire.Item{it}, before: m.idAt(at - 1), after: m.idAt(at + 1)}
			m.push(p)
			return m.loadThread(p)
		}
	case name != "":
		p := &page{kind: agentPage, agent: name}
		m.push(p)
		return m.loadAgent(p)
	}
	return nil
}

// idAt returns the id of a message of the page's list, "" if there is none.
func (m *model) idAt(i int) wire.ID {
	if m.page().kind == mailPage {
		return nth(m.snapshot.Mail, i)
	} else if it := nth(m.page().items, i); it != nil {
		return it.ID
	}
	return ""
}

// turnPage opens the message after or before the open one, as they stood in its list when that was opened.
func (m *model) turnPage(k tea.KeyPressMsg) tea.Cmd {
	open := m.page()
	id := open.before
	if key.Matches(k, keymap.NextMail) {
		id = open.after
	}
	m.pop()
	c, n := m.list(middlePane)
	for i := range n {
		if id != "" && m.idAt(i) == id {
			c.move(i-c.selected, n)
			return m.open()
		}
	}
	m.push(open)
	return m.refuse("no message is there: q")
}

// previewFrom is how wide a terminal must be for the preview.
const previewFrom = 120

// updatePreview shows what is selected beside the list. While a message is being read it shows the one before.
func (m *model) updatePreview() tea.Cmd {
	p, old := m.page(), m.preview
	if m.width < previewFrom || p.isText() {
		m.preview = nil
		return nil
	}
	switch it := m.shownItem(p.selected); {
	case m.focus == waitingPane:
		q, _ := m.question()
		m.preview = &page{kind: questionPage, question: q, title: "question"}
	case m.focus == membersPane:
		if name := m.member(); old == nil || old.kind != agentPage || old.agent != name {
			m.preview = &page{kind: agentPage, agent: name}
			return m.loadAgent(m.preview)
		}
	case it != nil && (old == nil || old.message == nil || old.message.ID != it.ID):
		m.preview = &page{kind: threadPage, title: "message", message: it, items: []*wire.Item{it}}
	case it == nil && (old == nil || old.message == nil):
		m.preview = nil
	}
	return nil
}

// shownItem returns the i-th message of the page as it is shown, nil if it was not read yet.
func (m *model) shownItem(i int) *wire.Item {
	if m.page().kind == mailPage {
		return m.rows[nth(m.snapshot.Mail, i)].item
	}
	return nth(m.page().items, i)
}

// maxReadBy is of how many messages of a page it is looked up who has read them: each takes some accesses to files.
const maxReadBy = 1000

// load reads messages for a page, which may take a while. With an error, some may be missing.
func (m *model) load(p *page, read func() ([]*wire.Item, error)) tea.Cmd {
	return func() tea.Msg {
		items, err := read()
		items = m.room.AsMine(items)
		readBy := make([]string, len(items))
		for i, it := range items[:min(len(items), maxReadBy)] {
			readBy[i] = m.room.ReadBy(it)
		}
		return callback(func() {
			if len(items) > 0 {
				p.items, p.readBy = items, readBy
			}
			if err != nil {
				m.setStatus("", err)
			} else if p.kind == searchPage {
				m.setStatus(letter.Many(len(items), "message"), nil)
			}
		})
	}
}

// A row is a message of mine in the list, as it was read for a version of my mail.
type row struct {
	item    *wire.Item // nil: not read yet, or it has moved
	isRead  bool
	isKept  bool // from me: see letter.Renderer
	readFor int
}

// loadRows reads the messages that are shown and were not read, or may have changed since.
func (m *model) loadRows() tea.Cmd {
	p := m.page()
	if p.kind != mailPage {
		return nil
	}
	shown, version := map[wire.ID]row{}, m.snapshot.MailVersion
	var ids []wire.ID
	mail := m.snapshot.Mail
	for _, id := range mail[min(p.top, len(mail)):min(p.top+m.bodyHeight, len(mail))] {
		known, isKnown := m.rows[id]
		if !isKnown || known.readFor != version {
			ids = append(ids, id)
		}
		known.readFor = version
		shown[id] = known
	}
	m.rows = shown
	if len(ids) == 0 {
		return nil
	}
	return func() tea.Msg {
		read, isKept := map[wire.ID]row{}, m.room.Scope.KeptFrom(m.room.Scope.Me)
		for _, id := range ids {
			r := row{item: nth(m.room.Mail([]wire.ID{id}), 0), isRead: true, readFor: version}
			r.isKept = r.item != nil && r.item.State == wire.Unread && isKept(r.item.Message)
			read[id] = r
		}
		return callback(func() {
			for id, r := range read {
				if now, isShown := m.rows[id]; isShown && now.readFor == version {
					m.rows[id] = r
				}
			}
		})
	}
}

func (m *model) loadThread(p *page) tea.Cmd {
	return m.load(p, func() ([]*wire.Item, error) { return m.room.Thread(m.ctx, p.message.ThreadID(), p.message.ID) })
}

// loadAgent shows an agent's screen. If it has no runner, loadAgent reads its turns for each new snapshot.
func (m *model) loadAgent(p *page) tea.Cmd {
	isRunning := func() bool {
		row, _ := m.snapshot.Member(p.agent)
		return row.Running
	}
	if isRunning() {
		if s := m.room.Screen(m.ctx, p.agent); s != nil {
			p.text, p.isRaw = bidi.ReplaceAllString(s.ANSI, "")+s.Problem, s.Problem == ""
		}
		return nil
	}
	if p.readFor == m.snapshot {
		return nil
	}
	p.readFor = m.snapshot
	if row, _ := m.snapshot.Member(p.agent); row.Shared && row.Host == "" {
		return func() tea.Msg {
			q, err := m.room.Queue(p.agent)
			return callback(func() {
				if q == nil {
					m.setStatus("", err)
				} else {
					p.text, p.isRaw = q.Text(m.now), false
				}
			})
		}
	}
	return func() tea.Msg {
		turns, err := m.room.Turns(p.agent)
		return callback(func() {
			if err != nil {
				m.setStatus("", err)
			} else if !isRunning() {
				p.text, p.isRaw = command.Turns(p.agent, turns, command.TurnsShown{Last: 1, Command: m.room.Scope.Given.Command}), false
			}
		})
	}
}

// lines renders the text of a page.
func (m *model) lines(p *page, width int) (lines []string) {
	if p.kind == threadPage {
		const mark = "> "
		r := m.renderer()
		r.Width, r.IsPane = max(width-len(mark), 1), true
		for i, piece := range command.Letters(r, p.items, nil) {
			if p != m.preview && p.items[i].ID == p.message.ID {
				piece = append([]byte(mark), piece...)
			}
			if by := nth(p.readBy, i); by != "" {
				piece = append(piece, "\n  "+by...)
			}
			lines = append(lines, strings.Split(string(piece), "\n")...)
		}
		return lines
	}
	text := strings.TrimRight(p.text, "\n ")
	if p.kind == questionPage {
		text = wholeQuestion(p.question, width)
	}
	if p.isRaw {
		return strings.Split(text, "\n")
	}
	return wrap(text, width)
}

// bidi matches the characters that change the direction of writing.
var bidi = regexp.MustCompile(`[\x{061c}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]`)

// wrap breaks a text into rows, none of which is turned around by what is written from right to left.
func wrap(text string, width int) []string {
	rows := strings.Split(letter.WrapPane(text, width), "\n")
	for i, row := range rows {
		text := strings.TrimLeft(row, " ")
		rows[i] = row[:len(row)-len(text)] + letter.KeepDirection(text)
	}
	return rows
}

package tui

import (
	"regexp"
	"strings"
	"time"

	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/room"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
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
	cursor // of a list
	view   viewport.Model
	kind   kind
	title  string
	loaded

	message  *mailbox.Item // the one that the thread was opened from, which keys act on
	agent    wire.Name     // whose screen, turns or question this is
	question room.Question // of a question's page
}

type loaded struct {
	page  *page
	items []*mailbox.Item // of a search or a thread
	row   *teams.Member   // the agent's, as it was before its turns were read
	text  string          // an agent's screen with its colours, or its turns; a question; the keys
	isRaw bool            // a screen: lines are cut, not wrapped
	err   error
}

// setLoaded shows what was loaded, unless that is out of date. With an error, it keeps what was shown if that is more.
func (p *page) setLoaded(l loaded) {
	if l.row == p.row && (l.err == nil || l.text != "" || len(l.items) > len(p.items)) {
		p.loaded = l
	}
}

func (p *page) isText() bool { return p.kind != mailPage && p.kind != searchPage }

func (m *model) push(p *page) {
	m.pages, m.focus = append(m.pages, p), middlePane
	m.updateTarget()
}

func (m *model) pop() {
	if len(m.pages) > 1 {
		m.pages = m.pages[:len(m.pages)-1]
		m.updateTarget()
	}
}

// open opens the selected message with its thread, or the selected question or agent. It marks nothing.
func (m *model) open() tea.Cmd {
	if q, _ := m.question(); m.focus == waitingPane {
		m.opened, m.targetSince = q, time.Now()
		m.push(&page{kind: questionPage, agent: q.Agent, question: q, title: "question; Enter: its screen", loaded: loaded{text: questionText(q)}})
	} else if m.focus != middlePane || m.page().kind == questionPage {
		if name := m.member(); name != "" {
			p := &page{kind: agentPage, agent: name}
			m.push(p)
			return m.loadAgent(p)
		}
	} else if it := m.message(); it != nil && !m.page().isText() {
		p := &page{kind: threadPage, title: "thread", message: it, loaded: loaded{items: []*mailbox.Item{it}}}
		m.push(p)
		return m.loadThread(p)
	}
	return nil
}

// loadThread reads the rest of a thread, which may take a while.
func (m *model) loadThread(p *page) tea.Cmd {
	return func() tea.Msg {
		items, err := m.room.Thread(m.ctx, p.message.ThreadID(), p.message.ID)
		return loaded{page: p, items: items, err: err}
	}
}

// loadAgent shows an agent's screen. If the agent has no runner, it reads its turns again each time its state changes.
func (m *model) loadAgent(p *page) tea.Cmd {
	row, _ := m.snapshot.Member(p.agent)
	if row.Running {
		p.row = nil
		if s := m.room.Screen(m.ctx, p.agent); s != nil {
			p.loaded = loaded{text: bidi.ReplaceAllString(s.ANSI, "") + s.Problem, isRaw: s.Problem == ""}
		}
		return nil
	}
	if p.row != nil && p.row.State == row.State {
		return nil
	}
	p.row = &row
	return func() tea.Msg {
		turns, err := m.room.Turns(p.agent, 20)
		l := loaded{page: p, row: &row, text: command.Turns(p.agent, turns), err: err}
		if err != nil && len(turns) == 0 {
			l.text = "Cannot read the turns."
		}
		return l
	}
}

func (m *model) lines(p *page, width int) (lines []string) {
	if p.kind == threadPage {
		r := m.renderer()
		for i, piece := range command.Letters(r, p.items, nil) {
			for n, line := range strings.Split(strings.TrimSuffix(string(piece), "\n"), "\n") {
				lines = append(lines, wrap(line, width, n == 0 && p.items[i].ID == p.message.ID)...)
			}
			lines = append(lines, "")
		}
		return lines
	}
	for line := range strings.SplitSeq(strings.TrimRight(p.text, "\n "), "\n") {
		if p.kind == keysPage || p.isRaw {
			lines = append(lines, line)
		} else {
			lines = append(lines, wrap(line, width, false)...)
		}
	}
	return lines
}

// bidi matches the characters that change the direction of writing.
var bidi = regexp.MustCompile(`[\x{061c}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]`)

// wrap wraps a line of a message. All lines but the first are indented like a body, so that none looks like a header.
func wrap(line string, width int, isSelected bool) (out []string) {
	const indent = "  "
	text, isBody := strings.CutPrefix(strings.ReplaceAll(line, "\t", "    "), indent)
	for i, part := range strings.Split(ansi.Wrap(text, max(width-len(indent), 1), ""), "\n") {
		if isBody || i > 0 {
			part = indent + keepDirection(part)
		} else if isSelected {
			part = "> " + part
		}
		out = append(out, part)
	}
	return out
}

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
	foundPage
	threadPage
	agentPage
	questionPage
	keysPage
)

// A page is what the middle shows: a list with a place in it, or a text.
type page struct {
	place
	view  viewport.Model
	kind  kind
	title string
	loaded

	message  *mailbox.Item // of a thread: the one that keys act on
	agent    wire.Name     // whose screen, turns or question this is
	question room.Question // of its page
}

type loaded struct {
	page  *page
	items []*mailbox.Item // that were found, or of a thread
	row   *teams.Member   // of turns: the agent when they were asked for
	text  string          // an agent's screen with its colours, or its turns; a question; the keys
	isRaw bool            // a screen: lines are cut, not wrapped
	err   error
}

// take takes in what there is, unless it is out of date, also beside an error, which hides nothing that was shown before.
func (p *page) take(l loaded) {
	if l.row == p.row && (l.err == nil || l.text != "" || len(l.items) > len(p.items)) {
		p.loaded = l
	}
}

func (p *page) isText() bool { return p.kind != mailPage && p.kind != foundPage }

func (m *model) push(p *page) {
	m.pages, m.focus = append(m.pages, p), middlePane
	m.aim()
}

func (m *model) pop() {
	if len(m.pages) > 1 {
		m.pages = m.pages[:len(m.pages)-1]
		m.aim()
	}
}

// open opens what is selected: a message with its thread, a question, or an agent. Nothing is marked.
func (m *model) open() tea.Cmd {
	if q, i := m.question(); m.focus == waitingPane && i >= 0 {
		m.opened, m.targetSince = q, time.Now()
		m.push(&page{kind: questionPage, agent: q.Agent, question: q, title: "question; Enter: its screen", loaded: loaded{text: whole(q)}})
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

// loadThread reads the rest of a thread, which takes a while where there is much mail.
func (m *model) loadThread(p *page) tea.Cmd {
	return func() tea.Msg {
		items, err := m.room.Thread(m.ctx, p.message.ThreadID(), p.message.ID)
		return loaded{page: p, items: items, err: err}
	}
}

// loadAgent shows an agent's screen, or of one without a runner its turns, which are read when its state changes.
func (m *model) loadAgent(p *page) tea.Cmd {
	row, _ := m.seen.Member(p.agent)
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
			l.text = "The turns cannot be read."
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
		switch {
		case p.kind == keysPage || p.isRaw:
			lines = append(lines, line)
		default:
			lines = append(lines, wrap(line, width, false)...)
		}
	}
	return lines
}

// bidi turns the direction of writing around.
var bidi = regexp.MustCompile(`[\x{061c}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]`)

// wrap breaks a line of a message. What follows has the indentation of a body, so that no part of a body
// looks like a header.
func wrap(line string, width int, isChosen bool) (out []string) {
	const indent = "  "
	text, isBody := strings.CutPrefix(strings.ReplaceAll(line, "\t", "    "), indent)
	for i, part := range strings.Split(ansi.Wrap(text, max(width-len(indent), 1), ""), "\n") {
		if isBody || i > 0 {
			part = indent + inPlace(part)
		} else if isChosen {
			part = "> " + part
		}
		out = append(out, part)
	}
	return out
}

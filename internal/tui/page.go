package tui

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/room"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/control"
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

// A page is what the middle shows. In a list its place is the selected line; of a text, the first line that
// is shown.
type page struct {
	place
	kind  kind
	title string
	loaded

	id       wire.ID            // of a thread: the message that keys act on
	agent    wire.Name          // whose screen, turns or question this is
	row      teams.Member       // of an agent's page: the agent as it was when this was read
	question room.Question      // of its page
	left     int                // the first column that is shown of a screen
	isAtEnd  bool               // the last lines are shown, also when there are more
	end      context.CancelFunc // ends what keeps it up to date; nil: nothing does
}

// loaded is what was read for a page.
type loaded struct {
	page  *page
	ctx   context.Context // when it has ended this is out of date; nil: never
	items []*mailbox.Item // that were found, or of a thread
	text  string          // an agent's screen with its colours, or its turns
	isRaw bool            // a screen: lines are cut, not wrapped
	err   error
}

// take takes in what there is, also beside an error, which hides nothing that was shown before.
func (p *page) take(l loaded) {
	if l.err == nil || l.text != "" || len(l.items) > len(p.items) {
		p.loaded = l
	}
}

func (p *page) isText() bool { return p.kind != mailPage && p.kind != foundPage }

func (p *page) chosen() int {
	if p.kind == threadPage {
		return max(0, slices.IndexFunc(p.items, func(it *mailbox.Item) bool { return it.ID == p.id }))
	}
	return p.at
}

func (m *model) push(p *page) {
	m.pages, m.focus = append(m.pages, p), middlePane
	m.aim()
}

func (m *model) pop() {
	if p := m.page(); len(m.pages) > 1 {
		if p.end != nil {
			p.end()
		}
		m.pages = m.pages[:len(m.pages)-1]
		m.aim()
	}
}

// open opens what is selected: a message with its thread, a question, or an agent. Nothing is marked.
func (m *model) open() tea.Cmd {
	if q, i := m.question(); m.focus == waitingPane && i >= 0 {
		m.opened, m.targetSince = q, time.Now()
		m.push(&page{kind: questionPage, agent: q.Agent, question: q, title: "question; Enter: its screen"})
	} else if m.focus != middlePane || m.page().kind == questionPage {
		if name := m.member(); name != "" {
			return m.openAgent(name)
		}
	} else if it := m.message(); it != nil && !m.page().isText() {
		p := &page{kind: threadPage, title: "thread", id: it.ID, loaded: loaded{items: []*mailbox.Item{it}}}
		m.push(p)
		return m.loadThread(p)
	}
	return nil
}

// loadThread reads the rest of a thread, which takes a while where there is much mail.
func (m *model) loadThread(p *page) tea.Cmd {
	it := p.items[p.chosen()]
	return func() tea.Msg {
		items, err := m.room.Thread(m.ctx, it.ThreadID())
		if !slices.ContainsFunc(items, func(other *mailbox.Item) bool { return other.ID == it.ID }) {
			items = append(items, it) // found elsewhere in the team
		}
		return loaded{page: p, items: items, err: err}
	}
}

func (m *model) openAgent(name wire.Name) tea.Cmd {
	p := &page{kind: agentPage, agent: name, isAtEnd: true, end: func() {}}
	m.push(p)
	return m.loadAgent(p)
}

// loadAgent shows an agent's screen as it changes, or of one without a runner its turns.
func (m *model) loadAgent(p *page) tea.Cmd {
	p.end()
	ctx, cancel := context.WithCancel(m.ctx)
	p.end = cancel
	p.row, _ = m.seen.Member(p.agent)
	isRunning := p.row.Running
	return func() tea.Msg {
		turns, err := m.room.Turns(p.agent, 20)
		if isRunning && err == nil {
			err = m.room.Screen(ctx, p.agent, func(s control.Screen) {
				m.send(loaded{page: p, ctx: ctx, text: bidi.ReplaceAllString(s.ANSI, ""), isRaw: true})
			})
			return loaded{page: p, ctx: ctx, text: "The screen has ended.", err: err}
		}
		l := loaded{page: p, ctx: ctx, text: command.Turns(p.agent, turns), err: err}
		if err != nil && len(turns) == 0 {
			l.text = "The turns cannot be read."
		}
		return l
	}
}

func (m *model) lines(p *page, width int) (lines []string) {
	switch p.kind {
	case threadPage:
		r := m.renderer()
		for i, piece := range command.Letters(r, p.items, nil) {
			for n, line := range strings.Split(strings.TrimSuffix(string(piece), "\n"), "\n") {
				lines = append(lines, wrap(line, width, n == 0 && i == p.chosen())...)
			}
			lines = append(lines, "")
		}
	case agentPage:
		for line := range strings.SplitSeq(p.text, "\n") {
			if p.isRaw {
				lines = append(lines, ansi.Cut(line, p.left, p.left+width))
			} else {
				lines = append(lines, wrap(line, width, false)...)
			}
		}
		for len(lines) > 0 && strings.TrimSpace(ansi.Strip(lines[len(lines)-1])) == "" {
			lines = lines[:len(lines)-1]
		}
	case questionPage:
		for line := range strings.SplitSeq(whole(p.question), "\n") {
			lines = append(lines, wrap(line, width, false)...)
		}
	case keysPage:
		lines = strings.Split(keysText, "\n")
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

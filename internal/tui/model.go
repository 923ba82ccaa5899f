package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/room"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// pane is a part of the terminal that keys and the wheel move in.
type pane int

const (
	waitingPane pane = iota
	membersPane
	middlePane
)

// A place is where one is in a list or a text: the line that is selected, and the first that is shown.
type place struct{ at, top int }

// move goes by some lines within so many, of which height are shown.
func (p *place) move(by, lines, height int) {
	p.at = min(max(p.at+by, 0), max(lines-1, 0))
	p.top = min(max(min(p.top, p.at), p.at-height+1, 0), max(lines-height, 0))
}

// stay goes where what was selected is now; -1: it is gone.
func (p *place) stay(now int) {
	if now >= 0 {
		p.at = now
	}
}

// at is the i-th of a list, if it has so many.
func at[T any](list []T, i int) (one T) {
	if i >= 0 && i < len(list) {
		one = list[i]
	}
	return one
}

type model struct {
	ctx  context.Context
	room *room.Room

	now           time.Time
	width, height int
	seen          *room.Snapshot
	mail          []wire.ID // unread, owed, read

	focus            pane
	waiting, members place
	pages            []*page // in the middle: my mail, and what was opened from it; the last is shown

	target      room.Question // the one that `a` answers now
	targetSince time.Time
	opened      room.Question // the last one that was shown on a page of its own

	status  string // what came of the last key
	isError bool
	prompt  string
	confirm func() tea.Cmd // what y does; nil: nothing is asked
	writing *composer
	drafts  map[string]string  // by what they are for
	unsent  map[*composer]bool // what is being sent
}

func newModel(ctx context.Context, r *room.Room) *model {
	s, _ := r.Snapshot()
	title := "mail"
	if s.Me != "" {
		title = "my mail"
	}
	return &model{
		ctx: ctx, room: r, now: time.Now(), seen: s, focus: middlePane,
		pages: []*page{{kind: mailPage, title: title}}, status: "looking…",
		drafts: map[string]string{}, unsent: map[*composer]bool{},
	}
}

func (m *model) Init() tea.Cmd { return nil }

// then is what comes of a command that took time.
type then func()

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.now = time.Now()
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case *room.Snapshot:
		return m, m.take(msg)
	case then:
		msg()
	case loaded:
		msg.page.take(msg)
		if msg.err != nil {
			m.say("", msg.err)
		}
	case tea.KeyPressMsg:
		return m, m.press(msg)
	case tea.PasteMsg:
		if m.writing != nil {
			return m, m.update(msg)
		}
	case tea.MouseWheelMsg:
		in, _ := m.paneAt(msg.X, msg.Y)
		m.move(in, map[tea.MouseButton]int{tea.MouseWheelUp: -3, tea.MouseWheelDown: 3}[msg.Button])
	case tea.MouseClickMsg:
		return m, m.click(msg.X, msg.Y)
	}
	return m, nil
}

func (m *model) say(said string, err error) {
	m.status, m.isError = said, err != nil
	if err != nil {
		e := m.room.Scope.Explain(err)
		if p, ok := errors.AsType[*fs.PathError](err); ok { // the reason is seen in a line, the path is too long for it
			e.Message = strings.ReplaceAll(e.Message, p.Error(), p.Err.Error())
		}
		m.status = strings.TrimSuffix(strings.TrimPrefix(said+"; "+e.Message+": "+e.Hint, "; "), ": ")
	}
}

// do runs an action beside the program, which may send a text: that is a draft again if it does not work.
func (m *model) do(text *composer, act func(context.Context) (string, error)) tea.Cmd {
	m.say("…", nil)
	return func() tea.Msg {
		said, err := act(m.ctx)
		return then(func() {
			delete(m.unsent, text)
			if partly, ok := errors.AsType[*room.PartlySentError](err); ok {
				text.line.SetValue(partly.Missed)
			}
			if text != nil && err != nil {
				text.addTo(m.drafts)
			}
			m.say(said, err)
		})
	}
}

// take takes in a new snapshot. What is selected stays selected, and what has come to wait for me rings.
func (m *model) take(s *room.Snapshot) tea.Cmd {
	old := m.seen
	m.seen = s
	if old.Version == 0 && s.Version > 0 {
		m.status = ""
	}
	before := m.mail
	m.mail = slices.Concat(s.Unread, s.Owed, s.Read)
	m.pages[0].stay(slices.Index(m.mail, at(before, m.pages[0].at)))
	question, member := at(old.Waiting, m.waiting.at), at(old.Members, m.members.at)
	m.waiting.stay(slices.IndexFunc(s.Waiting, question.Is))
	m.members.stay(slices.IndexFunc(s.Members, func(one teams.Member) bool { return one.Name == member.Name }))
	if len(s.Waiting) == 0 && m.focus == waitingPane {
		m.focus = middlePane
	}
	m.move(waitingPane, 0)
	var cmds []tea.Cmd
	if p := m.page(); p.kind == threadPage && !slices.Equal(before, m.mail) {
		cmds = append(cmds, m.loadThread(p))
	}
	for _, p := range m.pages {
		if p.kind == agentPage {
			cmds = append(cmds, m.loadAgent(p))
		}
	}
	if what := news(old, s); what != "" && old.Version > 1 { // drafts come with the second one
		cmds = append(cmds, tea.Raw(command.Notification("atm", what)))
	}
	return tea.Batch(cmds...)
}

// news is what has come to wait for me: the newest of it.
func news(old, s *room.Snapshot) string {
	isForMe := func(q room.Question) bool {
		why, _ := q.OnlyAtTerminal()
		return q.Mine || why != ""
	}
	for _, q := range s.Waiting {
		isKnown := func(o room.Question) bool { return o.Agent == q.Agent && o.Since.Equal(q.Since) && isForMe(o) }
		if isForMe(q) && !slices.ContainsFunc(old.Waiting, isKnown) {
			return string(q.Agent) + " " + q.Asks()
		}
	}
	was := map[wire.ID]bool{}
	for _, id := range old.Unread {
		was[id] = true
	}
	if slices.ContainsFunc(s.Unread, func(id wire.ID) bool { return !was[id] }) {
		return fmt.Sprint(len(s.Unread), " unread")
	}
	return ""
}

func (m *model) page() *page { return m.pages[len(m.pages)-1] }

// question is the one that is selected or open, or that of the member who is, else the first that I may
// answer; i is its place, -1: there is none.
func (m *model) question() (q room.Question, i int) {
	all, name, isIt := m.seen.Waiting, m.member(), func(q room.Question) bool { return q.Mine }
	switch p := m.page(); {
	case m.focus == waitingPane && len(all) > 0:
		return at(all, m.waiting.at), m.waiting.at
	case m.focus == membersPane || p.kind == agentPage:
		isIt = func(q room.Question) bool { return q.Agent == name }
	case p.kind == questionPage:
		isIt = p.question.Is
	}
	i = slices.IndexFunc(all, isIt)
	return at(all, i), i
}

// aim notes which question `a` answers now, and since when, and selects it: what is selected is shown whole.
func (m *model) aim() {
	q, i := m.question()
	if !q.Is(m.target) {
		m.target, m.targetSince = q, time.Now()
	}
	if i >= 0 {
		m.waiting.at = i
	}
}

// member is whom the selected thing is about; "": nobody.
func (m *model) member() wire.Name {
	switch {
	case m.focus == waitingPane && len(m.seen.Waiting) > 0:
		return at(m.seen.Waiting, m.waiting.at).Agent
	case m.focus == middlePane && (m.page().kind == agentPage || m.page().kind == questionPage):
		return m.page().agent
	}
	return at(m.seen.Members, m.members.at).Name
}

// message is the one that is selected in the middle, or of the thread there; nil: none.
func (m *model) message() *mailbox.Item {
	return cmp.Or(m.page().message, m.item(m.page().at))
}

// item is the i-th message of the page; nil: there is none, or it has just been moved.
func (m *model) item(i int) *mailbox.Item {
	if m.page().kind == mailPage && i < len(m.mail) {
		return at(m.room.Mail(m.mail[i:i+1]), 0)
	}
	return at(m.page().items, i)
}

func (m *model) renderer() *letter.Renderer {
	return &letter.Renderer{Now: m.now, Team: m.seen.Team, Digits: 6, Terminal: true, Whole: true, Bytes: 64 << 10, Lines: 5000}
}

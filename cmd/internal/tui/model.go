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

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/room"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/wire"
)

// pane is a part of the terminal with a selection of its own.
type pane int

const (
	waitingPane pane = iota
	membersPane
	middlePane
	previewPane // is never focused
)

// A cursor is a position in a list: the selected line, and the first line shown.
type cursor struct {
	selected, top int
	isChosen      bool // a person has moved it from the first line: what comes above does not move what is seen
}

// move moves the selection in a list of so many lines.
func (c *cursor) move(by, lines int) {
	c.selected = min(max(c.selected+by, 0), max(lines-1, 0))
	c.isChosen = c.selected > 0 && (c.isChosen || by != 0)
}

// scroll makes the selection one of the lines that are shown, height of them.
func (c *cursor) scroll(lines, height int) {
	c.move(0, lines)
	c.top = min(max(min(c.top, c.selected), c.selected-height+1, 0), max(lines-height, 0))
}

// keep moves the cursor to the new index of what was selected, and what is shown with it if a person has chosen that.
func (c *cursor) keep(index int) {
	if c.isChosen {
		c.top = max(c.top+index-c.selected, 0)
	}
	c.selected = index
}

// follow moves the cursor to the new index of what was selected; -1 means that it is gone.
func (c *cursor) follow(index int) {
	if index >= 0 {
		c.selected = index
	}
}

// nth returns the i-th element of a list, a zero value if there is none.
func nth[T any](list []T, i int) (v T) {
	if i >= 0 && i < len(list) {
		v = list[i]
	}
	return v
}

type model struct {
	ctx  context.Context
	room *room.Room

	now           time.Time
	width, height int
	isColoured    bool
	snapshot      *room.Snapshot
	isRung        bool // it has rung for mail, and no key was pressed since

	rows    map[wire.ID]row // of my mail, those that are shown
	preview *page           // what is selected, beside the list on a wide terminal; nil: it is not shown

	// Where what is drawn.
	left                int // the width of the members, -1: they are not beside the middle
	bodyTop, bodyHeight int
	waitingAt           []int // the index of the question in each line of these

	focus            pane
	waiting, members cursor
	pages            []*page // a stack in the middle: my mail, and what was opened from it

	target      room.Question // the one that `a` answers now
	targetSince time.Time
	again       string        // the only key that answers it, since one has selected it; "": each does
	opened      room.Question // the last one that was shown on a page of its own

	goneAt  time.Time // when the selected message was withdrawn, so that another one is selected
	wasRead []wire.ID // were marked as read by the last key that did something, and can be put back
	status  string    // the result of the last key
	isError bool
	prompt  string         // the question that y confirms
	confirm func() tea.Cmd // what y does; nil: there is no question
	writing *composer
	drafts  map[string]*composer // what was begun and is not sent, by composer.key
}

func newModel(ctx context.Context, r *room.Room) *model {
	s, _ := r.Snapshot()
	title := "mail"
	if s.Me != "" {
		title = "my mail"
	}
	return &model{
		ctx: ctx, room: r, now: time.Now(), snapshot: s, focus: middlePane, status: "looking…",
		pages: []*page{{kind: mailPage, title: title}}, drafts: map[string]*composer{},
		isColoured: command.IsColoured(r.Scope.Given.Out),
	}
}

func (m *model) Init() tea.Cmd { return nil }

// callback applies the result of a command to the model.
type callback func()

func (m *model) Update(msg tea.Msg) (_ tea.Model, cmd tea.Cmd) {
	m.now = time.Now()
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case *room.Snapshot:
		cmd = m.setSnapshot(msg)
	case callback:
		msg()
	case tea.KeyPressMsg:
		cmd = m.handleKey(msg)
	case tea.PasteMsg:
		if m.writing != nil {
			cmd = m.updateComposer(msg)
		}
	case tea.MouseWheelMsg:
		in, _ := m.paneAt(msg.X, msg.Y)
		m.move(in, map[tea.MouseButton]int{tea.MouseWheelUp: -3, tea.MouseWheelDown: 3}[msg.Button])
	case tea.MouseClickMsg:
		cmd = m.click(msg.X, msg.Y)
	}
	m.updateTarget()
	if m.width == 0 {
		return m, cmd
	}
	m.left = m.leftWidth()
	cmd = tea.Batch(cmd, m.updatePreview())
	m.layOut()
	return m, tea.Batch(cmd, m.loadRows())
}

func (m *model) setStatus(text string, err error) {
	m.status, m.isError, m.wasRead = text, err != nil, nil
	if err != nil {
		e := m.room.Scope.Given.Explain(err)
		if p, ok := errors.AsType[*fs.PathError](err); ok { // a path is too long for the line
			e.Message = strings.ReplaceAll(e.Message, p.Error(), p.Err.Error())
		}
		m.status = app.JoinFilled("; ", text, app.JoinFilled(": ", e.Message, e.Hint.String()))
	}
}

// do runs an action in the background.
func (m *model) do(act func(context.Context) (string, error)) tea.Cmd {
	m.setStatus("…", nil)
	return func() tea.Msg {
		result, err := act(m.ctx)
		return callback(func() { m.setStatus(result, err) })
	}
}

// setSnapshot shows a new snapshot. The selections stay, and a new question or message for me rings.
func (m *model) setSnapshot(s *room.Snapshot) tea.Cmd {
	old := m.snapshot
	m.snapshot = s
	if old.Version == 0 && s.Version > 0 {
		m.status = ""
	}
	question, member := nth(old.Waiting, m.waiting.selected), nth(old.Members, m.members.selected)
	m.waiting.follow(slices.IndexFunc(s.Waiting, question.Is))
	m.members.follow(slices.IndexFunc(s.Members, func(one presence.Member) bool { return one.Name == member.Name }))
	list := m.pages[0]
	if i := slices.Index(s.Mail, nth(old.Mail, list.selected)); i >= 0 {
		list.keep(i)
	} else if list.selected < len(old.Mail) {
		m.goneAt = time.Now()
	}
	if len(s.Waiting) == 0 && m.focus == waitingPane {
		m.focus = middlePane
	}
	m.waiting.move(0, len(s.Waiting))
	var cmds []tea.Cmd
	if p := m.page(); p.kind == agentPage {
		cmds = append(cmds, m.loadAgent(p))
	} else if p.kind == threadPage && !slices.Equal(old.Mail, s.Mail) {
		cmds = append(cmds, m.loadThread(p))
	}
	if p := m.preview; p != nil && p.kind == agentPage {
		cmds = append(cmds, m.loadAgent(p))
	}
	text, isMail := notification(old, s)
	if text != "" && old.Version > 1 && !(isMail && m.isRung) { // drafts come with version 2
		m.isRung = isMail
		cmds = append(cmds, tea.Raw(command.Notification("atm", text)))
	}
	return tea.Batch(cmds...)
}

// notification says what waits for me now and did not before, "" if nothing. isMail: it is no question.
func notification(old, s *room.Snapshot) (text string, isMail bool) {
	isForMe := func(q room.Question) bool {
		reason, _ := app.AnsweredElsewhere(&q.Question)
		return q.MayAnswer || reason != ""
	}
	for _, q := range s.Waiting {
		isKnown := func(o room.Question) bool { return o.Agent == q.Agent && o.Since.Equal(q.Since) && isForMe(o) }
		if isForMe(q) && !slices.ContainsFunc(old.Waiting, isKnown) {
			return string(q.Agent) + " " + q.Summary(), false
		}
	}
	if slices.Equal(old.Unread, s.Unread) { // as mostly
		return "", false
	}
	isKnown := map[wire.ID]bool{}
	for _, id := range old.Unread {
		isKnown[id] = true
	}
	for _, q := range s.Waiting { // it has rung
		isKnown[wire.ID(q.ID)] = true
	}
	if slices.ContainsFunc(s.Unread, func(id wire.ID) bool { return !isKnown[id] }) {
		return fmt.Sprint(len(s.Unread), " unread"), true
	}
	return "", false
}

func (m *model) page() *page { return m.pages[len(m.pages)-1] }

// question returns the question that is selected or open, or that of the selected or open member, else the first that I may
// answer, or the first of all. Its index is -1 if there is none.
func (m *model) question() (q room.Question, i int) {
	all, name, matches := m.snapshot.Waiting, m.member(), func(q room.Question) bool { return q.MayAnswer || q.TakesText() }
	p := m.page()
	switch {
	case m.focus == waitingPane:
		return nth(all, m.waiting.selected), m.waiting.selected
	case m.focus == membersPane || p.kind == agentPage:
		matches = func(q room.Question) bool { return q.Agent == name }
	case p.kind == questionPage:
		matches = p.question.Is
	}
	if i = slices.IndexFunc(all, matches); i < 0 && m.focus == middlePane && p.kind != agentPage && p.kind != questionPage && len(all) > 0 {
		i = 0 // that of somebody else, or for a terminal: its line says so
	}
	return nth(all, i), i
}

// updateTarget sets the question that `a` answers now, and selects it, since the selected one is shown in full.
func (m *model) updateTarget() {
	q, i := m.question()
	if !q.Is(m.target) {
		m.target, m.targetSince = q, time.Now()
	}
	m.waiting.follow(i)
}

// member returns the member that the selection is about, "" if there is none.
func (m *model) member() wire.Name {
	switch {
	case m.focus == waitingPane:
		return nth(m.snapshot.Waiting, m.waiting.selected).Agent
	case m.focus == middlePane && m.page().agent != "":
		return m.page().agent
	}
	return nth(m.snapshot.Members, m.members.selected).Name
}

// message returns the message that is selected in the middle, or that the thread there was opened from, else nil.
func (m *model) message() *wire.Item {
	return cmp.Or(m.page().message, m.item(m.page().selected))
}

// item returns the i-th message of the page, nil if there is none or it has just been moved.
func (m *model) item(i int) *wire.Item {
	if mail := m.snapshot.Mail; m.page().kind == mailPage && i < len(mail) {
		return nth(m.room.Mail(mail[i:i+1]), 0)
	}
	return nth(m.page().items, i)
}

func (m *model) renderer() *letter.Renderer {
	return &letter.Renderer{Now: m.now, Team: m.snapshot.Team, Digits: 6, Whole: true, Bytes: 64 << 10, Lines: 5000}
}

package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/room"
	"github.com/agentteammail/atm/cmd/internal/tui/keymap"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// targetDelay is how long a question must have been the target before a key answers it, so that nobody approves one
// that has just taken another's place. A message that has taken another's place waits as long.
const targetDelay = 400 * time.Millisecond

func (m *model) handleKey(k tea.KeyPressMsg) tea.Cmd {
	m.isRung = false // somebody is here
	if m.isError {   // whoever presses the next key has read it
		m.setStatus("", nil)
	}
	if yes := m.confirm; yes != nil {
		m.confirm, m.status = nil, ""
		if k.String() == "y" {
			return yes()
		}
		return nil
	}
	if m.writing != nil {
		return m.handleComposerKey(k)
	}
	page := m.bodyHeight
	for _, step := range []struct {
		key.Binding
		by int
	}{
		{keymap.Up, -1}, {keymap.Down, 1}, {keymap.PageUp, -page}, {keymap.PageDown, page}, {keymap.HalfUp, -page / 2}, {keymap.HalfDown, page / 2},
		{keymap.First, -1 << 30}, {keymap.Last, 1 << 30},
	} {
		if key.Matches(k, step.Binding) {
			m.move(m.focus, step.by)
			return nil
		}
	}
	view := &m.page().view
	switch {
	case m.focus == middlePane && m.page().kind == mailPage && time.Since(m.goneAt) < targetDelay &&
		key.Matches(k, keymap.Open, keymap.Reply, keymap.Ack, keymap.Read, keymap.Undo):
		return m.refuse("the selected message is gone: press %s again", k)
	case key.Matches(k, keymap.Left):
		view.SetXOffset(view.XOffset() - 8)
	case key.Matches(k, keymap.Right):
		view.SetXOffset(view.XOffset() + 8)
	case key.Matches(k, keymap.Next):
		m.switchPane(1)
	case key.Matches(k, keymap.Previous):
		m.switchPane(2)
	case key.Matches(k, keymap.Open):
		return m.open()
	case key.Matches(k, keymap.Back) && len(m.pages) > 1:
		m.pop()
	case key.Matches(k, keymap.NextMail, keymap.PreviousMail) && m.page().kind == threadPage && m.focus == middlePane:
		return m.turnPage(k)
	case key.Matches(k, keymap.Keys):
		if m.page().kind == keysPage {
			m.pop()
		} else {
			m.showKeys()
		}
	case key.Matches(k, keymap.Search):
		return m.startWriting(&composer{kind: searching, title: "search: "}, "")
	case key.Matches(k, keymap.Command):
		return m.startWriting(&composer{kind: commanding, title: ":"}, "")
	case key.Matches(k, keymap.Quit):
		return m.quit()
	case m.page().kind != keysPage: // which hides what these keys act on
		return m.act(k)
	}
	return nil
}

func (m *model) showKeys() { m.push(&page{kind: keysPage, title: "keys", text: keymap.Page()}) }

func (m *model) act(k tea.KeyPressMsg) tea.Cmd {
	switch {
	case key.Matches(k, keymap.Approve, keymap.Reject, keymap.Option):
		return m.answerQuestion(k)
	case key.Matches(k, keymap.Answer, keymap.Reply, keymap.Write):
		return m.startMessage(k)
	case key.Matches(k, keymap.Ack, keymap.Read):
		return m.markMessage(k)
	case key.Matches(k, keymap.ReadAll):
		return m.markAll()
	case key.Matches(k, keymap.Undo):
		return m.undo()
	case key.Matches(k, keymap.Attach):
		if m.again != "" || m.focus == middlePane && m.page().agent == "" { // nobody has selected it
			return m.askConfirmation(fmt.Sprintf("attach to %s's terminal? y", m.member()), m.attach)
		}
		return m.attach()
	case key.Matches(k, keymap.Interrupt):
		name := m.member()
		return m.askConfirmation(fmt.Sprintf("interrupt %s? y", name), func() tea.Cmd {
			return m.do(func(ctx context.Context) (string, error) { return m.room.Interrupt(ctx, name) })
		})
	case key.Matches(k, keymap.StartStop):
		return m.startOrStop()
	}
	return nil
}

func (m *model) startOrStop() tea.Cmd {
	row, _ := m.snapshot.Member(m.member())
	verb, act := "start", m.room.Start
	if row.Running {
		verb, act = "stop", m.room.Stop
	} else if row.Kind == "person" || row.Shared || row.Host != "" {
		return m.refuse("%s cannot be started from here", row.Name)
	} else if !m.room.MayStart(row) {
		return m.refuse("to start %s: %s", row.Name, app.RunCommand(m.room.Scope.Team, row.Name))
	}
	return m.askConfirmation(fmt.Sprintf("%s %s? y", verb, row.Name), func() tea.Cmd {
		return m.do(func(ctx context.Context) (string, error) { return act(ctx, row.Name) })
	})
}

// list returns the cursor of a pane's list, and the list's length, 0 for a text.
func (m *model) list(in pane) (c *cursor, n int) {
	page := m.page()
	switch {
	case in == waitingPane:
		return &m.waiting, len(m.snapshot.Waiting)
	case in == membersPane:
		return &m.members, len(m.snapshot.Members)
	case page.kind == mailPage:
		return &page.cursor, len(m.snapshot.Mail)
	case page.kind == searchPage:
		return &page.cursor, len(page.items)
	}
	return &page.cursor, 0
}

// move moves the selection of a pane, or scrolls its text.
func (m *model) move(in pane, by int) {
	page := m.page()
	if in == previewPane {
		page = m.preview
	}
	if in == previewPane || in == middlePane && page.isText() {
		page.view.SetYOffset(page.view.YOffset() + by)
		return
	}
	c, n := m.list(in)
	c.move(by, n)
}

func (m *model) switchPane(by int) {
	m.again = ""
	m.focus = (m.focus + pane(by)) % 3
	if m.focus == waitingPane && len(m.snapshot.Waiting) == 0 {
		m.focus = pane(by)
	}
}

// click selects the clicked line, and opens it if it was selected already.
func (m *model) click(x, y int) tea.Cmd {
	in, i := m.paneAt(x, y)
	if i < 0 || in == previewPane || m.writing != nil || m.confirm != nil {
		return nil
	}
	m.again = ""
	c, n := m.list(in)
	wasSelected := m.focus == in && c.selected == i
	m.focus = in
	if i < n {
		c.selected = i
		if wasSelected {
			return m.open()
		}
	}
	return nil
}

func (m *model) refuse(format string, args ...any) tea.Cmd {
	m.status, m.isError = fmt.Sprintf(format, args...), true
	return nil
}

// answerQuestion approves or rejects the question, or chooses an option by its number.
func (m *model) answerQuestion(k tea.KeyPressMsg) tea.Cmd {
	q, i := m.question()
	pressed := k.String()
	switch {
	case i < 0 && (m.focus == membersPane || m.page().kind == agentPage):
		return m.refuse("%s is not asking anything", m.member())
	case i < 0 && m.page().kind == questionPage:
		return m.refuse("%s is no longer asking that: Esc", m.member())
	case i < 0:
		return m.refuse("nothing is waiting for you")
	case q.TakesText():
		return m.refuse("%s asks for words: r", q.Agent)
	case q.IsMail() && !key.Matches(k, keymap.Option):
		return m.refuse("press the number of an answer, or r for another one")
	case q.ID == "":
		return m.refuse("only a person at its terminal can answer %s: t", q.Agent)
	case key.Matches(k, keymap.Reject):
		about := fmt.Sprint("reject ", q.Agent, q.ID, q.Since)
		return m.startWriting(&composer{kind: rejecting, key: about, title: fmt.Sprintf("reject, and tell %s why", q.Agent), question: q}, "")
	case !m.isSelected(q):
		m.focus, m.waiting.selected = waitingPane, i
		return m.askAgain(q, pressed)
	case !q.Is(m.target) || time.Since(m.targetSince) < targetDelay:
		return m.refuse("read what %s asks, and press %s again", q.Agent, pressed)
	}
	if !m.isShown(q) {
		m.focus = waitingPane
		return m.refuse("Enter shows all of it, then %s answers it", pressed)
	} else if m.again != "" && m.again != pressed {
		return m.askAgain(q, pressed)
	}
	option := ""
	if n, err := strconv.Atoi(pressed); err == nil {
		if option = nth(q.Options, n-1).ID; option == "" {
			return m.refuse("no option %d", n)
		}
	}
	m.again = ""
	return m.do(func(ctx context.Context) (string, error) {
		return m.room.Decide(ctx, q, ask.Answer{Option: option})
	})
}

// askAgain lets only that key answer a question that a key has selected, until the person selects something: 1 and 2 are
// panes elsewhere.
func (m *model) askAgain(q room.Question, pressed string) tea.Cmd {
	m.again, m.targetSince = pressed, time.Now()
	if !m.isShown(q) {
		return m.refuse("%s asks this; Enter shows all of it, then %s answers it", q.Agent, pressed)
	}
	return m.refuse("%s asks this; %s again answers it", q.Agent, pressed)
}

// isShown reports whether all of the selected question is shown, or was on a page of its own.
func (m *model) isShown(q room.Question) bool {
	_, isWhole := m.selectedQuestion()
	return isWhole || q.Is(m.opened)
}

// isSelected reports whether the question is what is selected or open: it, or its member.
func (m *model) isSelected(q room.Question) bool {
	switch p := m.page(); {
	case m.focus != middlePane:
		return true
	case p.kind == questionPage:
		return p.question.Is(q)
	default:
		return p.kind == agentPage && p.agent == q.Agent
	}
}

// startMessage starts a reply to the message, an answer to the question, or a message to the member.
func (m *model) startMessage(k tea.KeyPressMsg) (cmd tea.Cmd) {
	it, isNew := m.message(), key.Matches(k, keymap.Write)
	q, i := m.question()
	switch {
	case it != nil && m.focus == middlePane && !isNew:
		title := fmt.Sprintf("reply to %s: %s", it.From.Agent, letter.Clip(letter.Escape(it.Title()), 60))
		cmd = m.startWriting(&composer{kind: replying, key: "reply " + string(it.ID), title: title, parent: it.Message}, "")
	case i >= 0 && (q.TakesText() || q.IsMail() && m.isSelected(q)) && !isNew:
		about := fmt.Sprint("answer ", q.Agent, q.Since)
		cmd = m.startWriting(&composer{kind: answering, key: about, title: fmt.Sprintf("answer %s", q.Agent), question: q}, "")
	case key.Matches(k, keymap.Reply):
		return m.refuse("no message is selected")
	default:
		to := string(m.member())
		if it != nil && m.focus == middlePane {
			to = m.renderer().Who(it.From)
		}
		cmd = m.startWriting(&composer{kind: sending, key: "send " + to, title: "to: "}, to)
	}
	return cmd
}

// markMessage acknowledges the message or marks it as read, and moves to the next one.
func (m *model) markMessage(k tea.KeyPressMsg) tea.Cmd {
	it, isAck := m.message(), key.Matches(k, keymap.Ack)
	if it == nil || m.focus != middlePane {
		return m.refuse("no message is selected")
	} else if it.State == "" {
		return m.refuse("that message is not to you")
	}
	if isAck && !it.RequiresAck { // an ack is mail, and cannot be undone
		return m.askConfirmation(fmt.Sprintf("%s asked for no ack; send one? y", it.From.Agent), func() tea.Cmd { return m.mark(it, m.room.Ack) })
	} else if isAck {
		return m.mark(it, m.room.Ack)
	}
	cmd := m.mark(it, func(ctx context.Context, id wire.ID) (string, error) { return m.room.MarkRead(ctx, id) })
	return func() tea.Msg {
		done := cmd().(callback)
		return callback(func() {
			if done(); !m.isError {
				m.status, m.wasRead = "read: "+letter.Clip(it.Title(), 40)+"; u puts it back", []wire.ID{it.ID}
			}
		})
	}
}

func (m *model) mark(it *wire.Item, act func(context.Context, wire.ID) (string, error)) tea.Cmd {
	if list := m.pages[0]; nth(m.snapshot.Mail, list.selected) == it.ID {
		list.move(1, len(m.snapshot.Mail))
	}
	return m.do(func(ctx context.Context) (string, error) { return act(ctx, it.ID) })
}

// markAll marks as read what is unread in the list, but for what wants an ack.
func (m *model) markAll() tea.Cmd {
	p := m.page()
	var ids []wire.ID
	if p.kind == mailPage {
		ids = m.snapshot.Mail[:m.snapshot.Open]
	} else if p.kind == searchPage {
		for _, it := range p.items {
			ids = append(ids, it.ID)
		}
	}
	if m.focus != middlePane || len(ids) == 0 || m.snapshot.Me == "" {
		return m.refuse("no list of your mail is selected")
	}
	return m.askConfirmation("mark all of this list as read, but for what wants an ack? y", func() tea.Cmd {
		m.setStatus("…", nil)
		return func() tea.Msg {
			var read []wire.ID
			for _, it := range m.room.Mail(ids) {
				if room.IsPlain(it) {
					read = append(read, it.ID)
				}
			}
			_, err := m.room.MarkRead(m.ctx, read...)
			return callback(func() {
				if m.setStatus("", err); err == nil {
					m.status, m.wasRead = "read: "+letter.Many(len(read), "message")+"; u puts them back", read
				}
			})
		}
	})
}

// undo puts back what was last marked as read, or else withdraws the message.
func (m *model) undo() tea.Cmd {
	ids, it := m.wasRead, m.message()
	switch {
	case len(ids) > 0:
		m.wasRead = nil
		return m.do(func(ctx context.Context) (string, error) { return m.room.MarkUnread(ctx, ids...) })
	case it == nil || m.focus != middlePane || !m.isMine(it):
		return m.refuse("nothing was marked as read, and no message of yours is selected")
	case !m.room.MayWithdraw(it):
		return m.refuse("nobody here has it unread: atm withdraw %s", it.ID.Short(6))
	}
	return m.askConfirmation("withdraw it? who has read it gets a notice: y", func() tea.Cmd {
		return m.do(func(ctx context.Context) (string, error) { return m.room.Withdraw(ctx, it.ID) })
	})
}

// isMine reports whether I sent a message.
func (m *model) isMine(it *wire.Item) bool {
	me := m.snapshot.Me
	return me != "" && it.From == wire.Address{Agent: me, Team: m.snapshot.Team}
}

// attach shows the member's terminal in place of this view, until the person detaches.
func (m *model) attach() tea.Cmd {
	atm, err := app.Companion("atm")
	if err != nil {
		return m.refuse("atm is neither next to this program nor on PATH")
	}
	words := []string{"attach", string(m.member()), "--root", m.room.Scope.Root.Path, "--team", string(m.snapshot.Team)}
	if m.snapshot.Me != "" {
		words = append(words, "--as", string(m.snapshot.Me))
	}
	var stderr bytes.Buffer
	c := exec.Command(atm, words...)
	c.Stderr = io.MultiWriter(m.room.Scope.Given.Err, &stderr)
	return tea.ExecProcess(c, func(err error) tea.Msg {
		if err != nil {
			lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
			err = errors.New(letter.Escape(strings.Join(lines, "; ")))
		}
		return callback(func() {
			m.setStatus("", err)
		})
	})
}

func (m *model) askConfirmation(question string, yes func() tea.Cmd) tea.Cmd {
	m.confirm, m.prompt = yes, question
	return nil
}

func (m *model) quit() tea.Cmd {
	n := len(m.drafts)
	if n == 0 {
		return tea.Quit
	}
	return m.askConfirmation(letter.Many(n, "draft")+" not sent; leave? y", func() tea.Cmd { return tea.Quit })
}

// command does what is typed after a colon. A word that it does not know does nothing.
func (m *model) command(word string) tea.Cmd {
	_, isMember := m.snapshot.Member(wire.Name(word))
	switch word {
	case "":
	case "q", "q!", "qa", "quit", "exit":
		return m.quit()
	case "h", "help", "keys":
		m.showKeys()
	case "mail":
		m.pages, m.focus = m.pages[:1], middlePane
	default:
		if !isMember {
			return m.refuse("no member is called %s: ? shows the keys", letter.Name(word, 30))
		}
		p := &page{kind: agentPage, agent: wire.Name(word)}
		m.push(p)
		return m.loadAgent(p)
	}
	return nil
}

func (m *model) search(words []string) tea.Cmd {
	if len(words) == 0 {
		return nil
	}
	p := &page{kind: searchPage, title: "search: " + strings.Join(words, " ")}
	m.push(p)
	m.setStatus("…", nil)
	return m.load(p, func() ([]*wire.Item, error) { return command.SearchWords(m.ctx, m.room.Scope, words) })
}

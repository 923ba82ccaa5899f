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

	tea "charm.land/bubbletea/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/room"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

const keysText = `Tab          the next pane
j k, arrows  move; g G, Home End, PgUp PgDn
             Ctrl-D Ctrl-U half a page
h l, arrows  scroll a wide screen
Enter, click open the selection; Esc back
/            search
:NAME        open a member; also :mail :q
q            leave

The selected or open question:
a            approve
1 to 9       answer with that option
x            reject, and say why
r            answer in words
Elsewhere a and 1 to 9 select it first.

The selected or open message:
r  reply     e  the same in $EDITOR
c            acknowledge
Space        mark as read; opening does not
u            put the last one back

The selected or open member:
s  write     e  the same in $EDITOR
t            attach; Ctrl-\ d comes back
i            interrupt its turn

While you write: Enter begins a line,
Ctrl-S sends, Ctrl-E opens $EDITOR, Tab
goes to the recipients, Esc keeps the
draft.`

// targetDelay is how long a question must have been the target before a key answers it, so that nobody approves one
// that has just taken another's place.
const targetDelay = 400 * time.Millisecond

func (m *model) handleKey(k tea.KeyPressMsg) tea.Cmd {
	key := k.String()
	m.isRung = false // somebody is here
	if m.isError {   // whoever presses the next key has read it
		m.setStatus("", nil)
	}
	if yes := m.confirm; yes != nil {
		m.confirm, m.status = nil, ""
		if key == "y" {
			return yes()
		}
		return nil
	}
	if m.writing != nil {
		return m.handleComposerKey(k)
	}
	switch key {
	case "up", "k", "down", "j", "pgup", "ctrl+b", "pgdown", "ctrl+f", "ctrl+u", "ctrl+d", "home", "g", "end", "G":
		page := m.bodyHeight
		m.move(m.focus, map[string]int{
			"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -page, "ctrl+b": -page, "pgdown": page, "ctrl+f": page,
			"ctrl+u": -page / 2, "ctrl+d": page / 2, "home": -1 << 30, "g": -1 << 30, "end": 1 << 30, "G": 1 << 30,
		}[key])
	case "left", "h", "right", "l":
		view := &m.page().view
		view.SetXOffset(view.XOffset() + map[string]int{"left": -8, "h": -8, "right": 8, "l": 8}[key])
	case "tab", "shift+tab":
		m.switchPane(map[string]int{"tab": 1, "shift+tab": 2}[key])
	case "enter":
		return m.open()
	case "esc":
		m.pop()
	case "?":
		if m.page().kind == keysPage {
			m.pop()
		} else {
			m.showKeys()
		}
	case "/":
		return m.startWriting(&composer{kind: searching, title: "search: "}, "")
	case ":":
		return m.startWriting(&composer{kind: commanding, title: ":"}, "")
	case "q", "ctrl+c":
		return m.quit()
	default:
		if m.page().kind != keysPage { // which hides what these keys act on
			return m.act(key)
		}
	}
	return nil
}

func (m *model) showKeys() { m.push(&page{kind: keysPage, title: "keys", text: keysText}) }

func (m *model) act(key string) tea.Cmd {
	switch key {
	case "a", "x", "1", "2", "3", "4", "5", "6", "7", "8", "9":
		return m.answerQuestion(key)
	case "r", "s", "e":
		return m.startMessage(key)
	case "c", "space":
		return m.markMessage(key)
	case "u":
		return m.undoRead()
	case "t":
		if m.again != "" || m.focus == middlePane && m.page().agent == "" { // nobody has selected it
			return m.askConfirmation(fmt.Sprintf("attach to %s's terminal? y", m.member()), m.attach)
		}
		return m.attach()
	case "i":
		name := m.member()
		return m.askConfirmation(fmt.Sprintf("interrupt %s? y", name), func() tea.Cmd {
			return m.do(func(ctx context.Context) (string, error) { return m.room.Interrupt(ctx, name) })
		})
	}
	return nil
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
func (m *model) answerQuestion(key string) tea.Cmd {
	q, i := m.question()
	switch {
	case i < 0 && (m.focus == membersPane || m.page().kind == agentPage):
		return m.refuse("%s is not asking anything", m.member())
	case i < 0 && m.page().kind == questionPage:
		return m.refuse("%s is no longer asking that: Esc", m.member())
	case i < 0:
		return m.refuse("nothing is waiting for you")
	case q.TakesText():
		return m.refuse("%s asks for words: r", q.Agent)
	case q.IsMail() && (key == "a" || key == "x"):
		return m.refuse("press the number of an answer, or r for another one")
	case q.ID == "":
		return m.refuse("only a person at its terminal can answer %s: t", q.Agent)
	case key == "x":
		about := fmt.Sprint("reject ", q.Agent, q.ID, q.Since)
		return m.startWriting(&composer{kind: rejecting, key: about, title: fmt.Sprintf("reject, and tell %s why", q.Agent), question: q}, "")
	case !m.isSelected(q):
		m.focus, m.waiting.selected = waitingPane, i
		return m.askAgain(q, key)
	case !q.Is(m.target) || time.Since(m.targetSince) < targetDelay:
		return m.refuse("read what %s asks, and press %s again", q.Agent, key)
	}
	if _, isWhole := m.selectedQuestion(); !isWhole && !q.Is(m.opened) {
		m.focus = waitingPane
		return m.refuse("open it first: Enter")
	} else if m.again != "" && m.again != key {
		return m.askAgain(q, key)
	}
	option := ""
	if n, err := strconv.Atoi(key); err == nil {
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
func (m *model) askAgain(q room.Question, key string) tea.Cmd {
	m.again, m.targetSince = key, time.Now()
	return m.refuse("%s asks this; %s again answers it", q.Agent, key)
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
func (m *model) startMessage(key string) (cmd tea.Cmd) {
	it := m.message()
	q, i := m.question()
	switch {
	case it != nil && m.focus == middlePane && key != "s":
		title := fmt.Sprintf("reply to %s: %s", it.From.Agent, letter.Clip(letter.Escape(it.Title()), 60))
		cmd = m.startWriting(&composer{kind: replying, key: "reply " + string(it.ID), title: title, parent: it.Message}, "")
	case i >= 0 && (q.TakesText() || q.IsMail() && m.isSelected(q)) && key != "s":
		about := fmt.Sprint("answer ", q.Agent, q.Since)
		cmd = m.startWriting(&composer{kind: answering, key: about, title: fmt.Sprintf("answer %s", q.Agent), question: q}, "")
	case key == "r":
		return m.refuse("no message is selected")
	default:
		to := string(m.member())
		if it != nil && m.focus == middlePane {
			to = m.renderer().Who(it.From)
		}
		cmd = m.startWriting(&composer{kind: sending, key: "send " + to, title: "to: "}, to)
	}
	if key == "e" && m.writing != nil {
		return m.edit()
	}
	return cmd
}

// markMessage acknowledges the message or marks it as read, and moves to the next one.
func (m *model) markMessage(key string) tea.Cmd {
	it := m.message()
	if it == nil || m.focus != middlePane {
		return m.refuse("no message is selected")
	} else if it.State == "" {
		return m.refuse("that message is not to you")
	}
	if key == "c" && !it.RequiresAck { // an ack is mail, and cannot be undone
		return m.askConfirmation(fmt.Sprintf("%s asked for no ack; send one? y", it.From.Agent), func() tea.Cmd { return m.mark(it, m.room.Ack) })
	} else if key == "c" {
		return m.mark(it, m.room.Ack)
	}
	cmd := m.mark(it, m.room.MarkRead)
	return func() tea.Msg {
		done := cmd().(callback)
		return callback(func() {
			if done(); !m.isError {
				m.status, m.wasRead = "read: "+letter.Clip(it.Title(), 40)+"; u puts it back", it.ID
			}
		})
	}
}

func (m *model) mark(it *maildir.Item, act func(context.Context, wire.ID) (string, error)) tea.Cmd {
	if m.page().kind == mailPage {
		m.move(middlePane, 1)
	}
	return m.do(func(ctx context.Context) (string, error) { return act(ctx, it.ID) })
}

// undoRead puts back what was last marked as read.
func (m *model) undoRead() tea.Cmd {
	id := m.wasRead
	if id == "" {
		return m.refuse("nothing was marked as read")
	}
	m.wasRead = ""
	return m.do(func(ctx context.Context) (string, error) { return m.room.MarkUnread(ctx, id) })
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
	return m.load(p, func() ([]*maildir.Item, error) { return command.SearchWords(m.ctx, m.room.Scope, words) })
}

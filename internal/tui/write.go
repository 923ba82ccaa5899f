package tui

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"charm.land/bubbles/v2/textarea"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/agentteammail/atm/internal/room"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
)

type writing int

const (
	replying writing = iota
	sending
	rejecting
	searching
)

// A composer is a text that is written in place.
type composer struct {
	kind     writing
	key      string // of its draft
	to       string // of sending: whom it goes to at first
	parent   *mailbox.Item
	question room.Question

	line textinput.Model // the recipients, or what is searched for
	text textarea.Model
}

// A draft is what was written and not sent.
type draft struct{ to, text string }

func (m *model) startWriting(c *composer) tea.Cmd {
	if m.seen.Me == "" && c.kind != searching {
		return m.nothing("nobody has said who you are: begin again with --as NAME")
	}
	d := m.drafts[c.key]
	c.line, c.text = textinput.New(), textarea.New()
	c.line.Prompt, c.text.Prompt, c.text.ShowLineNumbers, c.text.CharLimit, c.text.MaxHeight = "", "", false, 0, 0
	c.line.SetStyles(textinput.Styles{}) // the terminal's own colours, be it light or dark
	c.text.SetStyles(textarea.Styles{})
	c.line.SetValue(cmp.Or(d.to, c.to))
	c.text.SetValue(d.text)
	m.writing, m.status = c, ""
	c.goTo(c.kind == searching || c.kind == sending && c.line.Value() == "")
	return nil
}

// goTo has the next keys go to the line, or to the text.
func (c *composer) goTo(line bool) {
	if c.line.Blur(); line {
		c.text.Blur()
		c.line.Focus() // the cursor does not blink
	} else {
		c.text.Focus()
	}
}

func (c *composer) update(msg tea.Msg) (cmd tea.Cmd) {
	if c.line.Focused() {
		c.line, cmd = c.line.Update(msg)
	} else {
		c.text, cmd = c.text.Update(msg)
	}
	return cmd
}

func (m *model) write(k tea.KeyPressMsg) tea.Cmd {
	c := m.writing
	switch key := k.String(); {
	case key == "esc" || key == "ctrl+c":
		m.keepDraft()
		m.writing = nil
	case key == "enter" && c.kind == searching:
		m.writing = nil
		if words := strings.TrimSpace(c.line.Value()); words != "" {
			return m.search(words)
		}
	case c.kind == searching:
		return c.update(k)
	case key == "ctrl+s":
		return m.finish()
	case key == "ctrl+e":
		return m.edit()
	case c.kind == sending && (key == "tab" || key == "shift+tab" || key == "enter" && c.line.Focused()):
		c.goTo(!c.line.Focused())
	default:
		return c.update(k)
	}
	return nil
}

// keepDraft keeps what is written, until it is sent.
func (m *model) keepDraft() {
	c := m.writing
	delete(m.drafts, c.key)
	if strings.TrimSpace(c.text.Value()) != "" {
		m.drafts[c.key] = draft{c.line.Value(), c.text.Value()}
		m.status, m.isError = "the draft is kept", false
	}
}

// finish sends the text. The draft is kept until that has worked.
func (m *model) finish() tea.Cmd {
	c := m.writing
	m.keepDraft()
	m.writing = nil
	text, to := c.text.Value(), c.line.Value()
	return m.do(c.key, func(ctx context.Context) (string, error) {
		switch c.kind {
		case replying:
			return m.room.Reply(ctx, c.parent.Message, text)
		case rejecting:
			return m.room.Reject(ctx, c.question, strings.TrimSpace(text))
		}
		return m.room.Send(ctx, to, text)
	})
}

func (c *composer) title() string {
	switch c.kind {
	case replying:
		return fmt.Sprintf("reply to %s: %s", c.parent.From.Agent, letter.Clip(letter.Escape(c.parent.Title()), 60))
	case rejecting:
		return fmt.Sprintf("reject, and tell %s why", c.question.Agent)
	case sending:
		return "to: "
	}
	return "search: "
}

// edited is what somebody wrote in their editor.
type edited struct {
	writing *composer
	file    string
	err     error
}

// edit goes on with the text in $EDITOR, in place of this view. What is saved there comes back to be sent.
func (m *model) edit() tea.Cmd {
	c := m.writing
	dir, err := os.MkdirTemp("", "atm-tui-")
	file := filepath.Join(dir, "message.txt")
	if err = cmp.Or(err, os.WriteFile(file, []byte(c.text.Value()), 0o600)); err != nil {
		m.say("", err)
		return nil
	}
	words := append(strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")), file)
	return tea.ExecProcess(exec.Command(words[0], words[1:]...), func(err error) tea.Msg { return edited{c, file, err} })
}

func (m *model) takeEdited(e edited) tea.Cmd {
	text, err := os.ReadFile(e.file)
	os.RemoveAll(filepath.Dir(e.file))
	if err == nil { // also what an editor has saved that failed in the end
		e.writing.text.SetValue(strings.TrimSuffix(string(text), "\n"))
	}
	m.writing = e.writing
	m.say("", cmp.Or(e.err, err))
	return nil
}

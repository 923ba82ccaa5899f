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

	whole string // the text as a draft or an editor has it
	shown string // what the text area makes of it: spaces of tabs, and so many lines
}

const maxLines = 10_000 // that a text area holds

func (c *composer) setText(text string) {
	c.text.SetValue(text)
	c.whole, c.shown = text, c.text.Value()
}

// value is the text that is sent: as it came, unless it was changed here.
func (c *composer) value() string {
	if text := c.text.Value(); text != c.shown {
		return text
	}
	return c.whole
}

func lineCount(text string) int { return 1 + strings.Count(text, "\n") + strings.Count(text, "\r") }

// A draft is what was written and not sent.
type draft struct{ to, text string }

func (m *model) startWriting(c *composer) tea.Cmd {
	if m.seen.Me == "" && c.kind != searching {
		return m.nothing("nobody has said who you are: begin again with --as NAME")
	}
	d := m.drafts[c.key]
	delete(m.drafts, c.key)
	c.line, c.text = textinput.New(), textarea.New()
	c.line.Prompt, c.text.Prompt, c.text.ShowLineNumbers, c.text.CharLimit, c.text.MaxHeight = "", "", false, 0, 0
	c.line.SetStyles(textinput.Styles{}) // the terminal's own colours, be it light or dark
	c.text.SetStyles(textarea.Styles{})
	c.line.SetValue(cmp.Or(d.to, c.to))
	c.setText(d.text)
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

func (m *model) update(msg tea.Msg) (cmd tea.Cmd) {
	c := m.writing
	if c.line.Focused() {
		c.line, cmd = c.line.Update(msg)
		return cmd
	}
	if paste, ok := msg.(tea.PasteMsg); ok && c.text.LineCount()+lineCount(paste.Content) > maxLines {
		return m.nothing("too long for here: Ctrl-E")
	}
	c.text, cmd = c.text.Update(msg)
	if lineCount(c.whole) > maxLines && c.text.Value() != c.shown {
		c.setText(c.whole)
		return m.nothing("too long to be changed here: Ctrl-E")
	}
	return cmd
}

func (m *model) write(k tea.KeyPressMsg) tea.Cmd {
	c := m.writing
	switch key := k.String(); {
	case key == "esc" || key == "ctrl+c":
		m.writing = nil
		if c.kind != searching && m.keep(c.draft()) {
			m.status, m.isError = "the draft is kept", false
		}
	case key == "enter" && c.kind == searching:
		m.writing = nil
		if words := strings.TrimSpace(c.line.Value()); words != "" {
			return m.search(words)
		}
	case c.kind == searching:
		return m.update(k)
	case key == "ctrl+s":
		return m.finish()
	case key == "ctrl+e":
		return m.edit()
	case c.kind == sending && (key == "tab" || key == "shift+tab" || key == "enter" && c.line.Focused()):
		c.goTo(!c.line.Focused())
	default:
		return m.update(k)
	}
	return nil
}

// draft is what is written, and what it is for: of a message, the recipients that it has now.
func (c *composer) draft() (key string, d draft) {
	if d = (draft{c.line.Value(), c.value()}); c.kind == sending {
		return "send " + d.to, d
	}
	return c.key, d
}

// keep keeps a draft if it says something. What is written for the same already is not replaced.
func (m *model) keep(key string, d draft) bool {
	if strings.TrimSpace(d.text) == "" {
		return false
	}
	if old, ok := m.drafts[key]; ok {
		d.text = old.text + "\n" + d.text
	}
	m.drafts[key] = d
	return true
}

// finish sends the text, which is a draft again if that does not work.
func (m *model) finish() tea.Cmd {
	c := m.writing
	m.writing = nil
	m.unsent[c] = true
	text, to := c.value(), c.line.Value()
	return m.do(c, func(ctx context.Context) (string, error) {
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
	if err == nil {
		err = os.WriteFile(file, []byte(c.value()), 0o600)
	}
	if err != nil {
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
		e.writing.setText(strings.TrimSuffix(string(text), "\n"))
	}
	m.writing = e.writing
	m.say("", cmp.Or(e.err, err))
	return nil
}

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

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/room"
	"github.com/agentteammail/atm/wire"
)

type writing int

const (
	replying writing = iota
	sending
	rejecting
	searching
)

type composer struct {
	kind     writing
	title    string
	key      string // of its draft
	to       string // of sending: whom it goes to at first
	parent   *wire.Message
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

func (m *model) startWriting(c *composer) tea.Cmd {
	if m.seen.Me == "" && c.kind != searching {
		return m.nothing("nobody has said who you are: begin again with --as NAME")
	}
	key := c.key
	if c.kind == sending && m.drafts[key] == "" {
		key = m.homelessDraft(key)
		c.to = strings.TrimPrefix(key, "send ")
	}
	c.line, c.text = textinput.New(), textarea.New()
	c.line.Prompt, c.text.Prompt, c.text.ShowLineNumbers, c.text.CharLimit, c.text.MaxHeight = "", "", false, 0, 0
	c.line.SetStyles(textinput.Styles{}) // the terminal's own colours, be it light or dark
	c.text.SetStyles(textarea.Styles{})
	c.line.SetValue(c.to)
	c.setText(m.drafts[key])
	delete(m.drafts, key)
	m.writing, m.status = c, ""
	c.goTo(c.kind == searching || c.kind == sending && c.to == "")
	return nil
}

// homelessDraft is the key of a message for several, or for a name that is nobody's: it is found at any member. Else
// it is the key that was asked for.
func (m *model) homelessDraft(key string) string {
	for other := range m.drafts {
		to, isSent := strings.CutPrefix(other, "send ")
		if _, isMember := m.seen.Member(wire.Name(to)); isSent && !isMember {
			return other
		}
	}
	return key
}

// goTo has the next keys go to the line, or to the text.
func (c *composer) goTo(line bool) {
	c.line.Blur()
	if line {
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
		if c.addTo(m.drafts) {
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

// addTo adds what is written to drafts, if it says something, under what it is for: of a message, the recipients that
// it has now. What is written for the same already is not replaced.
func (c *composer) addTo(drafts map[string]string) bool {
	key, text := c.key, c.value()
	if c.kind == sending {
		key = "send " + c.line.Value()
	}
	if c.kind == searching || strings.TrimSpace(text) == "" {
		return false
	}
	drafts[key] = strings.TrimPrefix(drafts[key]+"\n"+text, "\n")
	return true
}

func (m *model) finish() tea.Cmd {
	c := m.writing
	m.writing = nil
	m.unsent[c] = true
	text, to := c.value(), c.line.Value()
	return m.do(c, func(ctx context.Context) (string, error) {
		if c.kind == rejecting {
			return m.room.Decide(ctx, c.question, command.Answer{IsDeny: true, Reason: strings.TrimSpace(text)})
		}
		return m.room.Send(ctx, to, c.parent, text)
	})
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
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	return tea.ExecProcess(exec.Command("sh", "-c", editor+` "$1"`, "sh", file), func(err error) tea.Msg {
		if err != nil {
			err = fmt.Errorf("%s: %w; $EDITOR names another one", editor, err)
		}
		text, err2 := os.ReadFile(file)
		os.RemoveAll(dir)
		return then(func() {
			if text != nil { // also what an editor has saved that failed in the end
				c.setText(strings.TrimSuffix(string(text), "\n"))
			}
			m.writing = c
			m.say("", cmp.Or(err, err2))
		})
	})
}

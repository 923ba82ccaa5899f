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
	to       string // the recipients at first
	parent   *wire.Message
	question room.Question

	line textinput.Model // the recipients, or the words to search for
	text textarea.Model

	original string // the text from a draft or an editor
	shown    string // what the text area made of it: it replaces tabs, and cuts off lines
}

const maxLines = 10_000 // of a text area

func (c *composer) setText(text string) {
	c.text.SetValue(text)
	c.original, c.shown = text, c.text.Value()
}

// value returns the text to send: the original, unless it was changed here.
func (c *composer) value() string {
	if text := c.text.Value(); text != c.shown {
		return text
	}
	return c.original
}

func lineCount(text string) int { return 1 + strings.Count(text, "\n") + strings.Count(text, "\r") }

func (m *model) startWriting(c *composer) tea.Cmd {
	if m.snapshot.Me == "" && c.kind != searching {
		return m.refuse("nobody has said who you are: start again with --as NAME")
	}
	key := c.key
	if c.kind == sending && m.drafts[key] == "" {
		key = m.orphanDraft(key)
		c.to = strings.TrimPrefix(key, "send ")
	}
	c.line, c.text = textinput.New(), textarea.New()
	c.line.Prompt, c.text.Prompt, c.text.ShowLineNumbers, c.text.CharLimit, c.text.MaxHeight = "", "", false, 0, 0
	c.line.SetStyles(textinput.Styles{}) // the terminal's own colours, whether it is light or dark
	c.text.SetStyles(textarea.Styles{})
	c.line.SetValue(c.to)
	c.setText(m.drafts[key])
	delete(m.drafts, key)
	m.writing, m.status = c, ""
	c.focus(c.kind == searching)
	return nil
}

// orphanDraft returns the key of a draft for several recipients or for an unknown name, which comes up at any member.
// If there is none, it returns the given key.
func (m *model) orphanDraft(key string) string {
	for other := range m.drafts {
		to, isSent := strings.CutPrefix(other, "send ")
		if _, isMember := m.snapshot.Member(wire.Name(to)); isSent && !isMember {
			return other
		}
	}
	return key
}

// focus makes the next keys go to the line, or to the text.
func (c *composer) focus(line bool) {
	c.line.Blur()
	if line {
		c.text.Blur()
		c.line.Focus() // the cursor does not blink
	} else {
		c.text.Focus()
	}
}

func (m *model) updateComposer(msg tea.Msg) (cmd tea.Cmd) {
	c := m.writing
	if c.line.Focused() {
		c.line, cmd = c.line.Update(msg)
		return cmd
	}
	if paste, ok := msg.(tea.PasteMsg); ok && c.text.LineCount()+lineCount(paste.Content) > maxLines {
		return m.refuse("too long for this box: Ctrl-E")
	}
	c.text, cmd = c.text.Update(msg)
	if lineCount(c.original) > maxLines && c.text.Value() != c.shown {
		c.setText(c.original)
		return m.refuse("too long to edit here: Ctrl-E")
	}
	return cmd
}

func (m *model) handleComposerKey(k tea.KeyPressMsg) tea.Cmd {
	c := m.writing
	key := k.String()
	switch {
	case key == "esc" || key == "ctrl+c":
		m.writing = nil
		if c.saveDraft(m.drafts) {
			m.status, m.isError = "draft kept", false
		}
	case key == "enter" && c.kind == searching:
		m.writing = nil
		if words := strings.TrimSpace(c.line.Value()); words != "" {
			return m.search(words)
		}
	case c.kind == searching:
		return m.updateComposer(k)
	case key == "ctrl+s":
		return m.send()
	case key == "ctrl+e":
		return m.edit()
	case c.kind == sending && (key == "tab" || key == "shift+tab" || key == "enter" && c.line.Focused()):
		c.focus(!c.line.Focused())
	default:
		return m.updateComposer(k)
	}
	return nil
}

// saveDraft adds the text to the drafts, unless it is blank. The key of a message has its present recipients. A draft
// with the same key is kept before it.
func (c *composer) saveDraft(drafts map[string]string) bool {
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

func (m *model) send() tea.Cmd {
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

// edit opens the text in $EDITOR, in place of this view, and takes it back as it was saved.
func (m *model) edit() tea.Cmd {
	c := m.writing
	dir, err := os.MkdirTemp("", "atm-tui-")
	file := filepath.Join(dir, "message.txt")
	if err == nil {
		err = os.WriteFile(file, []byte(c.value()), 0o600)
	}
	if err != nil {
		m.setStatus("", err)
		return nil
	}
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	return tea.ExecProcess(exec.Command("sh", "-c", editor+` "$1"`, "sh", file), func(err error) tea.Msg {
		if err != nil {
			err = fmt.Errorf("%s: %w; set $EDITOR to another editor", editor, err)
		}
		text, err2 := os.ReadFile(file)
		os.RemoveAll(dir)
		return callback(func() {
			if text != nil { // an editor may have saved it before it failed
				c.setText(strings.TrimSuffix(string(text), "\n"))
			}
			m.writing = c
			m.setStatus("", cmp.Or(err, err2))
		})
	})
}

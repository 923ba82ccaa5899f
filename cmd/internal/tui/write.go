package tui

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/room"
	"github.com/agentteammail/atm/cmd/internal/tui/keymap"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

type writing int

const (
	replying writing = iota
	sending
	answering
	rejecting
	searching
	commanding
)

// takesFile reports whether a file can go with it.
func (c *composer) takesFile() bool { return c.kind == replying || c.kind == sending }

// isLine reports whether it is a line that Enter ends, and no message.
func (w writing) isLine() bool { return w == searching || w == commanding }

// A composer is a text that is being written. It is kept as a draft until it is sent.
type composer struct {
	kind     writing
	key      string // of the draft: what it is about
	title    string
	parent   *wire.Message
	question room.Question

	line      textinput.Model // the recipients, the words to search for, or a command
	file      textinput.Model // the path of a file to attach
	text      textarea.Model
	isSending bool

	saved, shown string // what an editor saved, and what the text area made of it: it replaces tabs
}

// value returns the text to send: what the editor saved, unless it was changed here.
func (c *composer) value() string {
	if c.text.Value() == c.shown {
		return c.saved
	}
	return c.text.Value()
}

func (c *composer) setText(text string) {
	c.text.SetValue(text)
	c.saved, c.shown = text, c.text.Value()
}

// startWriting opens a text, or the draft about the same. to are its recipients at first.
func (m *model) startWriting(c *composer, to string) tea.Cmd {
	draft := m.drafts[c.key]
	switch {
	case m.snapshot.Me == "" && !c.kind.isLine():
		return m.refuse("nobody has said who you are: start again with --as NAME")
	case draft != nil && draft.isSending:
		return m.refuse("it is still being sent")
	case draft != nil:
		m.writing, m.status = draft, ""
		return nil
	}
	c.line, c.file, c.text = textinput.New(), textinput.New(), textarea.New()
	c.line.Prompt, c.file.Prompt, c.text.Prompt, c.text.ShowLineNumbers, c.text.CharLimit, c.text.MaxHeight = "", "", "", false, 0, 0
	c.line.SetStyles(textinput.Styles{Focused: textinput.StyleState{Suggestion: faint}}) // the terminal's own colours, whether it is light or dark
	c.line.ShowSuggestions, c.line.KeyMap.AcceptSuggestion = true, keymap.Suggested
	c.text.SetStyles(textarea.Styles{})
	c.line.SetValue(to)
	c.focus(nil)
	if c.kind.isLine() {
		c.focus(&c.line)
	}
	m.writing, m.status = c, ""
	return nil
}

// focus makes the next keys go to one of its lines, or to the text if that is nil or has them already.
func (c *composer) focus(line *textinput.Model) {
	isText := line == nil || line.Focused()
	c.line.Blur()
	c.file.Blur()
	if isText {
		c.text.Focus()
		return
	}
	c.text.Blur()
	line.Focus() // the cursor does not blink
}

// suggestions are what the line may become: the name that is typed at its end, whole. Elsewhere Right moves the cursor,
// and a line that is scrolled would show the wrong letters.
func (m *model) suggestions(c *composer) (lines []string) {
	value := c.line.Value()
	if c.kind == searching || c.line.Position() < utf8.RuneCountInString(value) || letter.Columns(value) >= c.line.Width() {
		return nil
	}
	before := value[:strings.LastIndexAny(value, ", ")+1]
	for _, one := range m.snapshot.Members {
		lines = append(lines, before+string(one.Name))
	}
	return lines
}

const maxLines = 10_000 // of the text area, which would cut what is longer

// updateComposer gives a key or a pasted text to the line or the text.
func (m *model) updateComposer(msg tea.Msg) (cmd tea.Cmd) {
	c := m.writing
	pasted, _ := msg.(tea.PasteMsg)
	switch {
	case c.line.Focused():
		c.line, cmd = c.line.Update(msg)
	case c.file.Focused():
		c.file, cmd = c.file.Update(msg)
	case strings.Count(c.value()+pasted.Content, "\n") >= maxLines:
		cmd = m.refuse("too long for this box: Ctrl-E")
	default:
		c.text, cmd = c.text.Update(msg)
	}
	return cmd
}

func (m *model) handleComposerKey(k tea.KeyPressMsg) tea.Cmd {
	c := m.writing
	switch {
	case key.Matches(k, keymap.Close):
		m.close()
	case c.kind.isLine() && key.Matches(k, keymap.Open):
		m.close()
		if c.kind == commanding {
			return m.command(strings.TrimSpace(c.line.Value()))
		}
		return m.search(strings.Fields(c.line.Value()))
	case !c.kind.isLine() && key.Matches(k, keymap.Send):
		return m.send()
	case !c.kind.isLine() && key.Matches(k, keymap.EditDraft):
		return m.edit()
	case c.takesFile() && !c.text.Focused() && key.Matches(k, keymap.Open):
		c.focus(nil)
	case c.kind == sending && key.Matches(k, keymap.Recipients):
		c.focus(&c.line)
	case c.takesFile() && key.Matches(k, keymap.File):
		c.focus(&c.file)
	default:
		return m.updateComposer(k)
	}
	return nil
}

// close closes the text, and keeps it as a draft unless it is blank.
func (m *model) close() {
	c := m.writing
	m.writing = nil
	delete(m.drafts, c.key)
	if !c.kind.isLine() && strings.TrimSpace(c.value()+c.file.Value()) != "" {
		m.drafts[c.key] = c
		m.setStatus("draft kept", nil)
	}
}

func (m *model) send() tea.Cmd {
	c := m.writing
	m.writing, m.drafts[c.key], c.isSending = nil, c, true
	text := c.value()
	message, files := c.message()
	m.setStatus("…", nil)
	return func() (msg tea.Msg) {
		var result string
		var err error
		switch c.kind {
		case answering:
			result, err = m.room.AnswerText(m.ctx, c.question, text)
		case rejecting:
			result, err = m.room.Decide(m.ctx, c.question, ask.Answer{Deny: true, Reason: strings.TrimSpace(text)})
		default:
			result, err = m.room.Send(m.ctx, message, files...)
		}
		return m.sent(c, result, err)
	}
}

// message is what is written now, and the paths of the files that go with it.
func (c *composer) message() (m *teams.Message, files []string) {
	m = &teams.Message{Answers: c.parent, Content: &wire.Message{Body: c.value()}}
	if c.parent == nil {
		m.To = []string{c.line.Value()}
	}
	path := strings.TrimSpace(c.file.Value())
	if rest, isHome := strings.CutPrefix(path, "~/"); isHome {
		home, _ := os.UserHomeDir()
		path = filepath.Join(home, rest)
	}
	if path != "" {
		files = []string{path}
	}
	return m, files
}

// sent shows the result of sending a text. After an error it stays a draft, to those who did not get it.
func (m *model) sent(c *composer, result string, err error) callback {
	return func() {
		c.isSending = false
		if missed, ok := errors.AsType[*room.NotSentError](err); ok {
			c.line.SetValue(missed.To)
		}
		if err != nil {
			result = app.JoinFilled("; ", result, "draft kept")
		} else {
			delete(m.drafts, c.key)
		}
		m.setStatus(result, err)
	}
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
			m.setStatus("", cmp.Or(err, err2))
		})
	})
}

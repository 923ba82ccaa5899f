package driver

import (
	"fmt"
	"image/color"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/ptyrun/screen"
	"github.com/agentteammail/atm/reducer"
)

// sketch makes a Look of a drawing: ▮ is the cursor, "═40" a rule of 40 columns, "▄40" and "▀40" are Gemini CLI's
// edges, ‹dim› is dim text and «red» red text. Codex's bullet is dim as before an answer, and Claude Code's ⎿, unless the
// drawing says otherwise.
func sketch(title, text string) Look {
	l := Look{Title: title, Modes: screen.Modes{Paste: true, CursorHidden: true}, Cols: 100, styled: 1}
	for y, row := range strings.Split(strings.TrimPrefix(text, "\n"), "\n") {
		for _, edge := range []string{"▄", "▀", "═"} {
			if n, ok := strings.CutPrefix(row, edge); ok && len(n) > 1 && len(n) < 4 && strings.Trim(n, "0123456789") == "" {
				cols := 0
				for _, c := range n {
					cols = 10*cols + int(c-'0')
				}
				row, l.Cols = strings.Repeat(strings.Replace(edge, "═", "─", 1), cols), cols
			}
		}
		row = strings.ReplaceAll(row, "╹▀▀", "╹"+strings.Repeat("▀", 60))
		for _, mark := range []string{"• ", "  ⎿ "} {
			if rest, ok := strings.CutPrefix(row, mark); ok {
				row = "‹" + mark + "›" + rest
			}
		}
		l.addRow(l.drawRow(row, y))
	}
	return l
}

// drawRow makes the cells of a row of a drawing, and sets the cursor.
func (l *Look) drawRow(row string, y int) (cells []screen.Cell) {
	var style screen.Cell
	for _, c := range row {
		switch {
		case c == '▮':
			l.CursorX, l.CursorY, l.Modes.CursorHidden = len(cells), y, false
		case c == '‹':
			style.Dim = true
		case c == '«':
			style.Fg = color.RGBA{200, 0, 0, 255}
		case c == '›' && style.Dim, c == '»' && style.Fg != nil:
			style = screen.Cell{}
		default:
			style.Text, style.Width = string(c), ansi.StringWidth(string(c))
			if cells = append(cells, style); style.Width == 2 {
				cells = append(cells, screen.Cell{})
			}
		}
	}
	for len(cells) < l.Cols {
		cells = append(cells, screen.Cell{Width: 1})
	}
	return cells
}

const (
	claudeIdle = "✳ Claude Code"
	claudeBusy = "⠐ Claude Code"
	quoted     = `
● The dialog looks like this:

   Do you want to proceed?
   ❯ 1. Yes
     2. No

   Esc to cancel · Tab to amend
`
)

func TestTurns(t *testing.T) {
	for _, c := range []struct {
		name, driver, title, screen string
		activity                    reducer.Activity
		detail                      string
		why                         control.Gate
	}{
		{"a dialog quoted above the box", "claude", claudeIdle, quoted + "\n═100\n❯ ▮\n═100\n  ? for shortcuts", reducer.Idle, "", ""},
		{"a dialog quoted during a turn", "claude", claudeBusy, quoted + "\n✶ Wrangling… (2s)\n\n═100\n❯ ▮\n═100\n  esc to interrupt", reducer.Responding, "", "busy"},
		{"a dialog in what the user typed", "claude", claudeIdle, "❯ why does it say\n  ❯ 1. Yes\n    2. No\n\n● No idea.\n\n═100\n❯ ▮\n═100\n  ? for shortcuts", reducer.Idle, "", ""},
		{"a dialog as a draft", "claude", claudeIdle, "═100\n❯ 1. Yes\n  2. No▮\n═100\n", reducer.Idle, "", "draft"},
		{"a whole box quoted inside a dialog", "claude", claudeIdle, "═100\n Bash command\n\n   cat <<X\n   ───────────────────────────────────\n   ❯ \n   ───────────────────────────────────\n   X\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel", reducer.Confirming, "permission", "dialog"},
		{"an idle title during a dialog", "claude", claudeIdle, "═100\n Bash command\n\n   git status\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel", reducer.Confirming, "permission", "dialog"},
		{"a dialog of an unknown kind", "claude", claudeIdle, "  What now?\n\n  ❯ 1. Stop and wait\n    2. Upgrade\n\n  Enter to confirm", reducer.Confirming, "unknown", "dialog"},
		{"with the second option chosen", "claude", claudeIdle, "  What now?\n\n    1. Stop and wait\n  ❯ 2. Upgrade\n\n  Enter to confirm", reducer.Confirming, "unknown", "dialog"},
		{"a question with two parts", "claude", claudeIdle, "═100\n ☐ Color\n\nWhich color?\n\n❯ 1. Red\n     like blood\n  2. Blue\n     like the sky\n═100\n  3. Chat about this\n\nEnter to select · ↑/↓ to navigate · Esc to cancel", reducer.AwaitingInput, "question", "dialog"},
		{"the first rows of a dialog above the screen", "claude", claudeIdle, "   rm -rf build\n   Remove it\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel", reducer.Confirming, "permission", "dialog"},
		{"the first option above the screen", "claude", claudeIdle, " ❯ 2. Yes, and always\n   3. No\n\n Esc to cancel", reducer.Confirming, "unknown", "dialog"},
		{"a numbered list without a selector", "claude", claudeIdle, "● Two ways:\n\n  1. this\n  2. that\n\n═100\n❯ ▮\n═100\n  ? for shortcuts", reducer.Idle, "", ""},
		{"a dim suggestion", "claude", claudeIdle, "═100\n❯ ▮‹Try \"fix lint errors\"›\n═100\n  ? for shortcuts", reducer.Idle, "", ""},
		{"forty columns", "claude", claudeIdle, "═40\n❯ ▮\n═40\n  ? for shortcuts", reducer.Idle, "", ""},
		{"two hundred columns", "claude", claudeIdle, "═200\n❯ ▮\n═200\n  ? for shortcuts", reducer.Idle, "", ""},
		{"a draft in Chinese", "claude", claudeIdle, "═40\n❯ 你好世界▮\n═40\n", reducer.Idle, "", "draft"},
		{"a label in the upper rule", "claude", claudeIdle, strings.Repeat("─", 80) + " my session ──\n❯ ▮\n═100\n  ? for shortcuts", reducer.Idle, "", ""},
		{"a status line of three rows", "claude", claudeIdle, "═100\n❯ ▮\n═100\n  main · 42%\n  /home/dev\n  ⏵⏵ accept edits on (shift+tab to cycle)", reducer.Idle, "", ""},
		{"no title at all", "claude", "", "═100\n❯ ▮\n═100\n  ? for shortcuts", reducer.Idle, "", ""},
		{"a busy title over an empty box", "claude", claudeBusy, "❯ hello\n\n═100\n❯ ▮\n═100\n", reducer.Thinking, "", "busy"},
		{"sub-agents in the background", "claude", claudeBusy, "❯ go\n\n● Done.\n\n✻ Waiting for 2 background agents to finish\n\n═100\n❯ ▮\n═100\n  ? for shortcuts · ↓ to manage\n\n  ● main\n  ◯ Explore  sub", reducer.Idle, "", ""},
		{"a turn beside sub-agents", "claude", claudeBusy, "✻ Waiting for 2 background agents to finish\n\n❯ go\n\n═100\n❯ ▮\n═100\n", reducer.Thinking, "", "busy"},
		{"one of them has finished", "claude", claudeBusy, "✻ Waiting for 1 background agent to finish\n\n● Agent \"sub\" finished · 16s\n\n═100\n❯ ▮\n═100\n", reducer.Responding, "", "busy"},
		{"a person's draft during a turn", "claude", "", "❯ go\n\n‹●› Bash(sleep 6)\n  ⎿  Running…\n\n✶ Wrangling… (2s)\n\n═100\n❯ human▮\n═100\n", reducer.ToolRunning, "Bash", "busy"},
		{"a message that waits", "claude", "", "❯ go\n\n● word word\n\n✶ Wrangling…\n\n❯ queued text\n\n═100\n❯ ‹Press up to edit queued messages›\n═100\n", reducer.Responding, "", "busy"},
		{"a server that does not answer", "claude", claudeBusy, "❯ go\n\n✻ Unable to connect to API (ConnectionRefused) · Retrying in 4s · attempt 4/10\n\n═100\n❯ ▮\n═100\n  esc to interrupt", reducer.Thinking, "API retry 4/10", "busy"},
		{"a turn that ended in an error", "claude", claudeIdle, "❯ go\n\n«● API Error: 529 overloaded»\n\n✻ Worked for 1s\n\n═100\n❯ ▮\n═100\n  ? for shortcuts", reducer.Idle, "", ""},
		{"a usage limit", "claude", claudeIdle, "❯ go\n  ⎿  «You've hit your limit · resets 3pm»\n\n═100\n❯ ▮\n═100\n  ? for shortcuts", reducer.Limited, "You've hit your limit · resets 3pm", ""},
		{"an answer about limits", "claude", claudeIdle, "❯ go\n\n● You've hit your limit, says the handler.\n\n═100\n❯ ▮\n═100\n  ? for shortcuts", reducer.Idle, "", ""},
		{"a red line of a tool about limits", "claude", claudeIdle, "❯ go\n\n«●» Bash(x)\n  ⎿  «You've hit your limit»\n\n● Done.\n\n═100\n❯ ▮\n═100\n  ? for shortcuts", reducer.Idle, "", ""},
		{"the same as the last line", "claude", claudeIdle, "❯ go\n\n«●» Bash(x)\n  ⎿  «You've hit your limit»\n\n═100\n❯ ▮\n═100\n  ? for shortcuts", reducer.Idle, "", ""},
		{"a usage limit below a tool", "claude", claudeIdle, "❯ go\n\n«●» Bash(x)\n  ⎿  a\n\n  ⎿  «You've hit your weekly limit · resets Nov 27, 3pm (UTC)»\n\n═100\n❯ ▮\n═100\n", reducer.Limited, "You've hit your weekly limit · resets Nov 27, 3pm (UTC)", ""},
		{"a usage limit that ends by itself", "claude", claudeIdle, "❯ go\n  ⎿  «You've hit your limit · resets 3pm»\n\n═100\n❯ ▮\n═100\n  ⚠ Usage limit reached · limit resets 3pm\n    Continuing automatically at 3pm · Esc to cancel\n", reducer.Limited, "Usage limit reached · limit resets 3pm", "usage limit"},
		{"a turn after a usage limit", "claude", claudeIdle, "❯ go\n  ⎿  «You've hit your limit · resets 3pm»\n\n❯ again\n\n● Fine.\n\n═100\n❯ ▮\n═100\n", reducer.Idle, "", ""},
		{"a warning", "claude", claudeIdle, "❯ go\n\n● Done.\n\n«● Auto mode can't check actions in this session.»\n\n═100\n❯ ▮\n═100\n", reducer.Idle, "", ""},
		{"half a circle in the title", "claude", "◐ Claude Code", "❯ hello\n\n═100\n❯ ▮\n═100\n", reducer.Thinking, "", "busy"},
		{"a call that runs, by what it does", "claude", "◑ Claude Code", "❯ go\n\n‹ › Making a file\n  ‹⎿  $ touch made.txt›\n\n═100\n❯ ▮\n═100\n", reducer.ToolRunning, "Bash", "busy"},
		{"a search in the prompts", "claude", claudeIdle, "═100\n❯ \n═100\n  search prompts: ▮", reducer.Idle, "", "a menu is open"},
		{"an error of an earlier turn", "claude", claudeIdle, "«● API Error: 529»\n\n❯ again\n\n● Fine.\n\n═100\n❯ ▮\n═100\n  ? for shortcuts", reducer.Idle, "", ""},
		{"compacting", "claude", claudeBusy, "✻ Compacting conversation… (3s)\n\n═100\n❯ ▮\n═100\n  esc to interrupt", reducer.Thinking, "compacting", "busy"},
		{"an old spinner", "claude", claudeIdle, "✻ Wrangling… (9s)\n\n● It said so.\n\n═100\n❯ ▮\n═100\n  ? for shortcuts", reducer.Idle, "", ""},
		{"a question with boxes to tick", "claude", claudeIdle, "═100\n←  ☒ Colors  ☐ Number  ✔ Submit  →\n\nWhich colors do you want?\n\n❯ 1. [✔] Red\n  like blood\n  2. [ ] Blue\n  like sky\n  3. [ ] Type something\n     Next\n═100\n  4. Chat about this\n\nEnter to select · Tab/Arrow keys to navigate · Esc to cancel", reducer.AwaitingInput, "question", "dialog"},
		{"a question with the cursor on no option", "claude", claudeIdle, "═100\n←  ☒ Colors  ☐ Number  ✔ Submit  →\n\nWhich colors do you want?\n\n  1. [✔] Red\n  like blood\n  2. [ ] Blue\n  like sky\n  3. [ ] Type something\n❯    Next\n═100\n  4. Chat about this\n\nEnter to select · Tab/Arrow keys to navigate · Esc to cancel", reducer.AwaitingInput, "question", "dialog"},
		{"shell mode", "claude", claudeIdle, "═100\n! ▮\n═100\n  ! for shell mode", reducer.Idle, "", "bang mode"},
		{"a slash menu", "claude", claudeIdle, "═100\n❯ /▮\n═100\n  /help   Show help\n  /clear  Clear\n", reducer.Idle, "", "draft"},
		{"help", "claude", claudeIdle, "═100\n❯ ▮\n═100\n  ! for shell mode   double tap esc to clear input\n  / for commands", reducer.Idle, "", "help is open"},
		{"the list of agents", "claude", claudeIdle, "═100\n❯ ▮\n═100\n  main\n❯ explore   ↓ 12.3k tokens\n  Enter to view", reducer.Idle, "", "the list of agents is open"},
		{"the list of sessions", "claude", "1 awaiting input · claude agents", "Needs input\n✻ hi   Pong…   0s\n\n═100\n❯ ▮‹describe a task for a new session›\n═100\n  enter to open · space to reply · ctrl+x to delete · ? for shortcuts", reducer.Starting, "", "no prompt on the screen"},
		{"the transcript", "claude", claudeIdle, "● Pong\n\n═100\n  Showing detailed transcript · ctrl+o to toggle", reducer.Starting, "", "no prompt on the screen"},
		{"the cursor on its way", "claude", claudeIdle, "▮\n═100\n❯ \n═100\n  ? for shortcuts", reducer.Idle, "", "the cursor is not in its prompt"},

		{"a dim placeholder", "codex", "proj", "› ▮‹Explain this codebase›\n\n  model · ~/proj\n  ? for shortcuts", reducer.Idle, "", ""},
		{"help", "codex", "proj", "  esc esc  Edit last message    f4             Inspect activity\n\n› ▮‹Ask Codex to do anything›\n\n  model · ~/proj\n  ? / esc close", reducer.Idle, "", "help is open"},
		{"an answer streams", "codex", "⠋ proj", "› go\n\n• word word\n\n› ▮‹Ask Codex to do anything›\n\n  model · ~/proj", reducer.Responding, "", "busy"},
		{"a title that tells nothing", "codex", "", "› go\n\n• Working (2s • esc to interrupt)\n\n› ▮‹Ask Codex to do anything›\n\n  model · ~/proj", reducer.Thinking, "", "busy"},
		{"a quoted busy line", "codex", "proj", "› go\n\n• Working (2s • esc to interrupt)\n\n‹  Worked for 3s› • 06:55\n\n› ▮‹Ask Codex to do anything›\n\n  model · ~/proj", reducer.Idle, "", ""},
		{"a title that blinks", "codex", "[ . ] Action Required | proj", "anything", reducer.Confirming, "unknown", "dialog"},
		{"a dialog as a draft", "codex", "proj", "› 1. Yes\n  2. No▮\n\n  model · ~/proj\n", reducer.Idle, "", "draft"},
		{"a dialog sent as text", "codex", "proj", "› 1. Yes\n  2. No\n\n• Fine.\n\n› ▮‹Ask Codex›\n\n  model · ~/proj", reducer.Idle, "", ""},
		{"reconnecting", "codex", "⠋ proj", "› go\n\n• Reconnecting... 2/5 (3s • esc to interrupt)\n\n› ▮\n\n  model · ~/proj", reducer.Thinking, "API retry 2/5", "busy"},
		{"one Escape pressed", "codex", "proj", "› go\n\n• Pong.\n\n› ▮‹Ask Codex to do anything›\n\n  model · ~/proj\n  esc again to edit previous message", reducer.Idle, "", ""},
		{"one Ctrl-D pressed", "codex", "proj", "› go\n\n• Pong.\n\n› ▮‹Ask Codex to do anything›\n\n  model · ~/proj\n  ^d again to quit", reducer.Idle, "", "it waits for the same key again"},
		{"work without animations", "codex", "proj", "› go\n\nWorking (0s • esc to interrupt)\n\n› ▮‹Ask Codex to do anything›\n\n  model · ~/proj", reducer.Thinking, "", "busy"},
		{"a usage limit", "codex", "proj", "› go\n\n«■ You’ve hit your usage limit. Visit https://»\n«chatgpt.com or try again at 6:42 PM.»\n\n› ▮\n\n  model · ~/proj", reducer.Limited, "You’ve hit your usage limit. Visit https:// chatgpt.com or try again at 6:42 PM.", ""},
		{"an answer about limits", "codex", "proj", "› go\n\n• ■ You’ve hit your usage limit.\n\n› ▮\n\n  model · ~/proj", reducer.Idle, "", ""},
		{"a failed turn", "codex", "proj", "› go\n\n■ stream error: 500\n\n› ▮\n\n  model · ~/proj", reducer.Idle, "", ""},

		{"the answer to a query that came late", "gemini", "◇  Ready (p)", "▄80\n > 62;22c▮\n▀80\n ~/p", reducer.Idle, "", "draft"},
		{"a loop was detected", "gemini", "✋  Action Required (p)", "╭────────────────────────────╮\n│ ?  A potential loop was detected │\n│ ● 1. Keep loop detection enabled (esc) │\n│   2. Disable loop detection │\n╰────────────────────────────╯", reducer.AwaitingInput, "question", "dialog"},
		{"a busy line in an answer", "gemini", "◇  Ready (p)", "▄80\n > go\n▀80\n✦ It says:\n\n  ⠼ Thinking... (esc to cancel, 2s)\n\n▄80\n > ▮\n▀80\n ~/p", reducer.Idle, "", ""},
		{"without background colours", "gemini", "◇  Ready (p)", "> hello\n\n✦ Pong.\n\n═80\n Shift+Tab to accept edits\n═80\n > ▮ Type your message or @path/to/file\n═80\n ~/p", reducer.Idle, "", ""},
		{"a draft without background colours", "gemini", "◇  Ready (p)", "═80\n > hello▮\n═80\n ~/p", reducer.Idle, "", "draft"},
		{"a dialog that is not known", "gemini", "◇  Ready (p)", "╭─────────╮\n│ > Pick  │\n│ ▲ a     │\n│ ● b     │\n╰─────────╯", reducer.Confirming, "unknown", "dialog"},
		{"a tool", "gemini", "✦  Working… (p)", "▄80\n > go\n▀80\n╭───────────╮\n│ ⊷  Shell sleep 6 │\n╰───────────╯\n ⠼ Thinking... (esc to cancel, 2s)\n▄80\n >  ▮ Type your message or @path/to/file\n▀80\n ~/p", reducer.ToolRunning, "Bash", "busy"},
		{"shell mode", "gemini", "◇  Ready (p)", "▄80\n !   ▮Type your shell command\n▀80\n ~/p", reducer.Idle, "", "bang mode"},

		{"a placeholder on a narrow screen", "gemini", "◇  Ready (p)", "▄32\n > ▮ Type your message or\n   @path/to/file\n▀32\n ~/p", reducer.Idle, "", ""},
		{"vim's insert mode", "gemini", "◇  Ready (p)", "▄80\n > ▮ Press 'Esc' for NORMAL mode.\n▀80\n [INSERT]  ~/p", reducer.Idle, "", ""},
		{"vim's normal mode", "gemini", "◇  Ready (p)", "▄80\n > ▮ Press 'i' for INSERT mode.\n▀80\n [NORMAL]  ~/p", reducer.Idle, "", "vim is in normal mode"},
		{"vim's normal mode without the footer", "gemini", "◇  Ready (p)", "▄80\n > ▮ Press 'i' for INSERT mode.\n▀80", reducer.Idle, "", "draft"},

		{"a side bar", "opencode", "OC | x", "     Pong      █ Context\n               █ 12k tokens\n  ┃                                                                █ LSP\n  ┃  ▮                                                             █ none\n  ┃                                                                █\n  ┃  Build · Fake                                                  █\n  ╹▀▀   █\n   /home/dev   tab agents  ctrl+p commands", reducer.Idle, "", ""},
		{"one Escape pressed", "opencode", "OC | x", "  ┃\n  ┃  ▮\n  ┃\n  ┃  Build · Fake\n  ╹▀▀\n   ⬝⬝■■  esc again to interrupt   ctrl+p commands", reducer.Thinking, "", "busy"},
		{"a server that does not answer", "opencode", "OC | x", "  ┃  go\n\n     «overloaded [retrying in 4s attempt #2]»\n\n  ┃\n  ┃  ▮\n  ┃\n  ┃  Build · Fake\n  ╹▀▀\n   ⬝⬝■■  esc interrupt", reducer.Thinking, "API retry 2", "busy"},
		{"a retry in an answer", "opencode", "OC | x", "  ┃  go\n\n     It says [retrying in 4s attempt #2]\n\n  ┃\n  ┃  ▮\n  ┃\n  ┃  Build · Fake\n  ╹▀▀\n   tab agents", reducer.Idle, "", ""},
		{"a usage limit that it waits for", "opencode", "OC | x", "  ┃  go\n\n  ┃\n  ┃  ▮\n  ┃\n  ┃  Build · Fake\n  ╹▀▀\n   «⬝⬝■■ 5 hour usage limit reached [retrying in 59m attempt #1]»  esc interrupt", reducer.Thinking, "usage limit", "busy"},
		{"a dialog without its keys", "opencode", "OC | x", "  ┃\n  ┃  △ Permission required\n  ┃    # Shell command\n  ┃\n  ┃  $ ls\n  ┃\n  ┃   Allow once   Allow always   Reject\n  ┃", reducer.Confirming, "permission", "dialog"},
		{"a dialog without its buttons", "opencode", "OC | x", "  ┃\n  ┃  △ Permission required\n  ┃    # Shell command\n  ┃", reducer.Confirming, "permission", "dialog"},
		{"a dialog quoted by the user", "opencode", "OC | x", "  ┃  △ Permission required\n  ┃   Allow once   Allow always   Reject   ⇆ select  enter confirm\n\n     No.\n\n  ┃\n  ┃  ▮\n  ┃\n  ┃  Build · Fake\n  ╹▀▀\n   tab agents", reducer.Idle, "", ""},
		{"a command palette over the box", "opencode", "OC | x", "  Commands        esc\n  Search▮\n\n  ┃\n  ┃\n  ┃\n  ┃  Build · Fake\n  ╹▀▀\n   tab agents", reducer.Idle, "", "the cursor is not in its prompt"},
	} {
		d, _ := Named(c.driver)
		l := sketch(c.title, c.screen)
		r := d.Read(l, Reading{})
		if r.Activity != c.activity || r.Detail != c.detail || r.NotPromptReason != c.why || r.Prompt != (c.why == "") {
			t.Errorf("%s, %s: %s %q, prompt %v, why %q, draft %q, dialog %+v", c.driver, c.name, r.Activity, r.Detail, r.Prompt, r.NotPromptReason, r.Draft, r.Dialog)
		}
	}
}

func readsDraft(t *testing.T, d *Driver, s *screen.Screen, draft string) {
	t.Helper()
	if r := d.Read(LookAt(s), Reading{}); r.Draft != draft || r.Prompt != (draft == "") {
		t.Errorf("why %q, draft %q", r.NotPromptReason, r.Draft)
	}
}

// A message or an error right above opencode's box differs from it only in its background.
func TestBackground(t *testing.T) {
	bar := func(ground, text string) string { return "\x1b[48;2;" + ground + "m┃  " + text + "\x1b[K\x1b[m\r\n" }
	s := screen.New(40, 12, 0)
	const message, box = "20;20;20", "30;30;30"
	s.Write([]byte("\x1b[?2004h" + bar(message, "Internal Server Error") + bar(message, "") +
		bar(box, "") + bar(box, "") + bar(box, "") + bar(box, "Build · Fake") + "╹▀▀▀▀▀▀▀▀▀▀▀▀\r\n  tab agents\x1b[4;4H"))
	readsDraft(t, opencode, s, "")
	s.Write([]byte("\x1b[48;2;" + box + "mhello"))
	readsDraft(t, opencode, s, "hello")
}

// A dim text with the program's own cursor over it is a suggestion, not a draft.
func TestPlaceholderUnderTheCursor(t *testing.T) {
	s := screen.New(40, 12, 0)
	rule := strings.Repeat("─", 40)
	s.Write([]byte("\x1b]0;✳ Claude Code\a" + rule + "\r\n❯\u00a0\x1b[7mT\x1b[27m\x1b[2mry \"fix lint\"\x1b[22m\r\n" + rule + "\x1b[2;3H"))
	readsDraft(t, claude, s, "")
	s.Write([]byte("T\x1b[m\x1b[K"))
	readsDraft(t, claude, s, "T")
}

// An open synchronized update keeps the reading, but is never a prompt.
func TestOpenFrame(t *testing.T) {
	l := sketch(claudeIdle, "═100\n❯ ▮\n═100\n  ? for shortcuts")
	before := claude.Read(l, Reading{})
	l.Modes.Sync = true
	r := claude.Read(l, before)
	if r.Prompt || r.Activity != reducer.Idle {
		t.Errorf("%+v", r)
	}
	if r := claude.Read(l, Reading{}); r.Activity != reducer.Starting || r.Prompt {
		t.Errorf("%+v", r)
	}
	l.Modes.Sync = false
	if r := claude.Read(l, r); !r.Prompt {
		t.Errorf("%+v", r)
	}
}

// The error that ended a turn is what the program says in its own style.
func TestFailure(t *testing.T) {
	for _, c := range []struct{ driver, screen, want string }{
		{"claude", "❯ go\n\n«● API Error: 529 overloaded, please»\n  «try again.»\n\n✻ Worked for 1s\n\n═100\n❯ ▮\n═100\n", "API Error: 529 overloaded, please try again."},
		{"claude", "❯ go\n\n● API Error: 529 is what the test expects.\n\n✻ Worked for 1s\n\n═100\n❯ ▮\n═100\n", ""},
		{"claude", "❯ go\n\n● Fine.\n\n«● Auto mode can't check actions.»\n\n═100\n❯ ▮\n═100\n", ""},
		{"codex", "› go\n\n«■ stream error: 500»\n\n› ▮\n\n  model · ~/proj", "stream error: 500"},
		{"codex", "› go\n\n«■ Conversation interrupted»\n\n› ▮\n\n  model · ~/proj", ""},
	} {
		d, _ := Named(c.driver)
		if r := d.Read(sketch(claudeIdle, c.screen), Reading{}); r.Failure != c.want || r.Activity != reducer.Idle || !r.Prompt {
			t.Errorf("%s, %s: %+v", c.driver, c.screen, r)
		}
	}
}

// What a program declares comes before its title, and that before its screen; but what looks like a dialog, and any
// sign of work, keeps mail out.
func TestDeclared(t *testing.T) {
	idle, busy := "› go\n\n• word\n\n› ▮\n\n  model · ~/proj", "› go\n\n• word\n\n◦ Working (1s • esc to interrupt)\n\n› ▮\n\n  model · ~/proj"
	for _, c := range []struct {
		declared, title, text string
		want                  reducer.Activity
		source                reducer.Source
		prompt                bool
	}{
		{"state=working:app=codex", "proj", idle, reducer.Responding, reducer.FromDeclared, false},
		{"state=blocked:app=codex:kind=permission", "proj", idle, reducer.Confirming, reducer.FromDeclared, false},
		{"state=idle:app=codex", "proj", idle, reducer.Idle, reducer.FromDeclared, true},
		{"app=codex:state=done", "proj", idle, reducer.Idle, reducer.FromDeclared, true},
		{"state=error:app=codex", "proj", idle, reducer.Idle, reducer.FromDeclared, true},
		{"state=idle:app=codex", "⠹ proj", idle, reducer.Idle, reducer.FromDeclared, false},
		{"state=done:app=codex", "proj", busy, reducer.Idle, reducer.FromDeclared, false},
		{"state=idle:app=codex", "[ ! ] Action Required | proj", idle, reducer.Confirming, reducer.FromTitle, false},
		{"state=working:app=other", "proj", idle, reducer.Idle, reducer.FromScreen, true},
		{"state=working:app=other", "⠹ proj", idle, reducer.Responding, reducer.FromTitle, false},
		{"", "proj", busy, reducer.Responding, reducer.FromScreen, false},
	} {
		l := sketch(c.title, c.text)
		if r, ok := screen.ParseReport(c.declared); ok {
			l.Declared = screen.Status{r}
		}
		if r := codex.Read(l, Reading{}); r.Activity != c.want || r.Source != c.source || r.Prompt != c.prompt {
			t.Errorf("%q, title %q: %s by %s, prompt %v", c.declared, c.title, r.Activity, r.Source, r.Prompt)
		}
	}
}

// A progress bar counts as a title does, if the program's driver names it: of the two, the one that asks, then the one that
// works.
func TestProgress(t *testing.T) {
	useOwn(t, map[string]string{"echoer.toml": strings.Replace(echoer, "[screen]", `[screen]
titles = [{ pattern = '^w', means = "thinking" }, { pattern = '^i', means = "idle" }]
progress = { none = "idle", normal = "thinking", indeterminate = "thinking", error = "confirming", paused = "confirming" }`, 1)})
	d, _ := Named("echoer")
	for _, c := range []struct {
		bar, title string
		want       reducer.Activity
		source     reducer.Source
		prompt     bool
	}{
		{"", "", reducer.Idle, reducer.FromScreen, true},
		{"\x1b]9;4;0;\a", "", reducer.Idle, reducer.FromProgress, true},
		{"\x1b]9;4;1;50\a", "", reducer.Responding, reducer.FromProgress, false},
		{"\x1b]9;4;3;;\x1b\\", "", reducer.Responding, reducer.FromProgress, false},
		{"\x1b]9;4;2\a", "", reducer.Confirming, reducer.FromProgress, false},
		{"\x1b]9;4;4\a", "", reducer.Confirming, reducer.FromProgress, false},
		{"\x1b]9;4;3\a", "i", reducer.Responding, reducer.FromProgress, false},
		{"\x1b]9;4;0\a", "w", reducer.Responding, reducer.FromTitle, false},
		{"\x1b]9;4;0\a", "i", reducer.Idle, reducer.FromTitle, true},
		{"\x1b]9;4;2\a", "w", reducer.Confirming, reducer.FromProgress, false},
	} {
		s := screen.New(40, 8, 0)
		fmt.Fprintf(s, "%s\x1b]2;%s\a> go\r\n* word\r\n\r\n> ", c.bar, c.title)
		r := d.Read(LookAt(s), Reading{})
		if r.Activity != c.want || r.Source != c.source || r.Prompt != c.prompt || r.Dialog != nil {
			t.Errorf("%q, title %q: %s by %s, prompt %v", c.bar, c.title, r.Activity, r.Source, r.Prompt)
		}
		if r = codex.Read(LookAt(s), Reading{}); r.Source == reducer.FromProgress {
			t.Errorf("%q: a driver that does not name it", c.bar)
		}
	}
}

// An overlay hides the box and shows nothing of the turn, so the reading stays.
func TestWithoutABox(t *testing.T) {
	overlay := sketch("", "text\n\n  Showing detailed transcript")
	for _, c := range []struct{ before, want reducer.Activity }{
		{"", reducer.Starting}, {reducer.Starting, reducer.Starting}, {reducer.ToolRunning, reducer.Unknown},
		{reducer.Idle, reducer.Unknown}, {reducer.Confirming, reducer.Unknown}, {reducer.Unknown, reducer.Unknown},
	} {
		r := claude.Read(overlay, Reading{Activity: c.before})
		if r.Activity != c.want || r.Prompt || r.Dialog != nil {
			t.Errorf("after %q: %+v", c.before, r)
		}
	}
	busy := sketch(claudeBusy, "text")
	if r := claude.Read(busy, Reading{Activity: reducer.Idle}); r.Activity != reducer.Thinking {
		t.Errorf("a busy title: %+v", r)
	}
}

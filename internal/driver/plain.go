package driver

import (
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/reducer"
)

// plain is a shell or a REPL. One with line editing asks for bracketed paste at
// its prompt and gives it up for the time of a command; others are known by
// their prompt alone.
var plain = Driver{
	Name:      "plain",
	Plain:     true,
	interrupt: []string{"\x03"},
	pause:     300 * time.Millisecond,
}

// shells are the programs in which a lone "> " asks for the rest of a command.
var shells = []string{"bash", "sh", "dash", "ash", "busybox", "zsh", "ksh", "mksh"}

// repls are programs that are what they are, whatever is run in them: their
// screen is not searched for an agent's.
var repls = []string{"fish", "pwsh", "nu", "python", "python3", "ipython", "node", "psql", "mysql", "sqlite3", "irb", "ghci", "R", "lua", "less", "vi", "vim", "nano", "cat"}

// promptEnds are how prompts end, in the order in which they are looked for in
// a row that holds more than its prompt.
var promptEnds = []string{">>> ", "$ ", "# ", "% ", "❯ ", "➜ ", "λ ", "» ", "› ", "> "}

// continuations are prompts for the rest of something.
var continuations = []string{"... ", "quote> ", "dquote> ", "bquote> ", "heredoc> ", "for> ", "while> ", "if> ", "then> ", "else> ", "do> ", "case> ", "function> ", "cmdsubst> ", "pipe> ", "cmdand> ", "cmdor> ", "subsh> ", "braceparam> ", "   ...> ", "    -> ", "    '> ", "    \"> "}

func (d *Driver) readPlain(l *Look, before Reading) Reading {
	r := Reading{memory: before.memory}
	r.memory.paste = before.memory.paste || l.Modes.Paste && !l.Modes.Alt
	line := l.before()
	switch {
	case l.Modes.Alt:
		r.Activity, r.Detail, r.Why = reducer.ToolRunning, l.Foreground, "a program has the whole screen"
		return r
	case l.Foreground != "":
		r.Activity, r.Detail, r.Why = reducer.ToolRunning, l.Foreground, l.Foreground+" is running"
		if question(line) {
			r.Activity, r.Detail = reducer.AwaitingInput, "question"
		}
		return r
	}
	if r.memory.paste && !l.Modes.Paste {
		r.memory.prompt = ""
		r.Activity, r.Why = reducer.ToolRunning, "a command is running"
		if question(line) {
			r.Activity, r.Detail = reducer.AwaitingInput, "question"
		}
		return r
	}
	if q := d.dialog(l, place{}, false); q != nil && !l.Modes.Paste {
		return Reading{Activity: reducer.AwaitingInput, Detail: "question", Dialog: q, Why: "dialog", memory: r.memory}
	}
	prompt, draft, ok := d.prompt(l, line, before.memory.prompt)
	switch {
	case !ok && question(line):
		r.Activity, r.Detail, r.Why = reducer.AwaitingInput, "question", "it asks for something else"
	case !ok && l.Modes.Paste:
		r.Activity, r.Why = reducer.Idle, "no prompt on the screen"
	case !ok && (before.Activity == "" || before.Activity == reducer.Starting):
		r.Activity, r.Why = reducer.Starting, "no prompt on the screen"
	case !ok:
		r.Activity, r.Why = reducer.Thinking, "no prompt on the screen"
		if before.Activity == reducer.Unknown {
			r.Activity = reducer.Unknown
		}
	case draft != "":
		r.Activity, r.Draft, r.HasDraft, r.Why = reducer.Idle, draft, true, "draft"
	default:
		r.Activity, r.Prompt, r.memory.prompt = reducer.Idle, true, prompt
	}
	return r
}

// prompt divides the cursor's row, as far as the cursor, into prompt and draft.
// known is the prompt as it stood before anything was typed.
func (d *Driver) prompt(l *Look, line, known string) (prompt, draft string, ok bool) {
	right := l.after()
	if gap := strings.TrimLeft(after(l.line(l.CursorY), len([]rune(line))), " "); gap != "" && len([]rune(l.line(l.CursorY)))-len([]rune(line))-len([]rune(gap)) >= 4 {
		right = "" // a prompt of the right margin
	}
	if d.continues(line, known) {
		return "", strings.TrimSpace(line + right), true
	}
	if known != "" {
		if rest, ok := strings.CutPrefix(line, known); ok {
			return known, strings.TrimSpace(rest + right), true
		}
		if above, ok := l.brokenFrom(known); ok {
			return known, strings.TrimSpace(above + line + right), true
		}
	}
	for _, end := range promptEnds {
		if strings.HasSuffix(line, end) && likelyPrompt(line) {
			return line, right, true
		}
	}
	for _, end := range promptEnds {
		if at := strings.Index(line, end); at >= 0 && likelyPrompt(line[:at+len(end)]) {
			return line[:at+len(end)], strings.TrimSpace(line[at+len(end):] + right), true
		}
	}
	// Some other prompt: with bracketed paste on, whatever ends in a blank
	// before the cursor and was not seen to grow.
	if l.Modes.Paste && known == "" && !blank(line) && strings.HasSuffix(line, " ") && !question(line) {
		return line, right, true
	}
	return "", "", false
}

// brokenFrom returns what stands after prompt in the rows above the cursor's, if
// the cursor's row goes on a command that was too long for them: each is full.
func (l *Look) brokenFrom(prompt string) (text string, ok bool) {
	for y := l.CursorY - 1; y >= 0 && l.CursorY-y <= 50; y-- {
		line := l.line(y)
		if l.Cols == 0 || width(line) < l.Cols-1 {
			return "", false
		}
		if rest, ok := strings.CutPrefix(line, prompt); ok {
			return rest + text, true
		}
		text = line + text
	}
	return "", false
}

// likelyPrompt reports whether s, which ends as prompts do, may be one: not
// long, and not a sentence or an indented text.
func likelyPrompt(s string) bool {
	return len(s) <= 120 && !strings.HasPrefix(s, "   ") && strings.Count(strings.TrimSpace(s), " ") <= 5
}

// continues reports whether line asks for the rest of what was typed.
func (d *Driver) continues(line, known string) bool {
	for _, c := range continuations {
		if strings.HasPrefix(line, c) && (known == "" || !strings.HasPrefix(known, c)) {
			return true
		}
	}
	return strings.HasPrefix(line, "> ") && slices.Contains(shells, d.program) && !strings.HasPrefix(known, "> ")
}

// question reports whether line asks a person for something other than a
// command.
func question(line string) bool {
	s := strings.ToLower(strings.TrimRight(line, " "))
	if hasAny(s, []string{"password", "passphrase"}) && strings.HasSuffix(s, ":") {
		return true
	}
	s = strings.TrimRight(s, ":? ")
	for _, end := range []string{"[y/n]", "(y/n)", "[yes/no]", "(yes/no)", "(yes/no/[fingerprint])", "[y/n/q]", "[n]"} {
		if strings.HasSuffix(s, end) {
			return true
		}
	}
	return false
}

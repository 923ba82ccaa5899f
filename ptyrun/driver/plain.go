package driver

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/reducer"
)

// plain is the driver of a shell or REPL. One with line editing enables bracketed paste at its prompt and disables it
// during a command; others are recognized by their prompt alone.
var plain = Driver{
	Name:      "plain",
	Plain:     true,
	interrupt: "\x03",
}

// shells are the programs with "> " as the prompt for the rest of a command.
var shells = []string{"bash", "sh", "dash", "ash", "busybox", "zsh", "ksh", "mksh"}

// repls are other programs whose screens Recognise does not search for an agent. (Nor those of any python.)
var repls = []string{
	"fish", "pwsh", "nu", "ipython", "node", "psql", "mysql", "sqlite3", "irb", "ghci", "R",
	"lua", "less", "vi", "vim", "nano", "cat",
}

// promptEnds are the ends of prompts, in the order in which splitPrompt looks for them.
var promptEnds = []string{">>> ", "$ ", "# ", "% ", "❯ ", "» ", "› ", "> "}

// continuations are the prompts for the rest of an input.
var continuations = []string{
	"... ", "quote> ", "dquote> ", "bquote> ", "heredoc> ", "for> ", "while> ", "if> ", "then> ", "else> ", "do> ",
	"case> ", "function> ", "cmdsubst> ", "pipe> ", "cmdand> ", "cmdor> ", "subsh> ", "braceparam> ", "   ...> ",
	"    -> ", "    '> ", "    \"> ",
}

func (d *Driver) readPlain(l *Look, before Reading) Reading {
	r := Reading{Activity: reducer.ToolRunning, Detail: l.Foreground, memory: before.memory}
	r.memory.usesPaste = before.memory.usesPaste || l.Modes.Paste && !l.Modes.Alt
	line := l.beforeCursor()
	if l.Modes.Alt {
		r.NotPromptReason = "a full-screen program is running"
		return r
	}
	if l.Foreground != "" || r.memory.usesPaste && !l.Modes.Paste {
		r.NotPromptReason = l.Foreground + " is running"
		if l.Foreground == "" {
			r.memory.prompt, r.NotPromptReason = "", "a command is running"
		}
		if isQuestion(line) {
			r.Activity, r.Detail = reducer.AwaitingInput, "question"
		}
		return r
	}
	if q := d.readDialog(l, nil); q != nil && !l.Modes.Paste {
		return Reading{Activity: reducer.AwaitingInput, Detail: "question", Dialog: q, NotPromptReason: "dialog", memory: r.memory}
	}
	prompt, draft, ok := d.splitPrompt(l, line, before.memory.prompt)
	switch {
	case l.Hidden, isQuestion(line) && !l.Modes.Paste:
		r.Activity, r.Detail, r.NotPromptReason = reducer.AwaitingInput, "question", "it is asking a question"
	case ok && draft != "":
		r.Activity, r.Draft, r.HasDraft, r.NotPromptReason = reducer.Idle, draft, true, "draft"
	case ok:
		r.Activity, r.Prompt, r.memory.prompt = reducer.Idle, true, prompt
	default:
		r.Activity, r.NotPromptReason = withoutPrompt(l, before.Activity), "no prompt on the screen"
	}
	return r
}

// withoutPrompt returns what a program does that shows neither a prompt nor a question, and did so before.
func withoutPrompt(l *Look, before reducer.Activity) reducer.Activity {
	switch {
	case l.Modes.Paste:
		return reducer.Idle
	case before == "" || before == reducer.Starting:
		return reducer.Starting
	case before == reducer.Unknown:
		return reducer.Unknown
	}
	return reducer.Thinking
}

// splitPrompt splits line, the cursor's row up to the cursor, into prompt and draft. known is the last prompt that had
// nothing typed after it.
func (d *Driver) splitPrompt(l *Look, line, known string) (prompt, draft string, ok bool) {
	right := l.afterCursor()
	if strings.HasPrefix(skipRunes(l.line(l.CursorY), utf8.RuneCountInString(line)), "    ") {
		right = "" // a prompt at the right margin
	}
	if d.isContinuation(line, known) {
		return "", strings.TrimSpace(line + right), true
	}
	if known != "" {
		if rest, ok := strings.CutPrefix(line, known); ok {
			return known, strings.TrimSpace(rest + right), true
		}
		if above, ok := l.wrappedCommand(known); ok {
			return known, strings.TrimSpace(above + line + right), true
		}
	}
	for _, end := range promptEnds {
		if strings.HasSuffix(line, end) && isLikelyPrompt(line) {
			return line, right, true
		}
	}
	for _, end := range promptEnds {
		if before, rest, ok := strings.Cut(line, end); ok && isLikelyPrompt(before+end) {
			return before + end, strings.TrimSpace(rest + right), true
		}
	}
	// Another prompt: with bracketed paste on, any line that ends in a blank, if no prompt was known before.
	mayBePrompt := !blank(line) && strings.HasSuffix(line, " ") && !isQuestion(line)
	if mayBePrompt && l.Modes.Paste && known == "" {
		return line, right, true
	}
	return "", "", false
}

// wrappedCommand returns the text after prompt in the rows above the cursor, if they are full, so that the cursor's row
// continues them.
func (l *Look) wrappedCommand(prompt string) (text string, ok bool) {
	for y := l.CursorY - 1; y >= 0; y-- {
		line := l.line(y)
		if ansi.StringWidth(line) < l.Cols-1 {
			return "", false
		}
		if rest, ok := strings.CutPrefix(line, prompt); ok {
			return rest + text, true
		}
		text = line + text
	}
	return "", false
}

// isLikelyPrompt reports whether s may be a prompt: it is short, and neither a sentence nor indented.
func isLikelyPrompt(s string) bool {
	return len(s) <= 120 && !strings.HasPrefix(s, "   ") && strings.Count(strings.TrimSpace(s), " ") <= 5
}

// isContinuation reports whether line is a prompt for the rest of an input.
func (d *Driver) isContinuation(line, known string) bool {
	if strings.HasPrefix(line, "> ") && slices.Contains(shells, d.program) && !strings.HasPrefix(known, "> ") {
		return true
	}
	return slices.ContainsFunc(continuations, func(c string) bool { return strings.HasPrefix(line, c) && !strings.HasPrefix(known, c) })
}

// isQuestion reports whether line asks for something other than a command.
func isQuestion(line string) bool { return question.MatchString(strings.TrimRight(line, " ")) }

// question matches questions, some of which end like a prompt: "Really delete? >", "PIN> ".
var question = regexp.MustCompile(`(?i)(password|passphrase).*:$` +
	`|^[a-z ]*\b(password|passphrase|passcode|pin|otp|token)\b[a-z ]*[:>$#%]$` +
	`|\pL\? *[>$#%]$|['"]yes['"].*[:>$#%]$` +
	`|([[(][a-z]/n[])]|[[(]yes/no[])]|\(yes/no/\[fingerprint\]\)|\[y/n/q\]|\[n\])[:?>$#% ]*$`)

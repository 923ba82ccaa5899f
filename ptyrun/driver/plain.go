package driver

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
)

// What is known by name to be at a prompt: shells and interpreters, unless they are given something to run, and clients,
// whose arguments say where.
var (
	shells       = []string{"bash", "rbash", "sh", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "nu", "elvish", "xonsh"}
	interpreters = []string{"python", "ipython", "bpython", "node", "deno", "irb", "pry", "lua", "luajit", "ghci", "iex", "julia", "R", "scala", "jshell", "bc"}
	clients      = []string{"sqlite", "psql", "mysql", "mariadb", "duckdb", "redis-cli", "mongosh", "gdb", "lldb"}
)

// valueFlags are flags of shells that take the next argument.
var valueFlags = []string{"--rcfile", "--init-file", "-o", "+o", "-O", "+O"}

// isAtPrompt reports whether a program with such arguments is known to be a shell or a REPL.
func isAtPrompt(program string, args []string) bool {
	name := program
	if trimmed := strings.TrimRight(program, "0123456789."); trimmed != "" { // python3.12, sqlite3
		name = trimmed
	}
	isShell := slices.Contains(shells, name)
	switch {
	case slices.Contains(clients, name):
		return true
	case !isShell && !slices.Contains(interpreters, name):
		return false
	case !isShell && slices.Contains(args, "-i"):
		return args[0] == "-i" || !runsScript(args[:slices.Index(args, "-i")], false) // the prompt comes behind the script
	}
	return !runsScript(args, isShell)
}

// runsScript reports whether the arguments of a shell or an interpreter give it something to run: then what its screen asks
// is the script's.
func runsScript(args []string, isShell bool) bool {
	for i := 0; i < len(args); i++ {
		option, isOption := strings.CutPrefix(args[i], "-")
		switch {
		case isShell && slices.Contains(valueFlags, args[i]):
			i++
		case !isOption, option == "", option == "-":
			return true
		case strings.HasPrefix(option, "-"): // --norc
		case isShell && strings.Contains(option, "c"), !isShell && strings.ContainsAny(option[:1], "cmep"):
			return true
		}
	}
	return false
}

// readUnknown reads the screen of a program that nobody has described: only what it declares of itself counts.
func (d *Driver) readUnknown(l *Look) Reading {
	r := Reading{Activity: reducer.Unknown, Source: reducer.FromScreen, NotPromptReason: control.GateUnknown}
	for _, report := range l.Declared {
		says, ok := l.Declared.Program(report.App)
		if !ok {
			continue
		}
		r.Declared, r.Source, r.NotPromptReason = says, reducer.FromDeclared, control.GateUnknown
		switch says.State {
		case ansi.ProgramStateBlocked:
			r.Activity, r.Detail = reducer.Confirming, cmp.Or(strings.TrimSpace(says.Message), string(says.Kind), "unknown")
		case ansi.ProgramStateWorking:
			r.Activity = reducer.Thinking
		default:
			r.Activity = reducer.Idle
		}
		break
	}
	return r
}

func (d *Driver) readPlain(l *Look, before Reading) Reading {
	r := Reading{Activity: reducer.ToolRunning, Detail: l.Foreground, memory: before.memory}
	r.memory.usesPaste = before.memory.usesPaste || l.Modes.Paste && !l.Modes.Alt
	line := l.beforeCursor()
	if l.Modes.Alt {
		r.NotPromptReason = control.GateFullScreen
		return r
	}
	if l.Foreground != "" || r.memory.usesPaste && !l.Modes.Paste {
		r.NotPromptReason = control.GateCommand
		if l.Foreground == "" {
			r.memory.prompt = ""
		}
		if isQuestion(line) {
			r.Activity, r.Detail, r.Dialog = reducer.AwaitingInput, "question", d.lineQuestion(line)
		}
		return r
	}
	if q := d.readDialog(l, nil, ""); q != nil && !l.Modes.Paste {
		return Reading{Activity: reducer.AwaitingInput, Detail: "question", Dialog: q, NotPromptReason: control.GateDialog, memory: r.memory}
	}
	prompt, draft := d.splitPrompt(l, line, before.memory.prompt)
	switch {
	case l.Hidden, isQuestion(line) && !l.Modes.Paste:
		r.Activity, r.Detail, r.NotPromptReason, r.Dialog = reducer.AwaitingInput, "question", control.GateQuestion, d.lineQuestion(line)
	case draft != "":
		r.Activity, r.Draft, r.HasDraft, r.NotPromptReason = reducer.Idle, draft, true, control.GateDraft
	case prompt != "":
		r.Activity, r.Prompt, r.memory.prompt = reducer.Idle, true, prompt
	default:
		r.Activity, r.NotPromptReason = withoutPrompt(l, before.Activity), control.GateNoPrompt
		if r.Activity == reducer.Starting && l.solidRows(0, len(l.Lines)) == "" {
			r.NotPromptReason = control.GateStarting
		}
	}
	return r
}

// lineQuestion is what a line asks for, which takes any text: it has no options.
func (d *Driver) lineQuestion(line string) *ask.Question {
	q := &ask.Question{Dialog: "question", Prompt: strings.TrimSpace(line)}
	q.Fingerprint = d.fingerprint(q)
	return q
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
// nothing typed after it. An unknown prompt is short, and neither a sentence nor indented; or with bracketed paste on,
// any line that ends in a blank.
func (d *Driver) splitPrompt(l *Look, line, known string) (prompt, draft string) {
	right := l.afterCursor()
	if strings.HasPrefix(skipRunes(l.line(l.CursorY), utf8.RuneCountInString(line)), "    ") {
		right = "" // a prompt at the right margin
	}
	rest, isKnown := strings.CutPrefix(line, known)
	if !isKnown {
		rest, isKnown = strings.CutPrefix(l.wrappedAbove(known)+line, known)
	}
	m := somePrompt.FindString(line)
	switch {
	case known != "" && isKnown:
		prompt, draft = known, rest
	case continuation.MatchString(line), line == "> " && slices.Contains(shells, d.program):
		draft = line
	case m != "":
		prompt, draft = m, line[len(m):]
	case known == "" && l.Modes.Paste && !blank(line) && strings.HasSuffix(line, " "):
		prompt = line
	default:
		return "", "" // text behind the cursor is a draft only behind a prompt
	}
	return prompt, strings.TrimSpace(draft + right)
}

// wrappedAbove returns the rows above the cursor that its row continues, from a prompt on: each is full.
func (l *Look) wrappedAbove(prompt string) (text string) {
	for y := l.CursorY - 1; y >= 0 && ansi.StringWidth(l.line(y)) >= l.Cols-1; y-- {
		if text = l.line(y) + text; strings.HasPrefix(text, prompt) {
			return text
		}
	}
	return ""
}

// somePrompt matches a prompt, up to the last place where it may end; continuation matches one for the rest of an
// input.
var (
	somePrompt   = regexp.MustCompile(`^(?: {0,2}[^ ]+){0,5} {0,2}[^ ]*(?:[$#%❯»›>]|>>>) `)
	continuation = regexp.MustCompile(`^(?:[a-z]*(?:quote|doc|for|while|if|then|else|do|case|function|subst|pipe|cmdand|cmdor|subsh|param)|\.\.\.)>? $|^ +(?:\.\.\.|['"-])> `)
)

// isQuestion reports whether line asks for something other than a command.
func isQuestion(line string) bool { return question.MatchString(strings.TrimRight(line, " ")) }

// question matches questions, some of which end like a prompt: "Really delete? >", "PIN> ".
var question = regexp.MustCompile(`(?i)(password|passphrase).*:$` +
	`|^[a-z ]*\b(password|passphrase|passcode|pin|otp|token)\b[a-z ]*[:>$#%]$` +
	`|\pL\? *[>$#%]$|['"]yes['"].*[:>$#%]$` +
	`|([[(][a-z]/n[])]|[[(]yes/no[])]|\(yes/no/\[fingerprint\]\)|\[y/n/q\]|\[n\])[:?>$#% ]*$`)

package driver

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wrappers are programs that run the command after their options, with the options that take a value in the next word.
// "npm exec" counts as two wrappers.
var wrappers = map[string][]string{
	"env": {"-u", "-C", "--unset", "--chdir"}, "nice": {"-n", "--adjustment"}, "sudo": {"-u", "-g", "--user", "--group"},
	"nohup": nil, "setsid": nil, "exec": {"-p", "--package"}, "time": nil,
	"npx": {"-p", "--package"}, "bunx": nil, "pnpx": nil, "npm": nil, "pnpm": nil, "yarn": nil, "bun": nil, "dlx": nil, "x": nil,
	"node": {"-r", "--require", "--import"}, "tsx": {"-r", "--require", "--import"},
}

// ForCommand returns the driver for a command line: that of the agent it names, also after wrappers such as env, npx
// and node, else a plain one. An unknown command may be a wrapper: see [Driver.Recognise].
func ForCommand(argv []string) *Driver {
	d, _ := parseCommand(argv)
	return d
}

// Unshared returns the command line with the flag that gives the agent a server of its own.
func Unshared(argv []string) []string {
	d, args := parseCommand(argv)
	hasChosen := func(arg string) bool { return strings.HasPrefix(arg, d.unshared) || strings.HasPrefix(arg, "--remote") }
	if d.unshared == "" || slices.ContainsFunc(args, hasChosen) {
		return argv
	}
	return slices.Insert(slices.Clone(argv), len(argv)-len(args), d.unshared)
}

// parseCommand returns the driver, and the arguments of the agent.
func parseCommand(argv []string) (*Driver, []string) {
	program := ""
	for len(argv) > 0 {
		program = strings.TrimPrefix(filepath.Base(argv[0]), "-") // of a login shell
		for _, d := range agents {
			if slices.Contains(d.commands, program) || d.isPackage(argv[0]) {
				return d, argv[1:]
			}
		}
		valued, isWrapper := wrappers[program]
		if !isWrapper {
			break
		}
		argv = skipOptions(argv[1:], valued)
	}
	d := plain
	d.program = program
	return &d, nil
}

// isPackage reports whether s names the agent's package, such as "@openai/codex@latest", or is a path into it.
func (d *Driver) isPackage(s string) bool {
	for _, p := range d.packages {
		rest, ok := strings.CutPrefix(s, p)
		isNamed := ok && (rest == "" || rest[0] == '@' || rest[0] == '/')
		if isNamed || strings.Contains(s, "/node_modules/"+p+"/") {
			return true
		}
	}
	return false
}

// skipOptions skips options and assignments, up to "--".
func skipOptions(args, valued []string) []string {
	for len(args) > 0 && (strings.HasPrefix(args[0], "-") || strings.Contains(args[0], "=")) {
		if args[0] == "--" {
			return args[1:]
		}
		if slices.Contains(valued, args[0]) && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	return args
}

// Recognise returns the driver of the agent on the screen if d, chosen by ForCommand, is plain and its program may be a
// wrapper, a container or a remote shell. Otherwise it returns d. Once it has found an agent the result does not
// change.
func (d *Driver) Recognise(l Look) *Driver {
	if !d.Plain || slices.Contains(shells, d.program) || slices.Contains(repls, d.program) || strings.HasPrefix(d.program, "python") {
		return d
	}
	// The screen counts only while bracketed paste is on: a shell disables it while it runs a command.
	title, text := strings.TrimSpace(l.Title), strings.Join(l.Lines, "\n")
	for _, s := range signs {
		inTitle := s.isTitle && s.re.MatchString(title)
		onScreen := !s.isTitle && l.Modes.Paste && s.re.MatchString(text) && strings.Contains(text, s.andText)
		if inTitle || onScreen {
			return s.agent
		}
	}
	return d
}

// signs are texts that only one agent shows.
var signs = []struct {
	agent   *Driver
	isTitle bool // in the title, else on the screen
	re      *regexp.Regexp
	andText string // also on the screen
}{
	{&claude, true, regexp.MustCompile(`^[✳\x{2801}-\x{28ff}].*Claude Code$`), ""},
	{&codex, true, regexp.MustCompile(`\] Action Required \| `), ""},
	{&gemini, true, regexp.MustCompile(`^(◇  Ready \(|✦  Working|✋  Action Required \()`), ""},
	{&opencode, true, regexp.MustCompile(`^(OpenCode$|OC \| )`), ""},
	{&codex, false, regexp.MustCompile(`(?m)^ *>_ OpenAI Codex \(v`), ""},
	{&codex, false, regexp.MustCompile(`(?m)^ *Folder access$`), "Trust this folder? Codex"},
	{&claude, false, regexp.MustCompile(`(?m)^ *Quick safety check:`), "Claude Code'll be able to"},
	{&claude, false, regexp.MustCompile(`(?m)^ *╭─.*─ Claude Code`), ""},
	{&gemini, false, regexp.MustCompile(`Gemini CLI v`), "▝▜▄"},
}

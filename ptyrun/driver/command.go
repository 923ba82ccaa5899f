package driver

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wrappers are programs that run the command behind their options, and their options that have a value in a
// word of its own. "npm exec" is two of them.
var wrappers = map[string][]string{
	"env": {"-u", "-C", "--unset", "--chdir"}, "nice": {"-n", "--adjustment"}, "sudo": {"-u", "-g", "--user", "--group"},
	"nohup": nil, "setsid": nil, "exec": {"-p", "--package"}, "time": nil,
	"npx": {"-p", "--package"}, "bunx": nil, "pnpx": nil, "npm": nil, "pnpm": nil, "yarn": nil, "bun": nil, "dlx": nil, "x": nil,
	"node": {"-r", "--require", "--import"}, "tsx": {"-r", "--require", "--import"},
}

// ForCommand returns the driver for a command line: the agent that it names, also behind env, nice, npx, node and their
// like, else a plain one. A command that it does not know may be a wrapper: see [Driver.Recognise].
func ForCommand(argv []string) *Driver {
	program := ""
	for len(argv) > 0 {
		program = strings.TrimPrefix(filepath.Base(argv[0]), "-") // a login shell's name begins so
		for _, d := range agents {
			if slices.Contains(d.commands, program) || d.isPackage(argv[0]) {
				return d
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
	return &d
}

// isPackage reports whether s names the agent's package, as in "@openai/codex@latest", or a path into an installed one.
func (d *Driver) isPackage(s string) bool {
	for _, p := range d.packages {
		rest, ok := strings.CutPrefix(s, p)
		if ok && (rest == "" || rest[0] == '@' || rest[0] == '/') || strings.Contains(s, "/node_modules/"+p+"/") {
			return true
		}
	}
	return false
}

// skipOptions passes over options and assignments. "--" ends them.
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

// Recognise returns the agent that l shows, where d is plain and its program is not known to be a shell or
// a REPL: a wrapper, a container, a remote shell. It is for drivers chosen by ForCommand; the answer stays
// once it is not plain.
func (d *Driver) Recognise(l Look) *Driver {
	if !d.Plain || slices.Contains(shells, d.program) || slices.Contains(repls, d.program) || strings.HasPrefix(d.program, "python") {
		return d
	}
	// The screen counts only where the program itself has asked for bracketed paste, as a shell does
	// not while it runs something.
	title, shown := strings.TrimSpace(l.Title), strings.Join(l.Lines, "\n")
	for _, s := range signs {
		inTitle := s.isTitle && s.re.MatchString(title)
		onScreen := !s.isTitle && l.Modes.Paste && s.re.MatchString(shown) && strings.Contains(shown, s.andText)
		if inTitle || onScreen {
			return s.agent
		}
	}
	return d
}

// signs are what only one agent shows.
var signs = []struct {
	agent   *Driver
	isTitle bool // it is in the title, else on the screen
	re      *regexp.Regexp
	andText string
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

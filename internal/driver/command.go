package driver

import (
	"slices"
	"strings"
)

// ForCommand returns the driver for a command line: the agent that it names,
// also behind env, nice, npx, node and their like, else a plain one. A command
// that it does not know may be a wrapper: see [Driver.Recognise].
func ForCommand(argv []string) *Driver {
	program := ""
	for range 8 { // wrappers around wrappers
		if len(argv) == 0 {
			break
		}
		program = baseName(argv[0])
		if d := agentNamed(program); d != nil {
			return d
		}
		if d := agentIn(argv[0]); d != nil {
			return d
		}
		rest, ok := unwrap(program, argv[1:])
		if !ok {
			break
		}
		argv = rest
	}
	d := plain
	d.program = program
	return &d
}

// baseName is a program's name without directories, and without what Windows
// adds.
func baseName(path string) string {
	if at := strings.LastIndexAny(path, `/\`); at >= 0 {
		path = path[at+1:]
	}
	low := strings.ToLower(path)
	for _, end := range []string{".exe", ".cmd", ".ps1", ".bat"} {
		if strings.HasSuffix(low, end) {
			return path[:len(path)-len(end)]
		}
	}
	return strings.TrimPrefix(path, "-") // a login shell's name
}

func agentNamed(name string) *Driver {
	for _, d := range agents() {
		if slices.Contains(d.commands, name) {
			return d
		}
	}
	return nil
}

// agentIn returns the agent whose package s names: "@openai/codex@latest", or a
// path into an installed one.
func agentIn(s string) *Driver {
	s = strings.ReplaceAll(s, `\`, "/")
	for _, d := range agents() {
		for _, p := range d.packages {
			rest, ok := strings.CutPrefix(s, p)
			if ok && (rest == "" || rest[0] == '@' || rest[0] == '/') || strings.Contains(s, "/node_modules/"+p+"/") {
				return d
			}
		}
	}
	return nil
}

// unwrap is the command that program runs, given its arguments; false: program
// is no wrapper that is known.
func unwrap(program string, args []string) ([]string, bool) {
	switch program {
	case "env":
		for len(args) > 0 && (strings.HasPrefix(args[0], "-") || strings.Contains(args[0], "=")) {
			args = skipOption(args, []string{"-u", "-C", "--unset", "--chdir"})
		}
	case "nice":
		args = skipOptions(args, []string{"-n", "--adjustment"})
	case "ionice":
		args = skipOptions(args, []string{"-c", "-n"})
	case "nohup", "setsid", "exec", "command", "time", "unbuffer", "caffeinate", "winpty", "firejail":
		args = skipOptions(args, nil)
	case "stdbuf":
		args = skipOptions(args, []string{"-i", "-o", "-e"})
	case "sudo", "doas":
		args = skipOptions(args, []string{"-u", "-g", "--user", "--group"})
	case "timeout":
		if args = skipOptions(args, []string{"-s", "-k", "--signal", "--kill-after"}); len(args) > 0 {
			args = args[1:]
		}
	case "npx", "bunx", "pnpx":
		args = skipOptions(args, []string{"-p", "--package"})
	case "npm", "pnpm", "yarn", "bun", "mise", "volta":
		if len(args) == 0 || !slices.Contains([]string{"exec", "x", "dlx", "run"}, args[0]) {
			return nil, false
		}
		args = skipOptions(args[1:], []string{"-p", "--package"})
	case "node", "nodejs", "deno", "tsx":
		args = skipOptions(args, []string{"-r", "--require", "--import"})
		if len(args) > 0 && args[0] == "run" {
			args = args[1:]
		}
	case "sh", "bash", "zsh", "dash", "ksh":
		return shellCommand(args)
	default:
		return nil, false
	}
	return args, len(args) > 0
}

// skipOptions passes over options; those in valued have their value in a word
// of its own. "--" ends them.
func skipOptions(args, valued []string) []string {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		if args[0] == "--" {
			return args[1:]
		}
		args = skipOption(args, valued)
	}
	return args
}

func skipOption(args, valued []string) []string {
	if slices.Contains(valued, args[0]) && len(args) > 1 {
		return args[2:]
	}
	return args[1:]
}

// shellCommand is the simple command of "sh -c 'exec claude …'". A script of
// more than one command is left to Recognise.
func shellCommand(args []string) ([]string, bool) {
	for i, a := range args {
		if !strings.HasPrefix(a, "-") {
			return nil, false
		}
		if strings.HasSuffix(a, "c") && !strings.HasPrefix(a, "--") && i+1 < len(args) {
			script := args[i+1]
			if strings.ContainsAny(script, ";&|<>`$()\n") {
				return nil, false
			}
			words := strings.Fields(script)
			for j := range words {
				words[j] = strings.Trim(words[j], `"'`)
			}
			for len(words) > 0 && strings.Contains(words[0], "=") {
				words = words[1:]
			}
			return words, len(words) > 0
		}
	}
	return nil, false
}

// Recognise returns the agent that l shows, where d is plain and its program is
// not known to be a shell or a REPL: a wrapper, a container, a remote shell. It
// is for drivers chosen by ForCommand; the answer stays once it is not plain.
func (d *Driver) Recognise(l Look) *Driver {
	if !d.Plain || slices.Contains(shells, d.program) || slices.Contains(repls, d.program) || strings.HasPrefix(d.program, "python") {
		return d
	}
	title := strings.TrimSpace(l.Title)
	switch {
	case strings.HasSuffix(title, "Claude Code") && (strings.HasPrefix(title, "✳") || startsBraille(title)):
		return &claude
	case strings.Contains(title, "] Action Required | "):
		return &codex
	case strings.HasPrefix(title, "◇  Ready (") || strings.HasPrefix(title, "✦  Working") || strings.HasPrefix(title, "✋  Action Required ("):
		return &gemini
	case title == "OpenCode" || strings.HasPrefix(title, "OC | "):
		return &opencode
	}
	// Before there is a title, and for Codex, whose title is a directory: a
	// dialog or a banner of its own, on a screen on which the program itself has
	// asked for bracketed paste as a shell does not while it runs something.
	if !l.Modes.Paste {
		return d
	}
	for _, line := range l.Lines {
		s := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(s, ">_ OpenAI Codex (v"), s == "Folder access" && hasRow(l, "Trust this folder? Codex"):
			return &codex
		case strings.HasPrefix(s, "Quick safety check:") && hasRow(l, "Claude Code'll be able to"), strings.HasPrefix(s, "╭─") && strings.Contains(s, "─ Claude Code"):
			return &claude
		case strings.Contains(s, "Gemini CLI v") && hasRow(l, "▝▜▄"):
			return &gemini
		}
	}
	return d
}

func hasRow(l Look, text string) bool {
	return slices.ContainsFunc(l.Lines, func(s string) bool { return strings.Contains(s, text) })
}

package driver

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/agentteammail/atm/ptyrun/driver/agents"
	"github.com/agentteammail/atm/reducer"
)

// Programs that run the command among their arguments. That of a starter begins with the first word that is none of its own
// flags and variables; a wrapper finds it somewhere.
var (
	starters = []string{"env", "nice", "sudo", "nohup", "setsid", "exec", "time", "busybox"}
	wrappers = slices.Concat(starters, []string{"npx", "bunx", "pnpx", "npm", "pnpm", "yarn", "bun", "node", "tsx"})
)

// ForCommand returns the driver for a command line: that of the agent it names, also after wrappers such as env, npx
// and node, or plain for a shell or REPL, else the one of an unknown program. That may be a wrapper: see
// [Driver.Recognise].
func ForCommand(argv []string) *Driver {
	d, _ := parseCommand(argv)
	return d
}

// Unshared returns the command line with the flag that gives the agent a server of its own, if its sessions would
// otherwise share one that has the environment of the first. isScript: the first word is a script, which may be told by
// its arguments which program to run, and hand the others on.
func Unshared(argv []string, isScript bool) []string {
	d, args := parseScript(argv, isScript)
	c := &d.file.Command
	if c.Unshared == "" || !mayAdd(c, args, c.IsUnshared) {
		return argv
	}
	return slices.Insert(slices.Clone(argv), len(argv)-len(args), c.Unshared)
}

// mayAdd reports whether the arguments begin a session and none of them begins with any of barred.
func mayAdd(c *agents.Command, args, barred []string) bool {
	isBarred := func(arg string) bool { return startsAny(arg, barred) }
	return !slices.ContainsFunc(args, isBarred) && !slices.Contains(c.Subcommands, subcommand(c, args))
}

// WithServer returns the command line that starts a server for this agent alone, which listens on a socket, and the one
// with which the program uses it; ok is false if it knows no such server, or its command line leaves no choice. isScript
// is as for Unshared.
func WithServer(argv []string, isScript bool, socket string) (server, program []string, ok bool) {
	d, args := parseScript(argv, isScript)
	s := &d.file.Server
	if s.Start == nil || !mayAdd(&d.file.Command, args, s.Barred) {
		return nil, argv, false
	}
	at := len(argv) - len(args)
	fill := func(words []string) (filled []string) {
		for _, word := range words {
			filled = append(filled, strings.ReplaceAll(word, "{socket}", socket))
		}
		return filled
	}
	use := fill(s.Use)
	if !slices.ContainsFunc(args, func(arg string) bool { return startsAny(arg, s.IsDir) }) {
		use = append(use, s.Dir...)
	}
	return append(slices.Clone(argv[:at]), fill(s.Start)...), slices.Insert(slices.Clone(argv), at, use...), true
}

// Newest stands for the newest conversation in a directory.
const Newest = reducer.Newest

// ErrChosen means that the command line says itself which conversation it continues.
var ErrChosen = errors.New("its command chooses a conversation itself")

// ErrNoID means that the program continues only the newest conversation in a directory.
var ErrNoID = errors.New("it continues no conversation by its id")

// plainID is an id that cannot be taken for a flag.
var plainID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)

// Resume returns the command line with the arguments that continue a conversation: the one with that id, or with Newest
// the newest one in the directory. last names the driver of the program that had it, if that is known. isScript is as
// for Unshared.
func Resume(argv []string, isScript bool, id, last string) ([]string, error) {
	d, args := parseScript(argv, isScript)
	resume := &d.file.Resume
	switch err := d.mayChoose(args); {
	case err != nil:
		return argv, err
	case last != "" && last != d.Name:
		return argv, fmt.Errorf("its last conversation was one of %s", last)
	case resume.ID == nil && resume.Last == nil:
		return argv, fmt.Errorf("%s cannot continue a conversation", d.Name)
	case id == Newest && resume.Last == nil:
		return argv, errors.New("no event has told the id of its conversation")
	case id == Newest:
		return insert(argv, args, resume.Last, ""), nil
	case resume.ID == nil:
		return argv, ErrNoID
	case !plainID.MatchString(id):
		return argv, fmt.Errorf("its conversation has the id %q, which might be a flag", id)
	}
	return insert(argv, args, resume.ID, id), nil
}

// Fork returns the command line with the arguments that go on from a copy of a conversation. isScript is as for Unshared.
func Fork(argv []string, isScript bool, id string) ([]string, error) {
	d, args := parseScript(argv, isScript)
	switch err := d.mayChoose(args); {
	case err != nil:
		return argv, err
	case d.file.Resume.Fork == nil:
		return argv, fmt.Errorf("%s cannot go on from a copy of a conversation", d.Name)
	case !plainID.MatchString(id):
		return argv, fmt.Errorf("%q is no id of a conversation", id)
	}
	return insert(argv, args, d.file.Resume.Fork, id), nil
}

// mayChoose returns why nothing but the command itself chooses the conversation of a program with these arguments.
func (d *Driver) mayChoose(args []string) error {
	isChosen := func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return strings.HasPrefix(arg, "-") && slices.Contains(d.file.Resume.IsChosen, name)
	}
	first := subcommand(&d.file.Command, args)
	switch {
	case d.Plain:
		return errors.New("its command names no program that is known to continue conversations")
	case slices.ContainsFunc(args, isChosen), first != "" && slices.Contains(d.file.Resume.IsChosen, first), slices.Contains(d.file.Command.Subcommands, first):
		return ErrChosen
	}
	return nil
}

// insert returns a command line with more in front of the program's arguments, in which {id} stands for an id.
func insert(argv, args, more []string, id string) []string {
	more = slices.Clone(more)
	for i := range more {
		more[i] = strings.ReplaceAll(more[i], "{id}", id)
	}
	return slices.Insert(slices.Clone(argv), len(argv)-len(args), more...)
}

// subcommand returns the first of the arguments that is neither a flag nor a flag's value.
func subcommand(c *agents.Command, args []string) string {
	for i := 0; i < len(args); i++ {
		if !strings.HasPrefix(args[i], "-") {
			return args[i]
		}
		if slices.Contains(c.ValueFlags, args[i]) {
			i++
		}
	}
	return ""
}

// parseScript is parseCommand, but of a script it takes the first argument that names an agent.
func parseScript(argv []string, isScript bool) (*Driver, []string) {
	d, args := parseCommand(argv)
	for i := 1; d.Plain && isScript && i < len(argv); i++ {
		for _, a := range drivers() {
			if slices.Contains(a.file.Command.Names, argv[i]) {
				return a, argv[i+1:]
			}
		}
	}
	return d, args
}

// parseCommand returns the driver, and the arguments of the agent.
func parseCommand(argv []string) (*Driver, []string) {
	for i, arg := range argv {
		for _, agent := range drivers() {
			if c := &agent.file.Command; slices.Contains(c.Names, programOf(arg)) || isPackage(c, arg) {
				return agent, argv[i+1:]
			}
		}
		if !slices.Contains(wrappers, programOf(argv[0])) {
			break
		}
	}
	for i, arg := range argv {
		if isOfStarter := i > 0 && (strings.HasPrefix(arg, "-") || strings.Contains(arg, "=")); isOfStarter {
			continue
		}
		program := programOf(arg)
		if isAtPrompt(program, argv[i+1:]) {
			plain, _ := Named("plain")
			d := *plain
			d.program = program
			return &d, nil
		}
		if !slices.Contains(starters, program) {
			break
		}
	}
	none, _ := Named(agents.None)
	return none, nil
}

// programOf returns the program that a word of a command line names, also as a login shell.
func programOf(word string) string { return strings.TrimPrefix(filepath.Base(word), "-") }

// isPackage reports whether s names one of the agent's npm packages, such as "@openai/codex@latest", or is a path into it.
func isPackage(c *agents.Command, s string) bool {
	return slices.ContainsFunc(c.Packages, func(name string) bool {
		rest, ok := strings.CutPrefix(s, name)
		isNamed := ok && (rest == "" || rest[0] == '@' || rest[0] == '/')
		return isNamed || strings.Contains(s, "/node_modules/"+name+"/")
	})
}

// Recognise returns the driver of the agent on the screen if d is that of an unknown program, which may be a wrapper, a
// container or a remote shell. Otherwise it returns d. Once it has found an agent the result does not change.
func (d *Driver) Recognise(l Look) *Driver {
	if !d.Unknown {
		return d
	}
	shown := strings.TrimSpace(l.Title) + "\n"
	if l.Modes.Paste { // a shell disables it while it runs a command
		shown += strings.Join(l.Lines, "\n")
	}
	for _, agent := range drivers() {
		_, declares := l.Declared.Program(agent.screen.DeclaresAs)
		if declares || l.matches(agent.screen.Shown, "screen.shown", shown) {
			return agent
		}
	}
	return d
}

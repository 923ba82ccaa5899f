package command

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/mailbox/letter"
)

// A Line is a command line as urfave/cli wants it: flags before words. What the
// flags say is read by urfave.
type Line struct {
	Command *cli.Command // the innermost verb; nil: none is named
	Path    []string     // its names: "team", "add"
	Words   []string     // what is left: neither verb nor flag
	Help    bool         // --help
	JSON    bool         // --json: an error is to be JSON, even that of this line

	app           *cli.App
	verbs         []int    // where in the command line the verbs stand
	global, flags []string // as "--name=value"
}

// UnknownCommandError says that no verb has this name.
type UnknownCommandError struct{ Name string }

func (e *UnknownCommandError) Error() string { return fmt.Sprintf("unknown command %q", e.Name) }

// Args are the arguments for cli.App.Run.
func (l *Line) Args() []string {
	return slices.Concat([]string{l.app.Name}, l.global, l.Path, l.flags, []string{"--"}, l.Words)
}

// Parse sorts the words behind the program's name: first it looks for the verb, then
// for flags, so that a flag means the same wherever it stands. The Line is there even
// with an error, for --json.
func Parse(app *cli.App, words []string) (*Line, error) {
	l := &Line{app: app}
	end := slices.Index(words, "--")
	if end < 0 {
		end = len(words)
	}
	l.JSON = slices.Contains(words[:end], "--json")
	if err := l.findVerb(words[:end]); err != nil {
		return l, err
	}
	before := l.wordsBeforeCommand()
	for i := 0; i < end; i++ {
		if slices.Contains(l.verbs, i) {
			continue
		}
		if isFlag(words[i]) {
			used, err := l.takeFlag(words[i], words[i+1:end])
			if err != nil {
				return l, err
			}
			i += used
			continue
		}
		l.Words = append(l.Words, words[i])
		if before > 0 && len(l.Words) > before {
			end = i + 1 // the rest is a command line of somebody else's
		}
	}
	if end < len(words) && words[end] == "--" {
		end++
	}
	l.Words = append(l.Words, words[end:]...)
	if l.Help || l.Command == nil {
		return l, nil
	}
	return l, l.checkWords()
}

// isFlag reports whether a word can only be a flag: "-" is stdin, and an item of
// a list or a line of a diff is text.
func isFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && word[1] != ' ' && !strings.HasPrefix(word, "--- ")
}

// findVerb finds the words that name the verb and its sub.
func (l *Line) findVerb(words []string) error {
	commands := l.app.Commands
	for i, word := range words {
		at := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(word) })
		if isFlag(word) || i > 0 && l.takesNext(words[i-1], at >= 0) {
			continue
		}
		if at < 0 && l.Command == nil {
			return &UnknownCommandError{word}
		}
		if at < 0 {
			return nil
		}
		l.Command, l.verbs = commands[at], append(l.verbs, i)
		l.Path = append(l.Path, l.Command.Name)
		if commands = l.Command.Subcommands; len(commands) == 0 {
			return nil
		}
	}
	return nil
}

// takesNext reports whether a word is a flag and the next one its value. A flag that
// stands before its verb is not known yet: then only a verb is no value.
func (l *Line) takesNext(word string, verbFollows bool) bool {
	if !isFlag(word) || strings.Contains(word, "=") {
		return false
	}
	if f := l.find(word); f != nil {
		return takesValue(f)
	}
	return !verbFollows
}

// find is this verb's or the app's flag that a word "--name" or "--name=value" means.
func (l *Line) find(word string) cli.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	flags := l.app.Flags
	if l.Command != nil {
		flags = slices.Concat(l.Command.Flags, flags)
	}
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func takesValue(f cli.Flag) bool {
	_, isBool := f.(*cli.BoolFlag)
	return !isBool
}

// takeFlag takes a flag, and returns how many of the words behind it are its value.
func (l *Line) takeFlag(word string, behind []string) (used int, err error) {
	typed, value, assigned := strings.Cut(word, "=")
	f := l.find(word)
	if f == nil {
		l.flags = append(l.flags, word) // urfave takes "-al" apart, or refuses it
		return 0, nil
	}
	next := ""
	if len(behind) > 0 {
		next = behind[0]
	}
	timeout := l.find("timeout")
	waits := strings.HasPrefix(f.Names()[0], "wait") && timeout != nil
	if !assigned && len(behind) > 0 && (takesValue(f) && (!isFlag(next) || l.find(next) == nil) || waits && isDuration(next)) {
		value, used = next, 1
	}
	if waits && isDuration(value) {
		l.add(timeout, value)
		value = ""
	}
	switch {
	case takesValue(f) && (!assigned && used == 0 || value == "" && slices.Contains(l.app.Flags, f)):
		return 0, Usage("%s needs a value", typed)
	case !takesValue(f) && used == 0 && (next == "true" || next == "false"):
		return 0, Usage("%s takes no value, and %q can be nothing else", typed, next).
			WithHint("%s=%s; a text goes into quotes, or behind --", typed, next)
	case f.Names()[0] == "help":
		l.Help = true
	case !takesValue(f) && value == "":
		l.add(f, "true")
	default:
		l.add(f, value)
	}
	return used, nil
}

func (l *Line) add(f cli.Flag, value string) {
	word := "--" + f.Names()[0] + "=" + value
	if slices.Contains(l.app.Flags, f) {
		l.global = append(l.global, word)
	} else {
		l.flags = append(l.flags, word)
	}
}

// checkWords counts what is left by ArgsUsage.
func (l *Line) checkWords() error {
	least, most := 0, 0
	for _, field := range strings.Fields(l.Command.ArgsUsage) {
		if !strings.HasPrefix(field, "[") {
			least++
		}
		if strings.Contains(field, "…") {
			most = 1 << 20
		}
		most++
	}
	path := l.app.Name + " " + strings.Join(l.Path, " ")
	if l.Command.Args || least <= len(l.Words) && len(l.Words) <= most {
		return nil
	}
	if len(l.Words) < least {
		example, _, _ := strings.Cut(l.Command.UsageText, "\n")
		return Usage("%s needs %s", path, l.Command.ArgsUsage).WithHint("%s", example)
	}
	e := Usage("%q is one argument too many for %s", clipped(l.Words[most]), path).WithHint("%s --help", path)
	var subs []string
	for _, sub := range l.Command.VisibleCommands() {
		subs = append(subs, sub.Name)
	}
	if near, ok := Nearest(l.Words[most], subs); ok {
		e.WithHint("did you mean \"%s %s\"?", path, near).WithCandidates(near)
	}
	return e
}

// wordsBeforeCommand is how many words stand before a command line of somebody
// else's, where the verb takes one; 0: it takes none.
func (l *Line) wordsBeforeCommand() int {
	if l.Command == nil {
		return 0
	}
	fields := strings.Fields(l.Command.ArgsUsage)
	return max(0, slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(strings.Trim(f, "["), "CMD") }))
}

var badValue = regexp.MustCompile(`^invalid(?: boolean)? value "(.*)" for (?:flag )?-([a-z-]+): (.*)$`)

// UsageError says in our words what urfave found wrong with a flag.
func UsageError(c *cli.Context, err error, _ bool) error {
	if name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); unknown {
		return unknownFlag(c, name)
	}
	m := badValue.FindStringSubmatch(err.Error())
	if m == nil {
		return Usage("%s", err)
	}
	if m[3] == "parse error" {
		return Usage("%s does not take %q", dashed(m[2]), clipped(m[1]))
	}
	return Usage("%s: %q is %s", dashed(m[2]), clipped(m[1]), m[3])
}

// unknownFlag says what was probably meant by a flag that is not there.
func unknownFlag(c *cli.Context, name string) error {
	e := Usage("unknown flag %s for %s", dashed(clipped(name)), c.Command.HelpName)
	known := map[string]string{}
	for _, f := range slices.Concat(c.Command.Flags, c.App.Flags) {
		for _, n := range f.Names() {
			known[n] = dashed(f.Names()[0])
		}
	}
	if near, ok := Nearest(name, slices.Sorted(maps.Keys(known))); ok {
		return e.WithHint("did you mean %s?", known[near]).WithCandidates(known[near])
	}
	if strings.Contains(c.Command.ArgsUsage, "TEXT") {
		return e.WithHint("text that begins with - goes behind --; %s --help lists the flags", c.Command.HelpName)
	}
	return e
}

// Meant is a flag that is not there but is often typed. hint says what was meant.
func Meant(name, hint string) cli.Flag {
	return &cli.BoolFlag{Name: name, Hidden: true, Action: func(c *cli.Context, _ bool) error {
		return Usage("%s has no %s", c.Command.HelpName, dashed(name)).WithHint("%s", hint)
	}}
}

// MeantVerb is a verb that is not there but is often typed: all its names are
// answered with a hint that says what was meant.
func MeantVerb(hint, name string, aliases ...string) *cli.Command {
	return &cli.Command{
		Name: name, Aliases: aliases, Hidden: true, Args: true,
		Action: func(c *cli.Context) error {
			return Usage("unknown command %q", strings.TrimPrefix(c.Command.HelpName, c.App.Name+" ")).WithHint("%s", hint)
		},
	}
}

// dashed is a flag's name or alias as it is typed.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// clipped shortens a word that somebody typed for a message of one line.
func clipped(s string) string { return letter.Clip(s, 40) }

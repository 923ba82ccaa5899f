package cmdline

import (
	"flag"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/mailbox/letter"
)

// NoCommand is for words of other tools that are no commands here: whoever types one gets the hint.
func NoCommand(names, hint string) *cli.Command {
	all := strings.Fields(names)
	return &cli.Command{
		Name: all[0], Aliases: all[1:], Usage: hint, Hidden: true, SkipFlagParsing: true, Args: true,
		Action: func(c *cli.Context) error {
			return failure.Usage("unknown command %q", strings.Join(LineOf(c).names, " ")).WithHint("%s", hint)
		},
	}
}

// A misnomer is a flag of other tools that is none here.
type misnomer struct {
	cli.BoolFlag
	hint string
}

// NoFlag is for names of other tools' flags: whoever types one gets the hint.
func NoFlag(names, hint string) cli.Flag {
	all := strings.Fields(names)
	return &misnomer{cli.BoolFlag{Name: all[0], Aliases: all[1:], Hidden: true}, hint}
}

// Apply does nothing: no command has the flag, whoever asks for its value.
func (*misnomer) Apply(*flag.FlagSet) error { return nil }

// UnknownCommand is the error for a command that atm does not have.
func UnknownCommand(app *cli.App, name string) *failure.Error {
	e := failure.Usage("unknown command %q", letter.Clip(name, 40))
	if c := app.Command(strings.ReplaceAll(name, "_", "-")); c != nil && c.Hidden {
		return e.WithHint("%s", c.Usage)
	}
	if near := meantCommands(app, name); near != "" {
		return e.WithHint("did you mean %s?", near).WithCandidates(strings.Split(strings.ReplaceAll(near, `"`, ""), " or ")...)
	}
	return suggest(e, name, commandNames(app.VisibleCommands()), "commands: "+listed(app.VisibleCommands(), " "))
}

// meantCommands finds the commands in a name such as list_messages or send-message.
func meantCommands(app *cli.App, name string) string {
	var found []string
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '-' || r == '_' }) {
		if c := app.Command(part); c != nil && !c.Hidden && part != name && !slices.Contains(found, strconv.Quote(c.HelpName)) {
			found = append(found, strconv.Quote(c.HelpName))
		}
	}
	return strings.Join(found, " or ")
}

// UnknownWord is the error for a word that a command does not take.
func UnknownWord(program *cli.App, c *cli.Command, word string) *failure.Error {
	subs, overview := c.VisibleCommands(), Example(c)
	e := failure.Usage("unexpected argument %q for %s", letter.Clip(word, 40), Synopsis(c))
	if len(subs) > 0 {
		overview = c.HelpName + " " + listed(subs, "|")
		e = failure.Usage("unknown command \"%s %s\"", strings.TrimPrefix(c.HelpName, program.HelpName+" "), letter.Clip(word, 40))
	}
	if hint := Meant(program, c, word); hint != "" {
		return e.WithHint("%s", hint)
	}
	return suggest(e, word, commandNames(subs), overview)
}

// Meant says what a word may mean that a command does not know: "done" behind "ls" is a flag, "agents" another
// command. "" for all other words.
func Meant(program *cli.App, c *cli.Command, word string) string {
	if word == "help" {
		return c.HelpName + " --help"
	}
	l := &Line{Command: c, app: program}
	if f := l.flag("--" + word); f != nil && slices.Contains(c.Flags, f) {
		if other, ok := f.(*misnomer); ok {
			return other.hint
		}
		typed, _ := FlagUsage(f)
		return c.HelpName + " " + typed
	}
	switch other := program.Command(word); {
	case other == nil:
		return ""
	case other == c: // list messages
		return c.HelpName
	case other.Hidden:
		return other.Usage
	default:
		return "did you mean " + strconv.Quote(Synopsis(other)) + "?"
	}
}

func unknownFlag(c *cli.Command, flag string) *failure.Error {
	return failure.Usage("unknown flag %s for %s", letter.Clip(flag, 40), c.HelpName)
}

// suggestFlag is the error for an unknown flag.
func (l *Line) suggestFlag(flag string) error {
	c, known, overview := l.Command, map[string]string{}, Synopsis(l.Command)+" takes"
	for _, f := range slices.Concat(c.VisibleFlags(), l.app.VisibleFlags()) {
		if f == VersionFlag && c.Name != "" {
			continue
		}
		for _, name := range f.Names() {
			known[name] = "--" + f.Names()[0]
		}
	}
	visible := c.VisibleFlags()
	if len(visible) == 0 {
		visible = l.app.VisibleFlags()
	}
	for _, f := range visible {
		typed, _ := FlagUsage(f)
		overview += " " + typed
	}
	if strings.Contains(c.ArgsUsage, "TEXT") {
		overview += "; text that begins with - goes after --"
	}
	return suggest(unknownFlag(c, flag), strings.TrimLeft(flag, "-"), known, overview)
}

// suggest adds a hint: the nearest of the known names, which stand for what to type, else an overview of them.
func suggest(e *failure.Error, word string, known map[string]string, overview string) *failure.Error {
	if near, ok := failure.Nearest(word, slices.Sorted(maps.Keys(known))); ok {
		return e.WithHint("did you mean %s?", known[near]).WithCandidates(strings.Trim(known[near], `"`))
	}
	return e.WithHint("%s", overview)
}

func commandNames(commands []*cli.Command) map[string]string {
	known := map[string]string{}
	for _, c := range commands {
		for _, name := range c.Names() {
			known[name] = strconv.Quote(c.HelpName)
		}
	}
	return known
}

func listed(commands []*cli.Command, separator string) string {
	var names []string
	for _, c := range commands {
		names = append(names, c.Name)
	}
	return strings.Join(names, separator)
}

// BadValue is the error for a value that urfave/cli or a flag refuses. It says what the flag takes.
func BadValue(c *cli.Context, err error) error {
	parts := regexp.MustCompile(`(?s)^(invalid (?:boolean )?value )(".*") for (?:flag )?-([^ :]+)(.*)$`).FindStringSubmatch(err.Error())
	if parts == nil { // of several forms of a flag
		return failure.Usage("%s", strings.Replace(err.Error(), "Cannot", "cannot", 1)).WithHint("leave one out")
	}
	value, name, why := letter.Clip(parts[2], 42), parts[3], strings.TrimSuffix(parts[4], ": parse error")
	if strings.HasSuffix(why, errTwice.Error()) {
		return failure.Usage("the text is given twice: the second is %s", value).WithHint("leave one out")
	}
	e := failure.Usage("%s%s for --%s%s", parts[1], value, name, why)
	if f := (&Line{Command: c.Command, app: c.App}).flag("--" + name); f != nil {
		typed, usage := FlagUsage(f)
		e.WithHint("%s: %s", typed, usage)
	}
	return e
}

// Synopsis returns a command and the names of its arguments.
func Synopsis(c *cli.Command) string { return strings.TrimSpace(c.HelpName + " " + c.ArgsUsage) }

// Example returns the first example of a command, without its explanation.
func Example(c *cli.Command) string {
	example, _, _ := strings.Cut(c.UsageText, "\n")
	example, _, _ = strings.Cut(example, "    ")
	return example
}

package cmdline

import (
	"cmp"
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
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
func UnknownCommand(program *cli.App, name string) *failure.Error {
	e := failure.Usage("unknown command %q", letter.Clip(name, 40))
	if hint, commands := meantCommands(program, strings.ReplaceAll(name, "_", "-")); hint != "" {
		return e.WithHint("%s", hint).WithCandidates(commands...)
	}
	if _, err := wire.ParseFragment(name); err == nil {
		return e.WithHint("the id of a message? atm show %s, atm reply %[1]s \"…\", atm ack %[1]s", name)
	}
	all := program.VisibleCommands()
	return suggest(e, name, commandNames(all), "commands: "+listed(all[:min(len(all), 14)], " ")+"; all of them: atm help all")
}

// meantCommands finds commands in a name such as send-message, team-add or kill-agent.
func meantCommands(program *cli.App, name string) (hint string, commands []string) {
	if c := program.Command(name); c != nil { // mark_read
		return c.Usage, nil
	}
	var others []string
	parts := strings.Split(name, "-")
	for i, part := range parts {
		c := program.Command(part)
		if c != nil && c.Name == part && len(parts) == 2 {
			if sub := c.Command(parts[1-i]); sub != nil && !sub.Hidden { // new-session
				return "did you mean " + strconv.Quote(Synopsis(sub)) + "?", []string{sub.HelpName}
			}
		}
		switch {
		case c == nil || len(parts) == 1:
		case c.Hidden:
			others = append(others, c.Usage)
		case !slices.Contains(commands, c.HelpName):
			commands = append(commands, c.HelpName)
		}
	}
	if len(commands) > 0 {
		hint = "did you mean " + strings.Join(quoted(commands), " or ") + "?"
	}
	if hint != "" {
		others = append(others, hint)
	}
	return strings.Join(others, "; "), commands
}

func quoted(names []string) (out []string) {
	for _, name := range names {
		out = append(out, strconv.Quote(name))
	}
	return out
}

// UnknownWord is the error for a word that a command does not take; called is the command as it was typed.
func UnknownWord(program *cli.App, c *cli.Command, called, word string) *failure.Error {
	subs, overview := c.VisibleCommands(), Example(c)
	if c.ArgsUsage != "" {
		overview = "one at a time: " + Synopsis(c)
	}
	e := failure.Usage("unexpected argument %q for %s", letter.Clip(word, 40), Synopsis(c))
	if len(subs) > 0 {
		overview = c.HelpName + " " + listed(subs, "|")
		e = failure.Usage("unknown command \"%s %s\"", called, letter.Clip(word, 40))
	}
	if hint := Meant(program, c, word); hint != "" {
		return e.WithHint("%s", hint)
	}
	return suggest(e, word, commandNames(subs), overview)
}

// nouns are names that other tools have for an argument, or for a flag in place of it, by what ArgsUsage calls it.
var nouns = map[string]string{
	"agent": "NAME AGENT", "name": "NAME AGENT", "member": "NAME AGENT", "id": "ID", "message": "ID", "message-id": "ID",
	"file": "FILE", "tool": "TOOL",
}

// isNoun reports whether a word says what a command takes anyway: ack --id 9f3a1c, status agent bob.
func isNoun(c *cli.Command, word string) bool {
	return slices.ContainsFunc(ArgNames(c), func(arg string) bool { return slices.Contains(strings.Fields(nouns[word]), arg) })
}

// Meant says what a word may mean that a command does not know: "done" behind "ls" is a flag, "agents" another
// command, "notes.txt" a file. "" for all other words.
func Meant(program *cli.App, c *cli.Command, word string) string {
	l := program.Metadata["line"].(*Line)
	if word == "help" {
		return c.HelpName + " --help"
	}
	if i := slices.Index(l.Words, word); i >= 0 && i+1 < len(l.Words) && isNoun(c, word) {
		return l.Repaired([]string{word}, nil)
	}
	for _, f := range c.Flags {
		if other, ok := f.(*misnomer); ok && slices.Contains(f.Names(), word) {
			return other.hint
		} else if slices.Contains(f.Names(), word) {
			typed, _ := FlagUsage(f)
			return cmp.Or(l.withFlag(word), c.HelpName+" "+typed)
		}
	}
	other := program.Command(word)
	switch {
	case other == nil && isFile(word) && !slices.Contains(ArgNames(c), "FILE"):
		return "a file goes with a message: atm send NAME --attach " + policy.Quote(word)
	case other == nil:
		return ""
	case other.Hidden:
		return other.Usage
	}
	if others := len(l.Words) - 1; others == 0 || others <= len(ArgNames(other)) || strings.Contains(other.ArgsUsage, "…") {
		if line := l.Repaired(append(slices.Clone(l.names), word), []string{other.Name}); line != "" { // message send bob
			return line
		}
	}
	return "did you mean " + strconv.Quote(Synopsis(other)) + "?"
}

// withFlag returns the command line with a word as the flag without a value that it names: ack 9f3a1c done. "" if it names
// none.
func (l *Line) withFlag(word string) string {
	f := l.flag("--" + word)
	if _, isNone := f.(*misnomer); f == nil || isNone || takesValue(f) {
		return ""
	}
	return l.Repaired([]string{word}, []string{"--" + word})
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

func unknownFlag(c *cli.Command, flag string) *failure.Error {
	return failure.Usage("unknown flag %s for %s", letter.Clip(flag, 40), c.HelpName)
}

// suggestFlag is the error for an unknown flag.
func (l *Line) suggestFlag(flag string) error {
	c, known, overview := l.Command, map[string]string{}, Synopsis(l.Command)+" takes"
	ofApp := slices.DeleteFunc(l.app.VisibleFlags(), func(f cli.Flag) bool { return f == VersionFlag && c.Name != "" })
	for _, f := range slices.Concat(c.VisibleFlags(), ofApp) {
		for _, name := range f.Names() {
			known[name] = "--" + f.Names()[0]
		}
	}
	visible := c.VisibleFlags()
	if len(visible) == 0 {
		visible = ofApp
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

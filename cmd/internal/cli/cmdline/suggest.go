package cmdline

import (
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
)

// UnknownCommand is the error for a command that atm does not have.
func UnknownCommand(program *cli.App, name string) *failure.Error {
	all := program.VisibleCommands()
	e := failure.Usage("unknown command %q", letter.Clip(name, 40))
	return suggest(e, name, commandNames(all), "commands: "+failure.Hint(listed(all, " "))+"; `atm help` says what they do")
}

// UnknownWord is the error for a word that a command does not take; called is the command as it was typed.
func UnknownWord(c *cli.Command, called, word string) *failure.Error {
	subs, overview := c.VisibleCommands(), failure.Say("`%s`", c.HelpName)
	if c.ArgsUsage != "" {
		overview = failure.Hint("one at a time: " + Synopsis(c))
	}
	e := failure.Usage("unexpected argument %q for %s", letter.Clip(word, 40), Synopsis(c))
	if len(subs) > 0 {
		overview = failure.Hint(c.HelpName + " " + listed(subs, "|"))
		e = failure.Usage("unknown command \"%s %s\"", called, letter.Clip(word, 40))
	}
	return suggest(e, word, commandNames(subs), overview)
}

func unknownFlag(c *cli.Command, flag string) *failure.Error {
	return failure.Usage("unknown flag %s for %s", letter.Clip(flag, 40), c.HelpName)
}

// suggestFlag is the error for an unknown flag.
func (l *Line) suggestFlag(flag string) error {
	c, known, overview := l.Command, map[string]string{}, Synopsis(l.Command)+" takes"
	ofApp := slices.DeleteFunc(l.Program.VisibleFlags(), func(f cli.Flag) bool { return isVersion(f) && c.Name != "" })
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
	return suggest(unknownFlag(c, flag), strings.TrimLeft(flag, "-"), known, failure.Hint(overview))
}

// suggest adds a hint: the nearest of the known names, which stand for what to type, else an overview of them.
func suggest(e *failure.Error, word string, known map[string]string, overview failure.Hint) *failure.Error {
	if near, ok := failure.Nearest(word, slices.Sorted(maps.Keys(known))); ok && isMeant(word, near, known[near]) {
		meant := known[near]
		if strings.HasPrefix(meant, "atm ") {
			return e.WithHint("did you mean \"`%s`\"?", meant).WithCandidates(meant)
		}
		return e.WithHint("did you mean %s?", meant).WithCandidates(meant)
	}
	return e.WithHint("%s", overview)
}

// isMeant reports whether a word can be a command's or a flag's name mistyped. A command does something: a guess at one has to
// be sure.
func isMeant(word, name, typed string) bool {
	if !strings.HasPrefix(typed, "atm ") || failure.IsSlip(word, name) {
		return true
	}
	return len(word) > 2 && len(name) > 2 && (strings.HasPrefix(name, word) || strings.HasPrefix(word, name))
}

func commandNames(commands []*cli.Command) map[string]string {
	known := map[string]string{}
	for _, c := range commands {
		for _, name := range c.Names() {
			known[name] = c.HelpName
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

// Synopsis returns a command and the names of its arguments.
func Synopsis(c *cli.Command) string { return strings.TrimSpace(c.HelpName + " " + c.ArgsUsage) }

package cmdline

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/wire"
)

// A command's Category has its words elsewhere, which do not call it and answer who types one of them: words, and, four
// spaces behind, what to type instead of its first example. Words that begin with -- stand for its flags. A flag's Category
// has its words elsewhere, too. A command with the word ! is never guessed: it ends, removes or confirms something.

// UnknownCommand is the error for a command that atm does not have; behind it are the words that were typed there.
func UnknownCommand(program *cli.App, name string, behind ...string) *failure.Error {
	all := program.VisibleCommands()
	e := failure.Usage("unknown command %q", letter.Clip(name, 40))
	if meant := instead(all, name, behind); len(meant) > 0 {
		return e.WithHint("%s", failure.Hint(strings.Join(meant, "; "))).WithCandidates(plain(meant)...)
	}
	if slip := mistyped(all, name); slip != nil {
		return e.WithHint("did you mean \"`%s`\"?", slip.HelpName).WithCandidates(slip.HelpName)
	}
	return e.WithHint("commands: %s; `atm help` says what they do", listed(all, " "))
}

// instead returns what the help says to a word, and to those behind it, as hints.
func instead(commands []*cli.Command, word string, behind []string) (meant []string) {
	for _, c := range commands {
		for line := range strings.SplitSeq(c.Category, "\n") {
			words, typed := explained(line)
			if !slices.Contains(strings.Fields(words), strings.ToLower(word)) {
				continue
			}
			if typed = fill(typed, behind); typed == "" {
				typed = called(c, behind)
			}
			if strings.HasPrefix(typed, "atm ") {
				typed = "`" + typed + "`"
			}
			meant = append(meant, typed)
		}
	}
	for i := 0; i < len(commands) && len(meant) == 0; i++ {
		subs := commands[i].VisibleCommands()
		if meant = instead(subs, word, behind); len(meant) == 0 {
			if at := slices.IndexFunc(subs, func(c *cli.Command) bool { return c.Name == word }); at >= 0 {
				meant = []string{"`" + called(subs[at], behind) + "`"}
			}
		}
	}
	return meant
}

// called returns a command with the words that were typed behind another one's name, or its example if it does not have
// their flags.
func called(c *cli.Command, words []string) string {
	isOther := func(word string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		return isFlag(word) && !slices.ContainsFunc(slices.Concat(c.Flags, Flags()), func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	}
	if len(words) == 0 || slices.ContainsFunc(words, isOther) {
		return Example(c)
	}
	return c.HelpName + " " + policy.QuoteAll(words)
}

// fill puts what was typed in place of ID, NAME and "…".
func fill(typed string, words []string) string {
	rest := slices.DeleteFunc(slices.Clone(words), isFlag)
	for _, place := range []struct {
		name string
		is   func(string) bool
	}{{"ID", isID}, {"NAME", wire.IsName}} {
		if i := slices.IndexFunc(rest, place.is); i >= 0 && strings.Contains(typed, place.name) {
			typed, rest = strings.Replace(typed, place.name, rest[i], 1), slices.Delete(rest, i, i+1)
		}
	}
	if len(rest) > 0 {
		typed = strings.Replace(typed, `"…"`, policy.Quote(strings.Join(rest, " ")), 1)
	}
	return typed
}

func plain(hints []string) (typed []string) {
	for _, h := range hints {
		typed = append(typed, strings.Trim(h, "`"))
	}
	return typed
}

// mistyped returns the command of which a word is one slip away.
func mistyped(commands []*cli.Command, word string) *cli.Command {
	i := slices.IndexFunc(commands, func(c *cli.Command) bool {
		return len(word) > 2 && failure.IsSlip(word, c.Name) && !slices.Contains(strings.Fields(c.Category), "!")
	})
	if i < 0 {
		return nil
	}
	return commands[i]
}

// UnknownWord is the error for a word that a command does not take.
func UnknownWord(c *cli.Command, word string) *failure.Error {
	subs := c.VisibleCommands()
	if len(subs) == 0 {
		e := failure.Usage("unexpected argument %q for %s", letter.Clip(word, 40), Synopsis(c))
		if c.ArgsUsage == "" {
			return e.WithHint("`%s`", c.HelpName)
		}
		return e.WithHint("one at a time: %s", Synopsis(c))
	}
	e := failure.Usage("unknown command \"%s %s\"", strings.TrimPrefix(c.HelpName, "atm "), letter.Clip(word, 40))
	if meant := instead(subs, word, nil); len(meant) > 0 {
		return e.WithHint("%s", failure.Hint(strings.Join(meant, "; "))).WithCandidates(plain(meant)...)
	}
	if slip := mistyped(subs, word); slip != nil {
		return e.WithHint("did you mean \"`%s`\"?", slip.HelpName).WithCandidates(slip.HelpName)
	}
	return e.WithHint("%s %s", c.HelpName, listed(subs, "|"))
}

// unknownFlag is the error for a flag that the command does not have.
func (l *Line) unknownFlag(flag string) error {
	c, word := l.Command, strings.TrimLeft(flag, "-")
	e := failure.Usage("unknown flag %s for %s", letter.Clip(flag, 40), c.HelpName)
	if meant := instead([]*cli.Command{{Category: c.Category, UsageText: c.UsageText}}, "--"+word, nil); len(meant) > 0 {
		return e.WithHint("%s", failure.Hint(strings.Join(meant, "; ")))
	}
	visible, ofApp := c.VisibleFlags(), l.Program.VisibleFlags()
	for _, means := range []func(cli.Flag) bool{
		func(f cli.Flag) bool {
			return slices.Contains(strings.Fields(f.(cli.CategorizableFlag).GetCategory()), strings.ToLower(word))
		},
		func(f cli.Flag) bool { return len(word) > 2 && failure.IsSlip(word, f.Names()[0]) },
	} {
		for _, f := range slices.Concat(c.Flags, ofApp) {
			if means(f) && (!isVersion(f) || c.Name == "") {
				typed, _ := FlagUsage(f)
				return e.WithHint("did you mean %s?", typed).WithCandidates(typed)
			}
		}
	}
	if c.Name == "" {
		visible = ofApp
	}
	overview := Synopsis(c) + " takes"
	for _, f := range visible {
		typed, _ := FlagUsage(f)
		overview += " " + typed
	}
	if strings.Contains(c.ArgsUsage, "TEXT") {
		overview += "; text that begins with - goes after --"
	}
	return e.WithHint("%s", overview)
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

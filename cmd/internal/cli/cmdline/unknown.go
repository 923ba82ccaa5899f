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
// spaces behind, what to type instead of its first example. Words that begin with -- stand for its flags, VALUE for what
// follows one. A flag's Category has its words elsewhere, too. A command with the word ! is never guessed: it ends,
// removes or confirms something.

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
		if strings.EqualFold(c.Name, word) { // Send
			return []string{"`" + called(c, behind) + "`"}
		}
		for line := range strings.SplitSeq(c.Category, "\n") {
			words, typed := explained(line)
			if !slices.Contains(strings.Fields(words), strings.ToLower(word)) {
				continue
			}
			if typed = fill(c, typed, behind); typed == "" {
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

// called returns a command with the words that were typed behind another one's name, or, if it does not have their flags,
// its example with the name that is among them.
func called(c *cli.Command, words []string) string {
	rest, _, isOther := parted(c, words)
	takes := c.ArgsUsage != "" && len(c.VisibleCommands()) == 0
	if len(words) > 0 && !isOther && (takes || len(rest) == 0) {
		return c.HelpName + " " + policy.QuoteAll(words)
	}
	example := Example(c)
	if i := slices.IndexFunc(rest, wire.IsName); i >= 0 {
		example = strings.NewReplacer(" bob", " "+rest[i], " build", " "+rest[i]).Replace(example)
	}
	return example
}

// parted splits words into those that are no flags, and the flags of a command with their values. Of another flag the
// value is a word.
func parted(c *cli.Command, words []string) (rest, flags []string, isOther bool) {
	l := &Line{Command: c, Program: &cli.App{Flags: Flags()}}
	for i := 0; i < len(words); i++ {
		f := l.flag(words[i])
		switch {
		case words[i] == "--":
			return append(rest, words[i+1:]...), flags, isOther
		case f == nil && isFlag(words[i]):
			isOther = true
		case f == nil:
			rest = append(rest, words[i])
		default:
			flags = append(flags, words[i])
			if takesValue(f) && !strings.Contains(words[i], "=") && i+1 < len(words) {
				i++
				flags = append(flags, words[i])
			}
		}
	}
	return rest, flags, isOther
}

// fill puts what was typed in place of ID, NAME and "…", and the flags behind it.
func fill(c *cli.Command, typed string, words []string) string {
	rest, flags, _ := parted(c, words)
	for _, place := range []struct {
		name string
		is   func(string) bool
	}{{"ID", isID}, {"NAME", wire.IsName}} {
		i := slices.IndexFunc(rest, place.is)
		if i > 0 && slices.ContainsFunc(rest[i+1:], place.is) { // which one is not known
			continue
		}
		if i >= 0 && strings.Contains(typed, place.name) {
			typed, rest = strings.Replace(typed, place.name, rest[i], 1), slices.Delete(rest, i, i+1)
		}
	}
	if len(rest) > 1 && strings.HasPrefix(c.ArgsUsage, "TO") && strings.HasPrefix(typed, "atm reply ") {
		rest = rest[1:] // who gets it is known
	}
	if strings.HasSuffix(typed, " --enter") && len(rest) > 1 && rest[len(rest)-1] == "Enter" { // tmux send-keys
		rest = rest[:len(rest)-1]
	}
	if slices.ContainsFunc(flags, func(f string) bool { return f == "-m" || f == "--message" }) {
		typed = strings.Replace(typed, ` "…"`, "", 1)
	}
	if len(rest) > 0 {
		typed = strings.Replace(typed, `"…"`, policy.Quote(strings.Join(rest, " ")), 1)
	}
	if len(flags) > 0 && strings.HasPrefix(typed, c.HelpName+" ") {
		for _, flag := range flags {
			name, _, _ := strings.Cut(flag, "=")
			if name == "--in" { // at which time, said otherwise
				name = "--at"
			}
			typed, _, _ = strings.Cut(typed+" ", " "+name+" ")
			typed = strings.TrimSuffix(typed, " ")
		}
		typed += " " + policy.QuoteAll(flags)
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

// UnknownWord is the error for a word that a command does not take; behind it are the words that were typed there.
func UnknownWord(c *cli.Command, word string, behind ...string) *failure.Error {
	subs := c.VisibleCommands()
	if len(subs) == 0 {
		e := failure.Usage("unexpected argument %q for %s", letter.Clip(word, 40), Synopsis(c))
		if c.ArgsUsage == "" {
			return e.WithHint("`%s`", c.HelpName)
		}
		return e.WithHint("one at a time: %s", Synopsis(c))
	}
	e := failure.Usage("unknown command \"%s %s\"", strings.TrimPrefix(c.HelpName, "atm "), letter.Clip(word, 40))
	if meant := instead(subs, word, behind); len(meant) > 0 {
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
	value, words := l.around(flag)
	if word == "id" && value != "" && slices.Contains(ArgNames(c), "ID") {
		return e.WithHint("`%s`", called(c, append([]string{value}, words...)))
	}
	elsewhere := &cli.Command{HelpName: c.HelpName, ArgsUsage: c.ArgsUsage, Flags: c.Flags, Category: c.Category, UsageText: c.UsageText}
	if value != "" {
		elsewhere.Category = strings.ReplaceAll(c.Category, "VALUE", policy.Quote(value))
	}
	if meant := instead([]*cli.Command{elsewhere}, "--"+word, words); len(meant) > 0 {
		if quoted := policy.Quote(value); value != "" && !strings.Contains(meant[0], quoted) { // it is the text, if there is no other
			meant[0] = strings.Replace(meant[0], `"…"`, quoted, 1)
		}
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
	} else if len(visible) == 0 {
		return e.WithHint("`%s`", called(c, words))
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

// around returns the word behind a flag that is none, and the other words that were typed behind the command.
func (l *Line) around(flag string) (value string, words []string) {
	words = slices.Clone(l.Typed[max(l.At, 0)+len(l.names):])
	i := slices.IndexFunc(words, func(word string) bool { name, _, _ := strings.Cut(word, "="); return name == flag })
	if i < 0 { // it is in front of the command
		return "", nil
	}
	if _, value, hasValue := strings.Cut(words[i], "="); hasValue {
		return value, slices.Delete(words, i, i+1)
	}
	if i+1 < len(words) && !isFlag(words[i+1]) {
		value = words[i+1]
		return value, slices.Delete(words, i, i+2)
	}
	return "", slices.Delete(words, i, i+1)
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

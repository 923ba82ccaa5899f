// Package cmdline parses a command line: flags may stand anywhere, and other tools' verbs and flags are understood.
//
//	rewrite.go    other tools' verbs become ours: "list agents" is "team" (rewrites.txt)
//	line.go       Parse finds the verb, and separates flags from positional arguments
//	flag.go       one flag and its value, and other names for it (synonyms.txt)
//	value.go      flags for lists, counts, choices and durations
//	suggest.go    an unknown word or flag: what was probably meant, and what exists (hints.txt)
package cmdline

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams/policy"
)

// A Line is a command line, sorted.
type Line struct {
	Command  *cli.Command // the innermost verb; the app's own action if no verb was typed
	Unknown  int          // index of the word that was typed as the verb and is none; -1: there is no such word
	ArgNames []string     // the positional arguments in the verb's usage: TO, ID|NAME, TEXT
	Words    []string     // the positional arguments that were typed
	Global   []string     // flags of the app, as --name=value
	Help     bool         // --help

	app     *cli.App
	typed   []string         // what was typed, with a verb of ours in place of another tool's
	flags   []string         // flags of the verb, as --name=value
	flagged map[int][]string // positional arguments typed as flags ("ack --id ID"), by index in ArgNames
}

// LineOf returns the command line that a verb was called with.
func LineOf(c *cli.Context) *Line { return c.App.Metadata["line"].(*Line) }

// Parse sorts the words behind the program's name, so that a flag means the same wherever it is typed before "--":
//
//	list_messages -n5 --agent bob --json     typed
//	ls -n5 --agent bob --json                rewrite: another tool's verb becomes ours
//	ls | -n5 --agent bob --json              findVerb
//	ls | --limit=5 | bob | --json=true       sortWords: flags of ls, arguments, flags of the app
//
// The Line is never nil, even with an error.
func Parse(app *cli.App, words []string) (*Line, error) {
	l := &Line{app: app, Unknown: -1, flagged: map[int][]string{}}
	l.Command = &cli.Command{HelpName: app.HelpName, Action: app.Action, Subcommands: app.Commands}
	if err := l.sortWords(l.findVerb(words)); err != nil {
		return l, err
	}
	isHelpWord := len(l.Words) == 1 && l.Words[0] == "help" && !slices.Contains(l.ArgNames, "TEXT")
	l.Help = isHelpWord || slices.Contains(l.Global, "--help=true")
	if err := l.insertFlagged(); err != nil {
		return l, err
	}
	return l, l.checkWords()
}

// Args returns the sorted line without its verb.
func (l *Line) Args() []string { return slices.Concat(l.Global, l.flags, []string{"--"}, l.Words) }

// Context returns the context for the verb's action. It is never nil, even with an error. (cli.App.Run makes the same
// one, but looks up each flag by all names of all flags, which costs half of a start.)
func (l *Line) Context() (*cli.Context, error) {
	app, err := l.context(nil, l.app.Flags, l.Global)
	c, errOwn := l.context(app, l.Command.Flags, l.flags)
	l.app.Metadata["line"] = l
	return c, cmp.Or(err, errOwn)
}

func (l *Line) context(parent *cli.Context, flags []cli.Flag, typed []string) (c *cli.Context, err error) {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	for _, f := range flags {
		f.Apply(set)
	}
	set.Parse(append([]string{"--"}, l.Words...))
	c = cli.NewContext(l.app, set, parent)
	c.Command = l.Command
	for _, t := range typed {
		name, value, _ := strings.Cut(t[2:], "=")
		f := l.FindFlag("--" + name)
		if e := set.Set(name, value); e != nil {
			err = cmp.Or(err, error(l.badValue(f, value, e)))
		} else if a, ok := f.(cli.ActionableFlag); ok {
			err = cmp.Or(err, a.RunAction(c))
		}
	}
	return c, err
}

func (l *Line) badValue(f cli.Flag, value string, why error) *failure.Error {
	kind, name := "value", f.Names()[0]
	if !takesValue(f) {
		kind = "boolean value"
	}
	message := fmt.Sprintf("invalid %s %q for --%s: %v", kind, value, name, why)
	hint := cmp.Or(HintFor(l.Command.Name+" "+name), l.Command.HelpName+" --help")
	return failure.Usage("%s", strings.TrimSuffix(message, ": parse error")).WithHint("%s", hint)
}

// findVerb removes the verb and its sub from the words, once another tool's verb has become ours. The flags in front of
// the verb are not known yet: the word behind such a flag counts as its value unless it is a verb.
func (l *Line) findVerb(words []string) (rest []string) {
	isVerbKnown := false
	for i := 0; i < len(words); i++ {
		isValue := i > 0 && l.takesNext(words[i-1], l.Command.Command(words[i]) == nil)
		if words[i] != "--" && (isFlag(words[i]) || isValue) {
			rest = append(rest, words[i])
			continue
		}
		if !isVerbKnown {
			words = append(slices.Clone(words[:i]), rewrite(l.app, words[i:])...)
		}
		verb := l.Command.Command(words[i])
		if verb == nil {
			if !isVerbKnown {
				l.Unknown = i
			}
			rest = append(rest, words[i:]...)
			break
		}
		l.Command, isVerbKnown = verb, true
	}
	l.typed = words
	for field := range strings.FieldsSeq(l.Command.ArgsUsage) {
		name, _, _ := strings.Cut(strings.Trim(field, "[]…"), "[")
		l.ArgNames = append(l.ArgNames, name)
	}
	return rest
}

// takesNext reports whether a word is a flag whose value is the next word; for an unknown flag it returns ifUnknown.
func (l *Line) takesNext(word string, ifUnknown bool) bool {
	if !isFlag(word) || strings.Contains(word, "=") {
		return false
	}
	f := l.FindFlag(word)
	return f == nil && ifUnknown || f != nil && takesValue(f)
}

// sortWords separates flags from positional arguments. From CMD on everything belongs to another program. It returns
// the first error but reads on: a --json behind it decides how the error is printed.
func (l *Line) sortWords(words []string) (first error) {
	commandAt := slices.Index(l.ArgNames, "CMD")
	for ; len(words) > 0; words = words[1:] {
		word, count := words[0], len(l.Words)+len(l.flagged)
		switch {
		case word == "--" && count < commandAt: // run --as bob -- claude
			nameless := failure.Usage("%s needs %s before --", l.Command.HelpName, l.ArgNames[0])
			return cmp.Or(first, error(nameless.WithHint("%s", Example(l.Command))))
		case word == "--" && count > 0 && slices.Equal(l.ArgNames, []string{"NAME"}): // team add bob -- claude
			programless := failure.Usage("%s takes only names", l.Command.HelpName)
			return cmp.Or(first, error(programless.WithHint("to start a program: atm run NAME -- CMD")))
		case word == "--":
			l.Words = append(l.Words, words[1:]...)
			return first
		case commandAt >= 0 && count > commandAt:
			l.Words = append(l.Words, words...)
			return first
		case isFlag(word):
			words = append(l.splitBundle(word), words[1:]...)
			n, err := l.addFlag(words)
			first, words = cmp.Or(first, err), words[n-1:]
		default:
			l.Words = append(l.Words, word)
		}
	}
	return first
}

// insertFlagged inserts the positional arguments that were typed as flags at their positions.
func (l *Line) insertFlagged() error {
	for n, name := range l.ArgNames {
		isLast := n == len(l.ArgNames)-1
		if len(l.flagged[n]) > 0 && isLast && len(l.Words) > n {
			return failure.Usage("%s is given twice: as a flag and as %q", name, letter.Clip(l.Words[n], 40)).WithHint("leave one out")
		}
		l.Words = slices.Insert(l.Words, min(n, len(l.Words)), l.flagged[n]...)
	}
	return nil
}

// checkWords compares the number of positional arguments with the verb's usage.
func (l *Line) checkWords() error {
	if l.Help || l.Unknown >= 0 || l.Command.Args {
		return nil
	}
	c := l.Command
	isNameless := len(l.Words) > 0 && l.Words[0] == "" && // "$UNSET"
		(strings.HasPrefix(c.ArgsUsage, "NAME") || c.ArgsUsage == "FILE")
	if isNameless || len(l.Words) < len(l.ArgNames)-strings.Count(" "+c.ArgsUsage, " [") {
		return failure.Usage("%s needs %s", c.HelpName, c.ArgsUsage).WithHint("%s", cmp.Or(HintFor(c.Name+" ?"), Example(c)))
	}
	if len(l.Words) <= len(l.ArgNames) || strings.Contains(c.ArgsUsage, "…") {
		return nil
	}
	word := l.Words[len(l.ArgNames)]
	e := failure.Usage("unexpected argument %q for %s", letter.Clip(word, 40), Synopsis(c))
	if len(c.VisibleCommands()) > 0 {
		e = failure.Usage("unknown command \"%s %s\"", c.Name, letter.Clip(word, 40))
	}
	for _, words := range []string{c.Name + " " + l.Words[0], c.Name + " …"} { // status busy "parsing"
		if hint := HintFor(words); hint != "" {
			return e.WithHint("%s", hint)
		}
	}
	return suggest(e, l.app, c, word)
}

// Repaired returns the command line, quoted for a shell, with the first run of the wrong words replaced; "" without
// one.
func (l *Line) Repaired(wrong, right []string) string {
	for i := range l.typed {
		rest := l.typed[i:]
		if len(rest) < len(wrong) || !slices.Equal(rest[:len(wrong)], wrong) {
			continue
		}
		line := l.app.HelpName
		for _, word := range slices.Concat(l.typed[:i], right, rest[len(wrong):]) {
			line += " " + policy.Quote(word)
		}
		return line
	}
	return ""
}

// Package cmdline prepares a command line for urfave/cli, which parses it, and answers one that cannot be parsed.
//
//	line.go     Sort: flags may stand anywhere
//	flag.go     the flags of all commands, and what is known of a flag; names.go: its names
//	example.go  a command's example, and how it completes what was typed
//	value.go    flags for lists, counts, choices and durations
//	suggest.go  an unknown word or flag: what was probably meant, and what exists
package cmdline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/wire"
)

// A Line is a command line, sorted.
type Line struct {
	Command *cli.Command // the innermost command that was typed; without a name if there is none
	Typed   []string
	At      int      // index in Typed of what stands where the command should be; -1: nothing does
	Words   []string // what is neither a command nor a flag with its value
	Program *cli.App // with all its commands, of which urfave/cli gets only the one that runs

	top     []*cli.Command // the command below the program
	names   []string       // of the commands
	globals []string       // flags of the app
	flags   []string       // flags of the command
	given   []cli.Flag     // those that take one value
}

// IsUnknown reports whether a word stands where the command should be that is none.
func (l *Line) IsUnknown() bool {
	return l.At >= 0 && len(l.names) == 0 && len(l.Program.Commands) > 0
}

// LineOf returns the command line that a command was called with.
func LineOf(c *cli.Context) *Line { return c.App.Metadata["line"].(*Line) }

// Args returns the line as urfave/cli parses it, without the program's name.
func (l *Line) Args() []string {
	return slices.Concat(l.globals, l.names, l.flags, []string{"--"}, l.Words)
}

// CompanionArgs is Args without the command.
func (l *Line) CompanionArgs() []string {
	return slices.Concat(l.globals, l.flags, []string{"--"}, l.Words)
}

// Sort sorts the words behind the program's name, so that a flag means the same wherever it is typed before "--". What
// follows CMD belongs to another program. After an error it reads on: a --json behind it decides how the error is
// printed.
func Sort(app *cli.App, typed []string) (l *Line, first error) {
	l = &Line{Command: &cli.Command{HelpName: app.HelpName, Subcommands: app.Commands}, Typed: typed, At: -1, Program: app}
	app.Metadata["line"] = l
	knowNames(app.Flags)
	rest := l.findCommand()
	programAt, textAt, split := slices.Index(ArgNames(l.Command), "CMD"), slices.Index(ArgNames(l.Command), "TEXT"), ""
	for len(rest) > 0 {
		word, err := rest[0], error(nil)
		switch rest = rest[1:]; {
		case programAt > 0 && len(l.Words) > programAt:
			l.Words, rest = append(append(l.Words, word), rest...), nil
		case word == "--" && len(l.Words) < programAt: // run --as bob -- claude
			l.Words = append([]string{""}, rest...)
			return l, failure.Usage("%s needs NAME before --", l.Command.HelpName).WithHint("%s", l.Completed())
		case word == "--" && strings.Trim(l.Command.ArgsUsage, "[]") == "NAME…" && len(rest) > 0: // team add bob -- claude
			return l, failure.Usage("%s takes only names", l.Command.HelpName).WithHint("to start a program: `atm run NAME -- CMD`")
		case word == "--":
			l.Words, rest = append(l.Words, rest...), nil
		case isFlag(word):
			if f := l.flag(word); textAt > 0 && len(l.Words) > textAt && f != nil && takesValue(f) {
				split = word
			}
			rest, err = l.addFlag(word, rest)
		case word == "help" && len(l.Command.Subcommands) > 0 && len(l.names) > 0 && len(l.Words) == 0: // team help
			rest, err = l.addFlag("--help", rest)
		default:
			if split != "" {
				err = l.splitText(split, word)
			}
			l.Words = append(l.Words, word)
		}
		first = cmp.Or(first, err)
	}
	return l, first
}

// findCommand takes the command and its sub out of what was typed. The word behind a flag in front of them that is not
// known yet counts as its value unless it is a command.
func (l *Line) findCommand() (rest []string) {
	for i, word := range l.Typed {
		sub := l.Command.Command(word)
		isValue := i > 0 && l.takesNext(l.Typed[i-1], sub == nil)
		if word != "--" && (isFlag(word) || isValue) {
			rest = append(rest, word)
			continue
		}
		if l.At < 0 {
			l.At = i
		}
		if sub == nil {
			return append(rest, l.Typed[i:]...)
		}
		if len(l.names) == 0 {
			l.top = []*cli.Command{sub}
		}
		l.Command, l.names = sub, append(l.names, word)
		knowNames(sub.Flags) // they are asked for each further word
	}
	return rest
}

// addFlag adds a flag, with its value if that is the next of the other words, of which it returns those that are left.
func (l *Line) addFlag(word string, rest []string) ([]string, error) {
	name, value, hasValue := strings.Cut(word, "=")
	f, next := l.flag(name), ""
	if len(rest) > 0 && !hasValue {
		next = rest[0]
	}
	switch letters := l.splitLetters(name); {
	case f == nil && l.IsUnknown():
		return rest, nil // the error is that there is no such command
	case f == nil && letters != nil && !hasValue: // -al, -n5
		return append(letters, rest...), nil
	case f == nil:
		return rest, l.suggestFlag(name)
	case takesValue(f) && !hasValue && (len(rest) == 0 || next == "--" || l.flag(next) != nil),
		takesValue(f) && value == "" && next == "" && slices.Contains(l.Program.Flags, f) && len(l.Program.Commands) > 0: // --team=
		typed, usage := FlagUsage(f)
		return rest, failure.Usage("%s needs a value", name).WithHint("%s", strings.TrimSuffix(typed+": "+usage, ": "))
	case takesValue(f) && !hasValue:
		return rest[1:], l.add(f, next, name, next)
	case l.waits(f) && isDuration(value): // --wait=30s
		return rest, l.addWait(f, name, value)
	case l.waits(f) && isDuration(next) && !isID(next): // --wait 30s
		return rest[1:], l.addWait(f, name, next)
	case l.waits(f) && next != "" && len(next) < 4 && strings.Trim(next, "0123456789") == "": // too short for an id
		return rest, failure.Usage("%s %s: the time needs a unit", name, next).WithHint("`%s %s %ss`", l.Command.HelpName, name, next)
	case !takesValue(f) && (next == "true" || next == "false"): // --urgent false
		return rest, failure.Usage("%s takes no value: what is %q?", name, next).WithHint("leave it out, or put text after --")
	case hasValue:
		return rest, l.add(f, value, word)
	default:
		return rest, l.add(f, "true", word)
	}
}

// splitText is the error for a word behind a flag with a value that stands behind the text: it may be a second value, and is no
// text then.
func (l *Line) splitText(flag, word string) error {
	e := failure.Usage("is %q a part of the text, or does it belong to %s?", letter.Clip(word, 40), flag)
	if _, isList := l.flag(flag).(*listFlag); isList {
		return e.WithHint("a flag for each value: %s %s; or all of the text in front of the flags", flag, policy.Quote(word))
	}
	return e.WithHint("put all of the text in front of the flags")
}

// isID reports whether a word can be an id, such as 12345d.
func isID(word string) bool {
	_, err := wire.ParseFragment(word)
	return err == nil
}

// add adds a flag as it is typed, unless it does not take the value, or has one already.
func (l *Line) add(f cli.Flag, value string, typed ...string) error {
	if err := refused(f, value); err != nil {
		return err
	}
	if _, isList := f.(*listFlag); takesValue(f) && !isList {
		if slices.Contains(l.given, f) {
			return failure.Usage("--%s is given twice: the second is %q", f.Names()[0], letter.Clip(value, 40)).WithHint("leave one out")
		}
		l.given = append(l.given, f)
	}
	if slices.Contains(l.Program.Flags, f) {
		l.globals = append(l.globals, typed...)
	} else {
		l.flags = append(l.flags, typed...)
	}
	return nil
}

// addWait adds a flag that makes the command wait, and for how long.
func (l *Line) addWait(f cli.Flag, typed, timeout string) error {
	return cmp.Or(l.add(f, "true", typed), l.add(l.flag("--timeout"), timeout, "--timeout", timeout))
}

// splitLetters splits flags of a letter each, "-al" into -a and -l, and one and its number, "-n5" into -n and 5; nil: it
// is neither.
func (l *Line) splitLetters(word string) (letters []string) {
	if len(word) < 3 || word[1] == '-' {
		return nil
	}
	if f := l.flag(word[:2]); f != nil && takesValue(f) && strings.Trim(word[2:], "0123456789") == "" {
		return []string{word[:2], word[2:]}
	}
	for _, letter := range word[1:] {
		if l.flag("-"+string(letter)) == nil {
			return nil
		}
		letters = append(letters, "-"+string(letter))
	}
	return letters
}

// Alone returns the program as urfave/cli runs it: with the command that was typed alone, since it sets up and compares
// all that it is given.
func (l *Line) Alone() *cli.App {
	alone := *l.Program
	alone.Commands = l.top
	for _, c := range l.top {
		c.HelpName = strings.TrimPrefix(c.HelpName, alone.HelpName+" ") // which App.Run puts in front
	}
	return &alone
}

// Instead makes the line one whose command is called without flags and words of its own, and does something else.
func (l *Line) Instead(act cli.ActionFunc) {
	l.flags, l.Words = nil, nil
	l.Program.Action, l.Command.Action = act, act
}

// ArgNames returns the names of a command's positional arguments: TO, ID|NAME, TEXT.
func ArgNames(c *cli.Command) (names []string) {
	for field := range strings.FieldsSeq(c.ArgsUsage) {
		name, _, _ := strings.Cut(strings.Trim(field, "[]…"), "[")
		names = append(names, name)
	}
	return names
}

// CheckWords compares the number of words with the command's ArgsUsage.
func CheckWords(c *cli.Context) error {
	command, words := c.Command, c.Args().Slice()
	names := ArgNames(command)
	if command.Args {
		return nil
	}
	isNameless := len(words) > 0 && words[0] == "" && // "$UNSET"
		slices.Contains([]string{"NAME", "AGENT", "WORDS", "FILE"}, names[0])
	if isNameless || len(words) < len(names)-strings.Count(" "+command.ArgsUsage, " [") {
		missing := command.ArgsUsage
		if isNameless { // "[NAME]": it may be left out, but is not
			missing = strings.Trim(strings.Fields(missing)[0], "[]")
		}
		e := failure.Usage("%s needs %s", command.HelpName, missing).WithHint("%s", LineOf(c).Completed())
		if l := LineOf(c); names[0] == "ID" && len(words)+len(l.flags) == 0 && len(l.names) == 1 { // of a session: see session ls
			e.WithHint("%s; ids are in `atm ls --all` and `atm ls --sent`", e.Hint)
		} else if names[0] == "NAME" && len(names) == 1 && len(words)+len(l.flags) == 0 { // an example might name a member
			e.WithHint("`%s NAME`; `atm team` shows the names", command.HelpName)
		}
		return e
	}
	if len(words) <= len(names) || strings.Contains(command.ArgsUsage, "…") {
		return nil
	}
	return UnknownWord(command, strings.Join(LineOf(c).names, " "), words[len(names)])
}

// Package cmdline prepares a command line for urfave/cli, which parses it, and answers one that cannot be parsed.
//
//	line.go     Sort puts flags before words
//	flag.go     the flags of all commands, and what is known of a flag; names.go: its names
//	words.go    a command's arguments and its example, completed by what was typed
//	value.go    flags for lists, counts, choices and durations
//	unknown.go  what answers an unknown word or flag
package cmdline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/wire"
)

// A Line is a command line, sorted.
type Line struct {
	Command *cli.Command // the innermost command that was typed; without a name if there is none
	Typed   []string
	At      int      // index in Typed of what stands where the command should be; -1: nothing does
	Words   []string // what is neither a command nor a flag with its value
	Program *cli.App // with all its commands, of which urfave/cli gets only the one that runs

	top            []*cli.Command // the command below the program
	names          []string       // of the commands
	globals, flags []string       // of the program, and of the command
	given          []cli.Flag     // those that take one value
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

// Sort puts the flags of a line before its words. What follows "--" or CMD is no flag. After an error it reads on: a --json
// behind it decides how the error is printed.
func Sort(app *cli.App, typed []string) (l *Line, first error) {
	l = &Line{Command: &cli.Command{HelpName: app.HelpName, Subcommands: app.Commands}, Typed: typed, At: -1, Program: app}
	app.Metadata["line"] = l
	knowNames(app.Flags)
	programAt, textAt, split := 0, 0, "" // split is the flag behind which the text would go on
	for i := 0; i < len(typed); i++ {
		word, err := typed[i], error(nil)
		switch sub := l.Command.Command(word); {
		case programAt > 0 && len(l.Words) > programAt:
			l.Words = append(l.Words, typed[i:]...)
			return l, first
		case word == "--":
			l.Words = append(l.Words, typed[i+1:]...)
			return l, first
		case isFlag(word):
			var taken int
			if taken, err = l.addFlag(word, typed[i+1:]); textAt > 0 && len(l.Words) > textAt {
				split = word
			}
			i += taken
		case sub != nil && len(l.Words) == 0:
			if l.At < 0 {
				l.At, l.top = i, []*cli.Command{sub}
			}
			l.Command, l.names = sub, append(l.names, word)
			knowNames(sub.Flags) // they are asked for each further word
			programAt, textAt = slices.Index(ArgNames(sub), "CMD"), slices.Index(ArgNames(sub), "TEXT")
		default:
			if l.At < 0 {
				l.At = i
			}
			if l.Words = append(l.Words, word); split != "" { // it may be the flag's
				err = failure.Usage("is %q a part of the text, or does it belong to %s?", letter.Clip(word, 40), split).
					WithHint("quote the text, and put it in front of the flags; a flag takes one value")
			}
		}
		first = cmp.Or(first, err)
	}
	return l, first
}

// addFlag adds a flag, and says how many of the words behind it are its own.
func (l *Line) addFlag(word string, behind []string) (taken int, err error) {
	name, value, hasValue := strings.Cut(word, "=")
	f, next := l.flag(name), ""
	if len(behind) > 0 && !hasValue {
		next = behind[0]
	}
	switch {
	case f == nil && l.IsUnknown():
		return 0, nil // the error is that there is no such command
	case f == nil:
		return 0, l.unknownFlag(name)
	case takesValue(f) && !hasValue && (next == "" && len(behind) == 0 || next == "--" || l.flag(next) != nil),
		takesValue(f) && value+next == "" && slices.Contains(l.Program.Flags, f): // --team= "$UNSET"
		typed, usage := FlagUsage(f)
		return 0, failure.Usage("%s needs a value", name).WithHint("%s", strings.TrimSuffix(typed+": "+usage, ": "))
	case takesValue(f) && !hasValue:
		return 1, l.add(f, next, name, next)
	case l.waits(f) && isDuration(value): // --wait=30s
		return 0, cmp.Or(l.add(f, "true", name), l.add(l.flag("--timeout"), value, "--timeout", value))
	case l.waits(f) && isDuration(next) && !isID(next): // --wait 30s
		return 1, cmp.Or(l.add(f, "true", name), l.add(l.flag("--timeout"), next, "--timeout", next))
	case l.waits(f) && len(next) < 4 && strings.Trim(next, "0123456789") == "" && next != "": // --wait 30: of what?
		return 1, l.add(l.flag("--timeout"), next, "--timeout", next)
	case !takesValue(f) && (next == "true" || next == "false"): // --urgent false
		return 0, failure.Usage("%s takes no value: what is %q?", name, next).WithHint("leave it out, or put text after --")
	case hasValue:
		return 0, l.add(f, value, word)
	}
	return 0, l.add(f, "true", word)
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

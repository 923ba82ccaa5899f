package cmdline

import (
	"flag"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// Flags are the flags that every verb takes.
func Flags() []cli.Flag {
	noColor := func(*cli.Context, bool) error { return os.Setenv("NO_COLOR", "1") }
	return []cli.Flag{
		&cli.StringFlag{Name: "root", Usage: "the `DIR` that holds the teams"},
		&cli.StringFlag{Name: "team", Usage: "the `TEAM`"},
		&cli.StringFlag{Name: "as", Usage: "your `NAME`"},
		&cli.BoolFlag{Name: "json", Usage: "one JSON document on stdout"},
		&cli.BoolFlag{Name: "quiet", Usage: "errors only"},
		DurationFlag("lock-timeout", 5e9, "wait for a lock at most `D` (default 5s)"),
		&cli.BoolFlag{Name: "no-color", Hidden: true, Action: noColor},
		&cli.StringFlag{Name: "via", Hidden: true}, // the calling program: see command.CallingProgram
		&cli.BoolFlag{Name: "help", Usage: "the help page"},
		&cli.BoolFlag{Name: "version", Usage: "the version"},
	}
}

// ignored stands for the flags that ask for what the verb does anyway.
var ignored = &cli.BoolFlag{Name: "ignored"}

// isFlag reports whether a word is a flag. "-" is stdin; a list item and "-=" are text.
func isFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && word[1] != ' ' && word[1] != '='
}

// FindFlag looks up "--name" or "--name=value" among the flags of the verb and the app: by their names, then by the
// synonyms that are for this verb and, unless it stands for an argument, by those for all verbs.
func (l *Line) FindFlag(word string) cli.Flag {
	if !isFlag(word) {
		return nil
	}
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	verb, flags := l.Command.Name, slices.Concat(l.Command.Flags, l.app.Flags)
	for _, f := range flags {
		if f.Names()[0] == name {
			return f
		}
	}
	var ofAll cli.Flag
	for _, f := range flags {
		if its := "--" + f.Names()[0]; isSynonym(verb+" "+its, name) {
			return f
		} else if ofAll == nil && isSynonym(its, name) {
			ofAll = f
		}
	}
	if isSynonym("IGNORED", name) || isSynonym(verb+" IGNORED", name) {
		return ignored
	} else if l.argNamed(word) >= 0 {
		return nil
	}
	return ofAll
}

// addFlag adds the flag that the words begin with, and returns how many words it takes up: 2 if the next is its value.
func (l *Line) addFlag(words []string) (length int, err error) {
	typed, value, hasValue := strings.Cut(words[0], "=")
	f, next, length := l.FindFlag(typed), "", 1
	if len(words) > 1 && !hasValue {
		next = words[1]
		if l.isValue(f, next) {
			value, hasValue, length = next, true, 2
		}
	}
	isOurs := f != nil && (f.Names()[0] != "id" || wire.IsID(value)) // our own --id takes a whole UUID
	arg, state := l.argNamed(typed), l.argNamed("--state")
	switch {
	case !isOurs && arg >= 0 && value != "": // ack --id 9f3a1c
		l.flagged[arg] = append(l.flagged[arg], value)
	case f == nil && isSynonym("FORMAT", strings.TrimLeft(typed, "-")) && isSynonym("JSON", value): // --format json
		l.Global = append(l.Global, "--json=true")
	case f == nil:
		err = unknownFlag(l.app, l.Command, typed)
	case value == "" && hasValue && slices.Contains(l.app.Flags, f): // --team=
		err = failure.Usage("%s needs a value", typed)
	case hasValue: // --limit 5
		err = l.add(f, value)
	case takesValue(f) && state >= 0: // wait bob --idle
		l.flagged[state] = append(l.flagged[state], f.Names()[0])
	case takesValue(f):
		err = failure.Usage("%s needs a value", typed)
	case next == "true" || next == "false": // --urgent false
		err = failure.Usage("%s takes no value: what is %q?", typed, next).WithHint("leave it out, or put text after --")
	default: // --urgent
		err = l.add(f, "true")
	}
	return length, err
}

// isValue reports whether a word behind a flag can be its value. Behind a flag that waits, a duration is its --timeout.
func (l *Line) isValue(f cli.Flag, word string) bool {
	switch {
	case f == nil:
		return !isFlag(word)
	case takesValue(f):
		return word != "--" && l.FindFlag(word) == nil
	}
	return l.waits(f) && isDuration(word)
}

// waits reports whether a flag makes the verb wait, at most for --timeout.
func (l *Line) waits(f cli.Flag) bool {
	name, _, _ := strings.Cut(f.Names()[0], "-")
	return slices.Contains([]string{"wait", "follow", "watch"}, name) && l.FindFlag("--timeout") != nil
}

// add adds a flag of the verb or the app with its value.
func (l *Line) add(f cli.Flag, value string) error {
	name := f.Names()[0]
	isSame := func(earlier string) bool { return strings.HasPrefix(earlier, "--"+name+"=") }
	if slices.Contains([]string{"message", "text", "file"}, name) && slices.ContainsFunc(l.flags, isSame) {
		return failure.Usage("the text is given twice: the second is %q", letter.Clip(value, 40)).WithHint("leave one out")
	}
	if !takesValue(f) && l.waits(f) && isDuration(value) {
		l.flags, value = append(l.flags, "--timeout="+value), "true"
	}
	if slices.Contains(l.app.Flags, f) {
		l.Global = append(l.Global, "--"+name+"="+value)
	} else if f != ignored {
		l.flags = append(l.flags, "--"+name+"="+value)
	}
	return nil
}

// splitBundle splits several flags of a letter each, "-al" into -a and -l, and one and its value, "-n5" into -n=5.
func (l *Line) splitBundle(word string) []string {
	typed, _, _ := strings.Cut(word, "=")
	if len(typed) < 3 || typed[1] == '-' || l.FindFlag(typed) != nil || l.FindFlag(typed[:2]) == nil {
		return []string{word}
	}
	isNumber := strings.Trim(typed[2:], "0123456789") == ""
	if !isNumber && strings.ContainsFunc(typed[1:], func(r rune) bool { return l.FindFlag("-"+string(r)) == nil }) {
		return []string{word}
	}
	if takesValue(l.FindFlag(word[:2])) {
		return []string{word[:2] + "=" + word[2:]}
	}
	return append([]string{word[:2]}, l.splitBundle("-"+word[2:])...)
}

// argNamed returns the index of the positional argument that a flag is a synonym of; -1: of none.
func (l *Line) argNamed(flag string) int {
	name := strings.TrimLeft(flag, "-")
	return slices.IndexFunc(l.ArgNames, func(arg string) bool {
		one, other, _ := strings.Cut(arg, "|")
		return isSynonym(one, name) || isSynonym(other, name)
	})
}

// ValueName returns what a flag's usage calls its value, for completion; ok is false for a flag without a value.
func (l *Line) ValueName(flag string) (name string, ok bool) {
	if !l.takesNext(flag, false) {
		return "", false
	}
	typed, _ := FlagUsage(l.FindFlag(flag))
	_, name, _ = strings.Cut(typed, " ")
	return name, true
}

func takesValue(f cli.Flag) bool {
	_, isBool := f.(*cli.BoolFlag)
	return !isBool
}

// FlagUsage returns a flag as it is typed, "--limit N", and what it does.
func FlagUsage(f cli.Flag) (typed, usage string) {
	value, usage := flag.UnquoteUsage(&flag.Flag{Usage: f.(cli.DocGenerationFlag).GetUsage()})
	if !takesValue(f) {
		value = ""
	}
	return strings.TrimSpace("--" + f.Names()[0] + " " + value), usage
}

// NotBoth is a usage error where two flags of a set such as "fyi wait-ack" are given.
func NotBoth(c *cli.Context, sets ...string) error {
	all := c.FlagNames()
	for _, set := range sets {
		given := slices.DeleteFunc(strings.Fields(set), func(name string) bool { return !slices.Contains(all, name) })
		if len(given) > 1 {
			return failure.Usage("--%s and --%s contradict each other", given[0], given[1]).WithHint("leave one out")
		}
	}
	return nil
}

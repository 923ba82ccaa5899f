package cmdline

import (
	"cmp"
	"flag"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/failure"
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
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q", "silent"}, Usage: "errors only"},
		DurationFlag("lock-timeout", 5e9, "wait for a lock at most `D` (default 5s)"),
		&cli.BoolFlag{Name: "no-color", Aliases: []string{"no-colour"}, Hidden: true, Action: noColor},
		&cli.BoolFlag{Name: "yes", Hidden: true, Aliases: []string{ // what other tools need; atm never asks and has no pager
			"y", "non-interactive", "no-input", "no-pager", "verbose", "debug", "pretty", "plain", "wide", "force"}},
		&cli.StringFlag{Name: "via", Hidden: true}, // the calling program: see Via
		&cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "the help page"},
		&cli.BoolFlag{Name: "version", Aliases: []string{"v", "V"}, Usage: "the version"},
	}
}

// A typedFlag is a flag in a command line.
type typedFlag struct {
	cli.Flag        // nil: neither the verb nor the app has it
	typed    string // --name as typed
	value    string
	hasValue bool
	next     string // the word behind it
	length   int    // how many words it takes up; 2: next is its value
	isWait   bool   // it makes the verb wait: a duration behind it is the --timeout
}

// isFlag reports whether a word is a flag. "-" is stdin; a list item and "-=" are text.
func isFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && word[1] != ' ' && word[1] != '='
}

// findFlag looks up "--name" or "--name=value": first among the names of the verb's and the app's flags, then among
// their synonyms.
func (l *Line) findFlag(word string) cli.Flag {
	if !isFlag(word) {
		return nil
	}
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	flags := l.app.Flags
	if l.Command != nil {
		flags = slices.Concat(l.Command.Flags, flags)
	}
	var synonym cli.Flag
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
		if synonym == nil && isSynonym("--"+f.Names()[0], name) {
			synonym = f
		}
	}
	return synonym
}

// readFlag reads the flag that the words begin with, and its value.
func (l *Line) readFlag(words []string) *typedFlag {
	f := &typedFlag{length: 1}
	f.typed, f.value, f.hasValue = strings.Cut(words[0], "=")
	f.Flag = l.findFlag(f.typed)
	if number := f.typed[2:]; number != "" && strings.Trim(number, "0123456789") == "" { // -n5
		f.Flag, f.value, f.hasValue = l.findFlag(f.typed[:2]), number, true
	}
	waits := f.Flag != nil && (strings.HasPrefix(f.name(), "wait") || f.name() == "follow" || f.name() == "watch")
	f.isWait = waits && l.findFlag("--timeout") != nil
	if len(words) > 1 {
		f.next = words[1]
	}
	if len(words) > 1 && !f.hasValue && f.canTakeNext(f.next == "--" || l.findFlag(f.next) != nil) {
		f.value, f.hasValue, f.length = f.next, true, 2
	} else if f.Flag != nil && !f.hasValue && !takesValue(f.Flag) {
		f.value = "true"
	}
	return f
}

func (f *typedFlag) name() string { return f.Names()[0] }

// canTakeNext reports whether the next word can be the flag's value.
func (f *typedFlag) canTakeNext(isKnownFlag bool) bool {
	if f.Flag == nil {
		return !isFlag(f.next)
	}
	if takesValue(f.Flag) {
		return !isKnownFlag
	}
	return f.isWait && isDuration(f.next)
}

// isArgument reports whether the value is a positional argument's, since it does not fit the flag: "reply --id 9f3a1c",
// where our own --id takes a whole UUID.
func (f *typedFlag) isArgument() bool {
	_, wantsDuration := f.Flag.(*cli.GenericFlag)
	fitsNot := f.Flag == nil || wantsDuration && !isDuration(f.value) || f.name() == "id" && !wire.IsID(f.value)
	return f.value != "" && fitsNot
}

// addFlag adds the flag that the words begin with, and returns how many words it takes up. Other tools have flags in
// place of a positional argument, and for the output format.
func (l *Line) addFlag(words []string) (length int, err error) {
	f := l.readFlag(words)
	name, n, state := strings.TrimLeft(f.typed, "-"), l.argNamed(f.typed), l.argNamed("--state")
	switch {
	case n >= 0 && f.isArgument():
		l.flagged[n] = append(l.flagged[n], f.value)
	case isSynonym("FORMAT", name) && isSynonym("JSON", f.value):
		l.Global = append(l.Global, "--json=true")
	case isSynonym("FORMAT", name) && isSynonym("PLAIN", f.value):
	case f.Flag != nil && state >= 0 && takesValue(f.Flag) && !f.hasValue: // wait bob --idle
		l.flagged[state] = append(l.flagged[state], f.name())
	case f.Flag != nil:
		err = l.addOurs(f)
	case l.isBundle(f.typed): // "-al" is -a and -l
		_, first := l.addFlag([]string{f.typed[:2]})
		length, err = l.addFlag(append([]string{"-" + words[0][2:]}, words[1:]...))
		return length, cmp.Or(first, err)
	case l.Command == nil:
		l.flags, f.length = append(l.flags, words[0]), 1 // urfave refuses it
	default:
		err = unknownFlag(l.app, l.Command, f.typed)
	}
	return f.length, err
}

// isBundle reports whether every letter of a word is a flag.
func (l *Line) isBundle(word string) bool {
	return !strings.ContainsFunc(word[1:], func(r rune) bool { return l.findFlag("-"+string(r)) == nil })
}

// addOurs adds a flag of the verb or the app.
func (l *Line) addOurs(f *typedFlag) error {
	if err := l.checkFlag(f); err != nil {
		return err
	}
	if f.isWait && isDuration(f.value) {
		l.flags, f.value = append(l.flags, "--timeout="+f.value), "true"
	}
	if flag := "--" + f.name() + "=" + f.value; slices.Contains(l.app.Flags, f.Flag) {
		l.Global = append(l.Global, flag)
	} else {
		l.flags = append(l.flags, flag)
	}
	return nil
}

// checkFlag reports mistakes that urfave cannot see.
func (l *Line) checkFlag(f *typedFlag) error {
	if takesValue(f.Flag) && (!f.hasValue || f.value == "" && slices.Contains(l.app.Flags, f.Flag)) {
		return failure.Usage("%s needs a value", f.typed)
	}
	if !f.hasValue && (f.next == "true" || f.next == "false") {
		return failure.Usage("%s takes no value: what is %q?", f.typed, f.next).WithHint("leave it out, or put text after --")
	}
	isText := slices.Contains([]string{"message", "text", "file"}, f.name())
	isSame := func(earlier string) bool { return strings.HasPrefix(earlier, "--"+f.name()+"=") }
	if isText && slices.ContainsFunc(l.flags, isSame) {
		return failure.Usage("the text is given twice: the second is %q", clipped(f.value)).WithHint("leave one out")
	}
	return nil
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
	typed, _ := FlagUsage(l.findFlag(flag))
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
	return strings.TrimSpace(dashed(f.Names()[0]) + " " + value), usage
}

// CountFlag is a flag for a number that may not be negative; ifZero says what 0 means.
func CountFlag(name string, value int, usage, ifZero string, also ...string) cli.Flag {
	return &cli.IntFlag{Name: name, Aliases: also, Value: value, Usage: usage, Action: func(_ *cli.Context, n int) error {
		if n < 0 {
			return failure.Usage("--%s %d: must not be negative", name, n).WithHint("--%s 0: %s", name, ifZero)
		}
		return nil
	}}
}

// ChoiceFlag is a flag for one of some words.
func ChoiceFlag(name, usage string, words ...string) cli.Flag {
	return &cli.StringFlag{Name: name, Usage: usage, Action: func(c *cli.Context, word string) error {
		if slices.Contains(words, word) {
			return nil
		}
		return failure.Usage("--%s must be one of %s, not %q", name, strings.Join(words, ", "), word).
			WithHint("%s --%s %s", c.Command.HelpName, name, words[0]).WithCandidates(words...)
	}}
}

// NotBoth is a usage error where two flags of a set such as "fyi wait-ack" are given.
func NotBoth(c *cli.Context, sets ...string) error {
	all := c.FlagNames()
	for _, set := range sets {
		given := slices.DeleteFunc(strings.Fields(set), func(name string) bool { return !slices.Contains(all, name) })
		if len(given) > 1 {
			return failure.Usage("%s and %s contradict each other", dashed(given[0]), dashed(given[1])).WithHint("leave one out")
		}
	}
	return nil
}

// dashed returns -n or --name.
func dashed(name string) string { return strings.Repeat("-", min(len(name), 2)) + name }

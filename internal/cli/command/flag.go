package command

import (
	"flag"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/wire"
)

// A givenFlag is a flag as it stands in a command line.
type givenFlag struct {
	cli.Flag        // nil: neither the verb nor the app has it
	typed    string // --name, or what it is called elsewhere
	value    string
	hasValue bool
	next     string // the word behind it
	n        int    // how many words it is; 2: the next is its value
	waits    bool   // the value may be its timeout
}

// isFlag reports whether a word is a flag: "-" is stdin; an item of a list, a line of a diff and "-=" are text.
func isFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && word[1] != ' ' && word[1] != '=' && !strings.HasPrefix(word, "--- ")
}

// find is this verb's or the app's flag that a word "--name" or "--name=value" means.
func (l *Line) find(word string) cli.Flag {
	if !isFlag(word) {
		return nil
	}
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	flags := l.app.Flags
	if l.Command != nil {
		flags = slices.Concat(l.Command.Flags, flags)
	}
	var other cli.Flag
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
		if other == nil && isSynonym("--"+f.Names()[0], name) {
			other = f
		}
	}
	return other
}

// readFlag reads the first word, and the one behind it where that is its value.
func (l *Line) readFlag(words []string) *givenFlag {
	f := &givenFlag{n: 1}
	f.typed, f.value, f.hasValue = strings.Cut(words[0], "=")
	f.Flag = l.find(f.typed)
	if number := f.typed[2:]; f.Flag == nil && number != "" && strings.Trim(number, "0123456789") == "" { // -n5
		f.Flag, f.value, f.hasValue = l.find(f.typed[:2]), number, true
	}
	f.waits = f.Flag != nil && (strings.HasPrefix(f.name(), "wait") || f.name() == "follow") && l.find("--timeout") != nil
	if len(words) > 1 {
		f.next = words[1]
	}
	if len(words) > 1 && !f.hasValue && f.canTakeNext(f.next == "--" || l.find(f.next) != nil) {
		f.value, f.hasValue, f.n = f.next, true, 2
	} else if f.Flag != nil && !f.hasValue && !takesValue(f.Flag) {
		f.value = "true"
	}
	return f
}

func (f *givenFlag) name() string { return f.Names()[0] }

// canTakeNext reports whether the word behind a flag is its value.
func (f *givenFlag) canTakeNext(isKnownFlag bool) bool {
	if f.Flag == nil {
		return !isFlag(f.next)
	}
	if takesValue(f.Flag) {
		return !isKnownFlag
	}
	return f.waits && isDuration(f.next)
}

// isForWord reports whether the value is none for this flag, but for a word that other tools give so.
func (f *givenFlag) isForWord() bool {
	_, isSpan := f.Flag.(*cli.GenericFlag)
	isNoSpan := (isSpan || f.waits) && !isDuration(f.value)
	return f.value != "" && (f.Flag == nil || isNoSpan || f.name() == "id" && !wire.IsID(f.value))
}

// takeFlag takes in the flag that the words begin with. n is how many of them it is.
func (l *Line) takeFlag(words []string) (n int, err error) {
	f := l.readFlag(words)
	switch {
	case l.addMeant(f):
	case f.Flag != nil:
		err = l.addFlag(f)
	case l.Command == nil || l.find(f.typed[:2]) != nil:
		l.flags, f.n = append(l.flags, words[0]), 1 // urfave takes "-al" apart, or refuses it
	default:
		err = unknownFlag(l.app, l.Command, f.typed)
	}
	return f.n, err
}

// addMeant takes in a flag that plainly is something else here: a word of the verb, another flag, or the wish for JSON.
func (l *Line) addMeant(f *givenFlag) bool {
	name, place := strings.TrimLeft(f.typed, "-"), l.place(f.typed)
	switch {
	case place >= 0 && f.isForWord():
		l.named[place] = append(l.named[place], f.value)
	case f.Flag != nil:
		return false
	case isSynonym("FORMAT", name) && isSynonym("JSON", f.value):
		l.Global = append(l.Global, "--json=true")
	default:
		return isSynonym("FORMAT", name) && isSynonym("PLAIN", f.value)
	}
	return true
}

// addFlag takes in a flag of the verb or the app.
func (l *Line) addFlag(f *givenFlag) error {
	if state := l.place("--state"); state >= 0 && takesValue(f.Flag) && !f.hasValue { // wait bob --idle
		l.named[state] = append(l.named[state], f.name())
		return nil
	}
	if err := l.checkFlag(f); err != nil {
		return err
	}
	if f.waits && isDuration(f.value) {
		l.flags, f.value = append(l.flags, "--timeout="+f.value), "true"
	}
	if flag := "--" + f.name() + "=" + f.value; slices.Contains(l.app.Flags, f.Flag) {
		l.Global = append(l.Global, flag)
	} else {
		l.flags = append(l.flags, flag)
	}
	return nil
}

// checkFlag reports what is wrong with a flag that urfave does not see.
func (l *Line) checkFlag(f *givenFlag) error {
	if takesValue(f.Flag) && (!f.hasValue || f.value == "" && slices.Contains(l.app.Flags, f.Flag)) {
		return Usage("%s needs a value", f.typed)
	}
	if !f.hasValue && (f.next == "true" || f.next == "false") {
		return Usage("%s takes no value: what is %q?", f.typed, f.next).WithHint("leave it out; a text goes behind --")
	}
	isText := slices.Contains([]string{"message", "text", "file"}, f.name())
	isSecond := func(given string) bool { return strings.HasPrefix(given, "--"+f.name()+"=") }
	if isText && slices.ContainsFunc(l.flags, isSecond) {
		return Usage("the text is given twice: the second is %q", clipped(f.value)).WithHint("leave one out")
	}
	return nil
}

// place is which word of its verb a flag names; -1: none.
func (l *Line) place(flag string) int {
	name := strings.TrimLeft(flag, "-")
	return slices.IndexFunc(l.Kinds, func(kind string) bool {
		one, other, _ := strings.Cut(kind, "|")
		return isSynonym(one, name) || isSynonym(other, name)
	})
}

// ValueKind is what the value of a flag is, by its usage; wanted is false for one that takes none.
func (l *Line) ValueKind(flag string) (kind string, wanted bool) {
	if !l.takesNext(flag, false) {
		return "", false
	}
	f := l.find(flag)
	if f.Names()[0] == "once" { // its NAME is no member's
		return "", true
	}
	typed, _ := FlagUsage(f)
	_, kind, _ = strings.Cut(typed, " ")
	return kind, true
}

func takesValue(f cli.Flag) bool {
	_, isBool := f.(*cli.BoolFlag)
	return !isBool
}

// FlagUsage is a flag as it is typed, "--limit N", and what it does.
func FlagUsage(f cli.Flag) (typed, usage string) {
	value, usage := flag.UnquoteUsage(&flag.Flag{Usage: f.(cli.DocGenerationFlag).GetUsage()})
	if !takesValue(f) {
		value = ""
	}
	return strings.TrimSpace(dashed(f.Names()[0]) + " " + value), usage
}

// CountFlag is a flag for a number, which may not be negative; ifZero says what 0 means.
func CountFlag(name string, value int, usage, ifZero string, also ...string) cli.Flag {
	return &cli.IntFlag{Name: name, Aliases: also, Value: value, Usage: usage, Action: func(_ *cli.Context, n int) error {
		if n < 0 {
			return Usage("--%s %d: it may not be negative", name, n).WithHint("--%s 0: %s", name, ifZero)
		}
		return nil
	}}
}

// NotBoth is a usage error where two flags of a set are given: "fyi wait-ack".
func NotBoth(c *cli.Context, sets ...string) error {
	all := c.FlagNames()
	for _, set := range sets {
		given := slices.DeleteFunc(strings.Fields(set), func(name string) bool { return !slices.Contains(all, name) })
		if len(given) > 1 {
			return Usage("%s and %s contradict each other", dashed(given[0]), dashed(given[1])).WithHint("leave one out")
		}
	}
	return nil
}

// dashed is -n or --name.
func dashed(name string) string { return strings.Repeat("-", min(len(name), 2)) + name }

package command

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
)

// A Line is a command line as urfave/cli wants it: flags before words.
type Line struct {
	Command *cli.Command // the innermost verb; nil: none is named
	Path    []string     // its names: "team", "add"
	Words   []string     // what is left: neither verb nor flag
	Help    bool         // --help
	JSON    bool         // --json: an error is to be JSON, even that of this line

	app           *cli.App
	verbs         []int    // where in the command line the verbs stand
	global, flags []string // as "--name=value"
	given         map[string]string
}

// UnknownCommandError says that no verb has this name.
type UnknownCommandError struct {
	Name string
	Rest []string // the words behind it, as they were typed
}

func (e *UnknownCommandError) Error() string { return fmt.Sprintf("unknown command %q", e.Name) }

// Args are the arguments for cli.App.Run.
func (l *Line) Args() []string {
	args := append([]string{l.app.Name}, l.global...)
	args = append(args, l.Path...)
	args = append(args, l.flags...)
	return append(append(args, "--"), l.Words...)
}

// Parse reads the words behind the program's name: first for the verb, then for
// its flags and words, so that a flag means the same wherever it stands. The Line
// is there even with an error, for --json.
func Parse(app *cli.App, words []string) (*Line, error) {
	l := &Line{app: app, given: map[string]string{}}
	before := words
	if end := slices.Index(words, "--"); end >= 0 {
		before = words[:end]
	}
	l.JSON = slices.Contains(before, "--json")
	if err := l.findVerb(words); err != nil {
		return l, err
	}
	ended := false
	endAfter := l.wordsBeforeCommand()
	for i := 0; i < len(words); i++ {
		word := words[i]
		if slices.Contains(l.verbs, i) {
			continue
		}
		if !ended && word == "--" {
			ended = true
			continue
		}
		if ended || !isFlag(word) {
			l.Words = append(l.Words, word)
			ended = ended || endAfter > 0 && len(l.Words) > endAfter
			continue
		}
		used, err := l.takeFlag(words[i:])
		if err != nil {
			return l, err
		}
		i += used
	}
	if l.Help || l.Command == nil {
		return l, nil
	}
	if l.Command.Name == "wait" && len(l.Words) > 0 && isDuration(l.Words[0]) {
		if err := l.set(l.find("timeout"), l.Words[0]); err != nil {
			return l, err
		}
		l.Words = l.Words[1:]
	}
	return l, l.checkWords()
}

// isFlag reports whether a word can only be a flag: "-" is stdin, and an item of
// a list or a line of a diff is text.
func isFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && word[1] != ' ' && !strings.HasPrefix(word, "--- ")
}

func isDuration(word string) bool {
	_, err := ParseDuration(word)
	return err == nil
}

// findVerb finds the words that name the verb and its sub.
func (l *Line) findVerb(words []string) error {
	commands := l.app.Commands
	for i := 0; i < len(words) && words[i] != "--"; i++ {
		word := words[i]
		if isFlag(word) {
			if i+1 < len(words) && l.valueFollows(word, words[i+1]) {
				i++
			}
			continue
		}
		found := findCommand(commands, word)
		if found == nil && l.Command == nil {
			return &UnknownCommandError{Name: word, Rest: words[i+1:]}
		}
		if found == nil && l.Command.ArgsUsage == "" && len(commands) > 0 && !l.Command.Args {
			return l.unknownSub(word)
		}
		if found == nil {
			return nil
		}
		l.Command, l.Path, l.verbs = found, append(l.Path, found.Name), append(l.verbs, i)
		if commands = found.Subcommands; len(commands) == 0 {
			return nil
		}
	}
	return nil
}

func findCommand(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

func (l *Line) unknownSub(word string) error {
	path := l.app.Name + " " + strings.Join(l.Path, " ")
	e := Usage("unknown command %q after %s", word, path)
	names := visibleNames(l.Command.Subcommands)
	if near, ok := Nearest(word, names); ok {
		return e.WithHint("did you mean \"%s %s\"?", path, near).WithCandidates(near)
	}
	if l.find(word) != nil {
		return e.WithHint("did you mean \"%s --%s\"?", path, word).WithCandidates("--" + word)
	}
	var listed []string
	for _, c := range l.Command.Subcommands {
		if !c.Hidden {
			listed = append(listed, c.Name)
		}
	}
	return e.WithHint("%s --help; it knows %s", path, strings.Join(listed, ", "))
}

func visibleNames(commands []*cli.Command) (names []string) {
	for _, c := range commands {
		if !c.Hidden {
			names = append(names, c.Names()...)
		}
	}
	return names
}

// valueFollows reports whether the next word is the value of a flag that stands
// before its verb is known. Where the flag is that of some verb, another verb may
// have one of that name without a value: then a verb's name is the verb.
func (l *Line) valueFollows(word, next string) bool {
	name, _, assigned := strings.Cut(strings.TrimLeft(word, "-"), "=")
	if assigned {
		return false
	}
	if f := l.find(name); f != nil {
		return takesValue(f)
	}
	f := findAnywhere(l.app.Commands, name)
	return f != nil && takesValue(f) && findCommand(l.app.Commands, next) == nil
}

func findAnywhere(commands []*cli.Command, name string) cli.Flag {
	for _, c := range commands {
		if f := findFlag(c.Flags, name); f != nil {
			return f
		}
		if f := findAnywhere(c.Subcommands, name); f != nil {
			return f
		}
	}
	return nil
}

// find is this verb's or the app's flag of that name or alias.
func (l *Line) find(name string) cli.Flag {
	if l.Command != nil {
		if f := findFlag(l.Command.Flags, name); f != nil {
			return f
		}
	}
	return findFlag(l.app.Flags, name)
}

func findFlag(flags []cli.Flag, name string) cli.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func takesValue(f cli.Flag) bool {
	_, isBool := f.(*cli.BoolFlag)
	return !isBool
}

// takeFlag takes the flag at words[0] and returns how many words it used beyond
// that one.
func (l *Line) takeFlag(words []string) (used int, err error) {
	name, value, assigned := strings.Cut(strings.TrimLeft(words[0], "-"), "=")
	f := l.find(name)
	if f == nil {
		return 0, l.shortFlags(words[0])
	}
	if hint := meantBy(f); hint != "" {
		return 0, Usage("%s has no %s", l.path(), dashed(name)).WithHint("%s", hint)
	}
	next := ""
	if len(words) > 1 {
		next = words[1]
	}
	if !takesValue(f) {
		return l.takeBool(f, name, value, assigned, next)
	}
	if assigned {
		return 0, l.set(f, value)
	}
	if len(words) == 1 || next == "--" || isFlag(next) && l.isKnown(next) {
		return 0, Usage("%s needs a value", dashed(name)).WithHint("%s %s", dashed(name), placeholder(f))
	}
	return 1, l.set(f, next)
}

// takeBool takes a flag that is on or off. A flag that waits may have its
// timeout behind it.
func (l *Line) takeBool(f cli.Flag, name, value string, assigned bool, next string) (used int, err error) {
	waits := strings.HasPrefix(f.Names()[0], "wait") && l.find("timeout") != nil
	if assigned && waits && isDuration(value) {
		return 0, l.setBoth(f, value)
	}
	if assigned {
		if _, err := strconv.ParseBool(value); err != nil {
			return 0, Usage("%s is on or off, not %q", dashed(name), value).WithHint("%s, or %s=false", dashed(name), dashed(name))
		}
		return 0, l.set(f, value)
	}
	if waits && isDuration(next) {
		return 1, l.setBoth(f, next)
	}
	if _, err := strconv.Atoi(next); err == nil && waits {
		return 0, Usage("%s %s: seconds, or minutes?", dashed(name), next).WithHint("%s %ss", dashed(name), next)
	}
	if slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "0", "1"}, strings.ToLower(next)) {
		return 0, Usage("%s takes no value, and %q can be nothing else", dashed(name), next).
			WithHint("%s, or %s=false; a text goes into quotes, or behind --", dashed(name), dashed(name))
	}
	return 0, l.set(f, "true")
}

func (l *Line) setBoth(f cli.Flag, timeout string) error {
	if err := l.set(f, "true"); err != nil {
		return err
	}
	return l.set(l.find("timeout"), timeout)
}

// shortFlags takes "-n5" and "-al" apart, or says what was meant.
func (l *Line) shortFlags(word string) error {
	letters := word[1:]
	if f := l.find(letters[:1]); f != nil && len(letters) > 1 && takesValue(f) && strings.Trim(letters[1:], "0123456789") == "" {
		return l.set(f, letters[1:])
	}
	for _, r := range letters {
		f := l.find(string(r))
		if f == nil || takesValue(f) || meantBy(f) != "" || len(letters) == 1 {
			return l.unknownFlag(word)
		}
	}
	for _, r := range letters {
		if err := l.set(l.find(string(r)), "true"); err != nil {
			return err
		}
	}
	return nil
}

func (l *Line) isKnown(word string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	return l.find(name) != nil
}

// set checks and keeps the value of a flag.
func (l *Line) set(f cli.Flag, value string) error {
	name := f.Names()[0]
	switch name {
	case "help":
		l.Help = true
		return nil
	case "json":
		l.JSON = true
	}
	if err := checkValue(f, value); err != nil {
		return err
	}
	if _, repeats := f.(*cli.StringSliceFlag); !repeats {
		if old, again := l.given[name]; again && old != value {
			return Usage("%s given twice: %q and %q", dashed(name), old, value).WithHint("leave one out")
		} else if again {
			return nil
		}
	}
	l.given[name] = value
	word := "--" + name + "=" + value
	if l.Command != nil && findFlag(l.Command.Flags, name) != nil {
		l.flags = append(l.flags, word)
	} else {
		l.global = append(l.global, word)
	}
	return nil
}

// checkValue reads a value as its flag will.
func checkValue(f cli.Flag, value string) error {
	name := dashed(f.Names()[0])
	switch f.(type) {
	case *cli.IntFlag:
		if n, err := strconv.Atoi(value); err != nil || n < 0 {
			return Usage("%s needs a whole number, not %q", name, value).WithHint("for example %s 20", name)
		}
	case *cli.GenericFlag:
		if _, err := strconv.Atoi(value); err == nil && value != "0" {
			return Usage("%s needs a unit", name).WithHint("%s %ss; units are s, m, h, d", name, value)
		}
		if _, err := ParseDuration(value); err != nil {
			return Usage("%s needs a duration, not %q", name, value).WithHint("for example %s 30s; units are s, m, h, d", name)
		}
	}
	return nil
}

// checkWords counts what is left by ArgsUsage.
func (l *Line) checkWords() error {
	if l.Command.Args {
		return nil
	}
	least, most := 0, 0
	for _, field := range strings.Fields(l.Command.ArgsUsage) {
		if !strings.HasPrefix(field, "[") {
			least++
		}
		if strings.Contains(field, "…") {
			most = 1 << 20
		}
		most++
	}
	if len(l.Words) < least {
		example, _, _ := strings.Cut(l.Command.UsageText, "\n")
		return Usage("%s needs %s", l.path(), l.Command.ArgsUsage).WithHint("%s", example)
	}
	if len(l.Words) > most && most == 0 {
		return Usage("%s takes no arguments, not %q", l.path(), clipped(l.Words[0])).WithHint("%s --help", l.path())
	}
	if len(l.Words) > most {
		return Usage("%q is one argument too many for %s", clipped(l.Words[most]), l.path()).WithHint("%s --help", l.path())
	}
	return nil
}

// wordsBeforeCommand is how many words stand before a command line of somebody
// else's, where the verb takes one; 0: it takes none.
func (l *Line) wordsBeforeCommand() int {
	if l.Command == nil {
		return 0
	}
	for n, field := range strings.Fields(l.Command.ArgsUsage) {
		if strings.HasPrefix(strings.Trim(field, "["), "CMD") {
			return n
		}
	}
	return 0
}

func (l *Line) path() string {
	return strings.Join(append([]string{l.app.Name}, l.Path...), " ")
}

// unknownFlag says what was probably meant by a flag that is not there.
func (l *Line) unknownFlag(word string) error {
	if strings.ContainsAny(word, " \t\r\n") { // a list or a sentence
		return Usage("%q begins with -, so it is not taken as text", clipped(word)).WithHint(afterDashes)
	}
	typed, _, _ := strings.Cut(word, "=")
	name := strings.TrimLeft(typed, "-")
	if l.Command == nil {
		return Usage("unknown flag %s", clipped(typed)).WithHint("%s help all", l.app.Name)
	}
	e := Usage("unknown flag %s for %s", clipped(typed), l.path())
	var known []string
	for _, f := range append(l.Command.Flags[:len(l.Command.Flags):len(l.Command.Flags)], l.app.Flags...) {
		if meantBy(f) == "" {
			known = append(known, f.Names()...)
		}
	}
	if near, ok := Nearest(name, known); ok {
		canonical := dashed(l.find(near).Names()[0])
		return e.WithHint("did you mean %s?", canonical).WithCandidates(canonical)
	}
	if strings.Contains(l.Command.ArgsUsage, "TEXT") || strings.Contains(l.Command.ArgsUsage, "WORDS") {
		return e.WithHint("%s; %s --help lists the flags", afterDashes, l.path())
	}
	return e.WithHint("%s --help", l.path())
}

const afterDashes = "text that begins with - goes behind --"

// AwaitsValue reports whether a word is one of these flags, and the word behind
// it its value.
func AwaitsValue(flags []cli.Flag, word string) bool {
	f := findFlag(flags, strings.TrimLeft(word, "-"))
	return f != nil && takesValue(f)
}

// meant is the value of a flag that does nothing: somebody typed it for
// something else, which its usage names.
type meant struct{}

func (meant) Set(string) error { return nil }
func (meant) String() string   { return "" }

// Meant is a flag that is not there but is often typed. hint says what was meant.
func Meant(name, hint string) cli.Flag {
	return &cli.GenericFlag{Name: name, Value: meant{}, Usage: hint, Hidden: true}
}

// MeantVerb is a verb that is not there but is often typed: all its names are
// answered with a hint that says what was meant.
func MeantVerb(hint, name string, aliases ...string) *cli.Command {
	return &cli.Command{
		Name: name, Aliases: aliases, Hidden: true, Args: true,
		Action: func(c *cli.Context) error {
			return Usage("unknown command %q", strings.TrimPrefix(c.Command.HelpName, c.App.Name+" ")).WithHint("%s", hint)
		},
	}
}

// meantBy is the hint of a Meant flag, "" for any other.
func meantBy(f cli.Flag) string {
	if g, ok := f.(*cli.GenericFlag); ok {
		if _, is := g.Value.(meant); is {
			return g.Usage
		}
	}
	return ""
}

// dashed is a flag's name or alias as it is typed.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// placeholder is what stands for a flag's value: what its usage quotes.
func placeholder(f cli.Flag) string {
	name, _ := Usages(f)
	return name
}

// Usages are the placeholder of a flag's value and its usage, for a help page.
func Usages(f cli.Flag) (placeholder, usage string) {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return "", ""
	}
	placeholder, usage = flag.UnquoteUsage(&flag.Flag{Usage: d.GetUsage(), DefValue: ""})
	if !d.TakesValue() {
		placeholder = ""
	}
	return placeholder, usage
}

// clipped shortens a word that somebody typed for a message of one line.
func clipped(s string) string {
	if runes := []rune(s); len(runes) > 40 {
		return string(runes[:40]) + "…"
	}
	return s
}

package command

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// A Line is a command line as urfave/cli wants it.
type Line struct {
	Command *cli.Command // the innermost verb; nil: none is named
	Unknown int          // where a word stands that is no verb; -1: nowhere
	Args    []string     // for cli.App.Run: flags before words
	Kinds   []string     // what ArgsUsage calls the words of the verb: TO, ID|NAME, TEXT
	Words   []string     // neither verb nor flag
	Global  []string     // flags of the app, as --name=value
	Help    bool         // --help
	JSON    bool         // --json

	app      *cli.App
	typed    []string         // in our words
	flags    []string         // of the verb, as --name=value
	named    map[int][]string // words that were given as flags, by their place in ArgsUsage
	wordFlag string           // the last of these flags, without dashes
}

// LineOf is the command line that a verb was called with.
func LineOf(c *cli.Context) *Line { return c.App.Metadata["line"].(*Line) }

// Parse sorts the words behind the program's name: flags before words, so that a flag means the same wherever it stands
// before "--". urfave reads what the flags say. The Line is there even with an error.
func Parse(app *cli.App, words []string) (*Line, error) {
	words = verbFirst(app, words)
	end := slices.Index(words, "--")
	if end < 0 {
		end = len(words)
	}
	l := &Line{app: app, typed: words, JSON: slices.Contains(words[:end], "--json"), Unknown: -1, named: map[int][]string{}}
	verbs := l.findVerb(words[:end])
	commandAt := 1 + slices.Index(l.Kinds, "CMD") // which word begins a command line of somebody else's; 0: none
	var path []string
	for i := 0; i < end; i++ {
		switch {
		case slices.Contains(verbs, i):
			path = append(path, words[i])
		case l.isTimeout(words[i]):
			l.flags = append(l.flags, "--timeout="+words[i])
		case l.isFlagWord(words[i]):
			l.flags = append(l.flags, boolFlag(l.Command, words[i]))
		case !isFlag(words[i]):
			l.Words = append(l.Words, words[i])
			if len(l.Words)+len(l.named) == commandAt {
				end = i + 1
			}
		default:
			takesNext, err := l.addFlag(words[i], words[i+1:end])
			if err != nil {
				return l, err
			}
			if takesNext {
				i++
			}
		}
	}
	isNameless := end < len(words) && len(l.Words)+len(l.named)+1 < commandAt && !l.Help // run --as bob -- claude
	if end < len(words) && words[end] == "--" {
		end++
	}
	l.Words = append(l.Words, words[end:]...)
	l.moveTextToFlag()
	l.dropNoun()
	l.Help = l.Help || len(l.Words) == 1 && l.Words[0] == "help" && !slices.Contains(l.Kinds, "TEXT")
	l.JSON = slices.Contains(l.Global, "--json=true")
	if err := l.fill(); err != nil {
		return l, err
	}
	l.Args = slices.Concat([]string{app.Name}, l.Global, path, l.flags, []string{"--"}, l.Words)
	if isNameless {
		return l, Usage("%s needs %s in front of --", l.Command.HelpName, l.Kinds[0]).WithHint("%s", example(l.Command))
	}
	return l, l.checkWords()
}

// moveTextToFlag makes --text of a text behind the ids of a verb that takes no other: ack ID "on it".
func (l *Line) moveTextToFlag() {
	last := len(l.Words) - 1
	if last > 0 && len(l.Kinds) == 1 && len(l.flags) == 0 && l.find("--text") != nil && isText(l.Words[last]) {
		l.flags, l.Words = append(l.flags, "--text="+l.Words[last]), l.Words[:last]
	}
}

// dropNoun drops a first word that only says what the verb is about: pending list, thread show ID, stop agent bob.
func (l *Line) dropNoun() {
	if l.Command == nil || len(l.Command.Subcommands) > 0 || len(l.Words) <= len(l.Kinds) || strings.Contains(l.Command.ArgsUsage, "…") {
		return
	}
	if isOneOf(l.app, "LIST", l.Words[0]) || slices.Contains([]string{"agent", "agents", "member", "message"}, l.Words[0]) {
		l.Words = l.Words[1:]
	}
}

// addFlag takes in a flag, and reports whether the word behind it is its value.
func (l *Line) addFlag(word string, behind []string) (takesNext bool, err error) {
	typed, value, given := strings.Cut(word, "=")
	next := ""
	if len(behind) > 0 {
		next = behind[0]
	}
	f := l.find(typed)
	if number := typed[2:]; f == nil && number != "" && strings.Trim(number, "0123456789") == "" { // -n5
		f, value, given = l.find(typed[:2]), number, true
	}
	meant := value
	if !given && !isFlag(next) {
		meant = next
	}
	if l.guess(typed, f, meant) {
		return !given, nil
	}
	if f == nil && l.Command != nil && strings.HasPrefix(word, "--") {
		if len(l.Command.Subcommands) > 0 && len(l.Words) > len(l.Kinds) { // team create dave --role reviewer
			return false, l.checkWords()
		}
		return false, unknownFlag(l.app, l.Command, typed)
	} else if f == nil {
		l.flags = append(l.flags, word) // urfave takes "-al" apart, or refuses it
		return false, nil
	}
	name, needs, isGlobal := f.Names()[0], takesValue(f), slices.Contains(l.app.Flags, f)
	waits := (strings.HasPrefix(name, "wait") || name == "follow") && l.find("--timeout") != nil
	if !given && len(behind) > 0 && (needs && l.find(next) == nil || waits && isDuration(next)) {
		value, given, takesNext = next, true, true
	}
	state := l.place("--state")
	_, isSpan := f.(*cli.GenericFlag)
	badUnit := missingUnit(f, value)
	isAlone := !isGlobal && name != "enter" && (len(behind) == 1 || len(behind) > 1 && isFlag(behind[1])) // no more text
	switch {
	case needs && !given && state >= 0: // wait bob --idle
		l.named[state] = append(l.named[state], name)
		return false, nil
	case needs && (!given || value == "" && isGlobal):
		return false, Usage("%s needs a value", typed)
	case (waits || isSpan) && errors.Is(badUnit, errNoUnit):
		return false, Usage("invalid value %q for %s: %v", value, typed, badUnit).WithHint("%s", l.with(typed, value, typed, value+usualUnit(f)))
	case waits && isDuration(value):
		l.flags = append(l.flags, "--timeout="+value)
		value = "true"
	case !given && (next == "false" || next == "no" && isAlone):
		return false, noValue(typed, next, l.with(typed, next))
	case !given && (next == "true" || next == "yes" && isAlone || name == "watch" && isDuration(next)):
		return false, noValue(typed, next, l.with(typed, next, typed))
	case !given:
		value = "true"
	}
	if n := slices.IndexFunc(l.flags, func(f string) bool { return strings.HasPrefix(f, "--"+name+"=") }); n >= 0 && isTextFlag(name) {
		_, before, _ := strings.Cut(l.flags[n], "=")
		return false, Usage("the text is given twice: as %q and as %q", clipped(before), clipped(value)).WithHint("leave one out")
	}
	l.Help = l.Help || name == "help"
	if flag := "--" + name + "=" + value; isGlobal {
		l.Global = append(l.Global, flag)
	} else {
		l.flags = append(l.flags, flag)
	}
	return takesNext, nil
}

func noValue(flag, next, repaired string) error {
	return Usage("%s takes no value: what is %q?", flag, next).WithHint("%s; a text goes behind --", repaired)
}

// with is the line with other words in place of a flag and its value.
func (l *Line) with(flag, value string, by ...string) string {
	words := slices.Clone(l.typed)
	for i, word := range words {
		if word == flag+"="+value {
			return l.toType(slices.Replace(words, i, i+1, by...))
		} else if word == flag && slices.Index(words[i+1:], value) == 0 {
			return l.toType(slices.Replace(words, i, i+2, by...))
		}
	}
	return l.toType(words)
}

// toType is a command line of other words, as a shell takes it.
func (l *Line) toType(words []string) string {
	line := l.app.HelpName
	for _, word := range words {
		line += " " + policy.Quote(word)
	}
	return line
}

// Repaired is the command line with the right words where the wrong ones stand, which are words of the verb or values
// of the flag. "": they do not stand there.
func (l *Line) Repaired(flag string, wrong, right []string) string {
	var words []string
	for i, word := range l.typed {
		isElsewhere := i == 0 || len(wrong) == 0 || l.isValueOfOther(flag, i)
		if isElsewhere || word != wrong[0] && !(isFlag(word) && strings.HasSuffix(word, "="+wrong[0])) {
			words = append(words, word)
			continue
		}
		if len(right) > 0 {
			words = append(append(words, strings.TrimSuffix(word, wrong[0])+right[0]), right[1:]...)
		} else if f := l.find(l.typed[i-1]); word == wrong[0] && f != nil && takesValue(f) && !strings.Contains(l.typed[i-1], "=") {
			words = words[:len(words)-1] // the second --to
		}
		wrong, right = wrong[1:], nil
	}
	if len(wrong) > 0 {
		return ""
	}
	return l.toType(words)
}

// isValueOfOther reports whether a word that was typed is, or has, the value of another flag than this one.
func (l *Line) isValueOfOther(flag string, i int) bool {
	typed, _, given := strings.Cut(l.typed[i], "=")
	if before := l.typed[i-1]; !(given && isFlag(typed)) {
		if strings.Contains(before, "=") || !isFlag(before) {
			return false
		}
		typed = before
	}
	f := l.find(typed)
	return f != nil && takesValue(f) && f.Names()[0] != flag
}

// isFlagWord reports whether a word is a flag of a verb that otherwise takes at most agents or ids: "ls sent".
func (l *Line) isFlagWord(word string) bool {
	isOther := func(kind string) bool { return kind != "AGENT" && kind != "ID" }
	return l.Command != nil && !slices.ContainsFunc(l.Kinds, isOther) && !strings.Contains(" "+l.Command.ArgsUsage, " ID") &&
		boolFlag(l.Command, word) != ""
}

// isTimeout reports whether a word says how long a verb of agents follows: "watch 30s".
func (l *Line) isTimeout(word string) bool {
	_, err := ParseDuration(word)
	return err == nil && slices.Contains(l.Kinds, "AGENT") && l.find("--follow") != nil && l.find("--timeout") != nil
}

// ValueKind is what the value of a flag is, by its usage or the word that it names; wanted
// is false for one that takes none.
func (l *Line) ValueKind(flag string) (kind string, wanted bool) {
	f := l.find(flag)
	if n := l.place(flag); f == nil && n >= 0 {
		return l.Kinds[n], true
	}
	if f == nil || !takesValue(f) || strings.Contains(flag, "=") {
		return "", false
	}
	if name := f.Names()[0]; name == "team" || name == "once" { // NAME is a member's elsewhere
		return "", true
	}
	_, usage, _ := strings.Cut(f.(cli.DocGenerationFlag).GetUsage(), "`")
	kind, _, _ = strings.Cut(usage, "`")
	return kind, true
}

// isTextFlag reports whether a flag gives the text of a message: a second one would take the place of the first.
func isTextFlag(name string) bool { return name == "message" || name == "text" || name == "file" }

// isFlag reports whether a word can only be a flag: "-" is stdin, and an item of
// a list or a line of a diff is text, as is what has no name.
func isFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && word[1] != ' ' && word[1] != '=' && !strings.HasPrefix(word, "--- ")
}

// findVerb finds where the verb and its sub stand, and what its words are. A flag in front of its verb is not
// known yet: what follows it is taken for its value unless it is a verb.
func (l *Line) findVerb(words []string) (at []int) {
	commands := l.app.Commands
	for i, word := range words {
		n := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(word) })
		isValue := false
		if i > 0 && isFlag(words[i-1]) && !strings.Contains(words[i-1], "=") {
			f := l.find(words[i-1])
			isValue = f != nil && takesValue(f) || f == nil && n < 0
		}
		if isFlag(word) || isValue {
			continue
		}
		if n < 0 && l.Command == nil {
			l.Unknown = i
		}
		if n < 0 {
			break
		}
		l.Command, at = commands[n], append(at, i)
		if commands = l.Command.Subcommands; len(commands) == 0 {
			break
		}
	}
	if l.Command != nil {
		for _, field := range strings.Fields(l.Command.ArgsUsage) {
			field = strings.TrimLeft(field, "[")
			l.Kinds = append(l.Kinds, field[:len(field)-len(strings.TrimLeft(field, "|ABCDEFGHIJKLMNOPQRSTUVWXYZ"))])
		}
	}
	return at
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
	n := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if n < 0 {
		n = slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(strings.Fields(sameFlags[f.Names()[0]]), name) })
	}
	if n < 0 {
		return nil
	}
	return flags[n]
}

func takesValue(f cli.Flag) bool {
	_, isBool := f.(*cli.BoolFlag)
	return !isBool
}

func isText(word string) bool {
	words := strings.Fields(word)
	isID := func(w string) bool { _, bad := wire.ParseFragment(w); return bad == nil }
	return len(words) > 1 && !slices.ContainsFunc(words, isID)
}

func (l *Line) checkWords() error {
	if l.Help || l.Command == nil || l.Command.Args {
		return nil
	}
	isUnknown := func(flag string) bool { return flag[1] != '-' && l.find(flag[:2]) == nil }
	if slices.ContainsFunc(l.flags, isUnknown) {
		return nil // urfave says it
	}
	name, usage := l.Command.HelpName, l.Command.ArgsUsage
	if len(l.Words) < len(l.Kinds)-strings.Count(" "+usage, " [") {
		return Usage("%s needs %s", name, usage).WithHint("%s", cmp.Or(Meant(l.Command.Name+" ?"), example(l.Command)))
	}
	if len(l.Words) <= len(l.Kinds) || strings.Contains(usage, "…") {
		return nil
	}
	word := l.Words[len(l.Kinds)]
	e := Usage("%q is one argument too many for %s", clipped(word), Synopsis(l.Command))
	if len(l.Command.VisibleCommands()) > 0 {
		e = Usage("unknown command \"%s %s\"", l.Command.Name, clipped(word))
	}
	if meant := Meant(l.Command.Name + " …"); meant != "" {
		return e.WithHint("%s", meant)
	}
	if Meant(l.Command.Name+" "+l.Words[0]) != "" { // status busy "parsing"
		word = l.Words[0]
	}
	return e.suggest(l.app, l.Command, word)
}

func example(c *cli.Command) string {
	example, _, _ := strings.Cut(c.UsageText, "\n")
	example, _, _ = strings.Cut(example, "    ") // what it does
	return example
}

// UsageError says in our words what urfave found wrong with a flag.
func UsageError(c *cli.Context, err error, _ bool) error {
	name, isUnknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !isUnknown {
		said := strings.Replace(err.Error(), "flag -", "--", 1)
		_, flag, _ := strings.Cut(said, "for ")
		flag, _, _ = strings.Cut(flag, ":")
		hint := cmp.Or(Meant(c.Command.Name+" "+strings.TrimLeft(flag, "-")), c.Command.HelpName+" --help")
		return Usage("%s", said).WithHint("%s", hint)
	}
	return unknownFlag(c.App, c.Command, dashed(name))
}

func unknownFlag(app *cli.App, c *cli.Command, flag string) error {
	return Usage("unknown flag %s for %s", clipped(flag), c.HelpName).suggest(app, c, flag)
}

// CountFlag is a flag for a number, which may not be negative; ifZero says what 0 means.
func CountFlag(name string, value int, usage, ifZero string, aliases ...string) cli.Flag {
	return &cli.IntFlag{Name: name, Aliases: aliases, Value: value, Usage: usage, Action: func(_ *cli.Context, n int) error {
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

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func clipped(s string) string { return letter.Clip(s, 40) }

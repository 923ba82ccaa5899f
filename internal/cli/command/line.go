package command

import (
	"cmp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

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

	app   *cli.App
	typed []string         // with our verb in front
	path  []string         // the verb and its sub
	flags []string         // of the verb, as --name=value
	named map[int][]string // words that were given as flags, by their place in ArgsUsage
}

// LineOf is the command line that a verb was called with.
func LineOf(c *cli.Context) *Line { return c.App.Metadata["line"].(*Line) }

// Parse sorts the words behind the program's name: flags before words, so that a flag means the same wherever it
// stands before "--". urfave reads what the flags say. The Line is there even with an error.
func Parse(app *cli.App, words []string) (*Line, error) {
	l := &Line{app: app, typed: verbFirst(app, words), Unknown: -1, named: map[int][]string{}}
	if err := l.takeApart(l.findVerb(l.typed)); err != nil {
		return l, err
	}
	l.moveTextToFlag()
	isHelpWord := len(l.Words) == 1 && l.Words[0] == "help" && !slices.Contains(l.Kinds, "TEXT")
	l.Help = isHelpWord || slices.Contains(l.Global, "--help=true")
	if err := l.placeNamed(); err != nil {
		return l, err
	}
	l.Args = slices.Concat([]string{app.Name}, l.Global, l.path, l.flags, []string{"--"}, l.Words)
	return l, l.checkWords()
}

// findVerb takes the verb and its sub out of the words. A flag in front of its verb is not known yet: what follows
// it is taken for its value unless it is a verb.
func (l *Line) findVerb(words []string) (rest []string) {
	find := l.app.Command
	for i, word := range words {
		verb := find(word)
		if word != "--" && (isFlag(word) || i > 0 && l.takesNext(words[i-1], verb == nil)) {
			rest = append(rest, word)
			continue
		}
		if verb == nil {
			if l.Command == nil && word != "--" {
				l.Unknown = i
			}
			rest = append(rest, words[i:]...)
			break
		}
		l.Command, l.path, find = verb, append(l.path, word), verb.Command
	}
	if l.Command == nil {
		return rest
	}
	for field := range strings.FieldsSeq(l.Command.ArgsUsage) {
		kind, _, _ := strings.Cut(strings.Trim(field, "[]…"), "[")
		l.Kinds = append(l.Kinds, kind)
	}
	return rest
}

// takesNext reports whether a word is a flag that takes the word behind it; whether one that is not known may is given.
func (l *Line) takesNext(word string, ifUnknown bool) bool {
	if !isFlag(word) || strings.Contains(word, "=") {
		return false
	}
	f := l.find(word)
	return f == nil && ifUnknown || f != nil && takesValue(f)
}

// takeApart tells flags from words. With CMD begins a command line of somebody else's. The error is the first; what
// follows may ask for JSON.
func (l *Line) takeApart(words []string) (first error) {
	commandAt := slices.Index(l.Kinds, "CMD")
	for ; len(words) > 0; words = words[1:] {
		word, count := words[0], len(l.Words)+len(l.named)
		switch {
		case word == "--" && count < commandAt: // run --as bob -- claude
			nameless := Usage("%s needs %s in front of --", l.Command.HelpName, l.Kinds[0])
			return cmp.Or(first, error(nameless.WithHint("%s", example(l.Command))))
		case word == "--":
			l.Words = append(l.Words, words[1:]...)
			return first
		case commandAt >= 0 && count > commandAt:
			l.Words = append(l.Words, words...)
			return first
		case isFlag(word):
			n, err := l.takeFlag(words)
			first, words = cmp.Or(first, err), words[n-1:]
		default:
			l.Words = append(l.Words, word)
		}
	}
	return first
}

// moveTextToFlag makes --text of a text behind the ids of a verb that takes no other: ack ID "on it".
func (l *Line) moveTextToFlag() {
	last := len(l.Words) - 1
	if last > 0 && len(l.Kinds) == 1 && len(l.flags) == 0 && l.find("--text") != nil && isText(l.Words[last]) {
		l.flags, l.Words = append(l.flags, "--text="+l.Words[last]), l.Words[:last]
	}
}

func isText(word string) bool {
	words := strings.Fields(word)
	isID := func(w string) bool { _, bad := wire.ParseFragment(w); return bad == nil }
	return len(words) > 1 && !slices.ContainsFunc(words, isID)
}

// placeNamed puts words that were given as flags into their places.
func (l *Line) placeNamed() error {
	for n, kind := range l.Kinds {
		isLast := n == len(l.Kinds)-1
		if len(l.named[n]) > 0 && isLast && len(l.Words) > n {
			return Usage("%s is given twice: as a flag and as %q", kind, clipped(l.Words[n])).WithHint("leave one out")
		}
		l.Words = slices.Insert(l.Words, min(n, len(l.Words)), l.named[n]...)
	}
	return nil
}

// checkWords reports words that are missing, or too many.
func (l *Line) checkWords() error {
	if l.Help || l.Command == nil || l.Command.Args {
		return nil
	}
	c := l.Command
	isNameless := strings.HasPrefix(c.ArgsUsage, "NAME") && len(l.Words) > 0 && l.Words[0] == "" // a variable, say
	if isNameless || len(l.Words) < len(l.Kinds)-strings.Count(" "+c.ArgsUsage, " [") {
		return Usage("%s needs %s", c.HelpName, c.ArgsUsage).WithHint("%s", cmp.Or(Meant(c.Name+" ?"), example(c)))
	}
	if len(l.Words) <= len(l.Kinds) || strings.Contains(c.ArgsUsage, "…") {
		return nil
	}
	word := l.Words[len(l.Kinds)]
	e := Usage("%q is one argument too many for %s", clipped(word), Synopsis(c))
	if len(c.VisibleCommands()) > 0 {
		e = Usage("unknown command \"%s %s\"", c.Name, clipped(word))
	}
	if meant := Meant(c.Name + " …"); meant != "" {
		return e.WithHint("%s", meant)
	}
	if Meant(c.Name+" "+l.Words[0]) != "" { // status busy "parsing"
		word = l.Words[0]
	}
	return e.suggest(l.app, c, word)
}

// Repaired is the command line, as a shell takes it, with the right words where the wrong ones stand in a row; "": they
// do not.
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

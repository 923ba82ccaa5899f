package command

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"
)

// What people and models type who do not know atm yet, and what they mean by it, is a table.
//
//go:embed meant.txt
var meantTable string

var synonyms = sync.OnceValue(func() map[string][]string {
	table := map[string][]string{}
	for row := range strings.Lines(meantTable) {
		if word, others, found := strings.Cut(row, " < "); found {
			table[word] = strings.Fields(others)
		}
	}
	return table
})

// isSynonym reports whether a word stands for one of the table, which may be a flag.
func isSynonym(of, word string) bool { return slices.Contains(synonyms()[of], word) }

// verbFirst puts one of our verbs first, where people type it in the words of other tools, as the table has it. All
// other words stay as they are.
func verbFirst(app *cli.App, words []string) []string {
	if len(words) == 0 || Meant(strings.Join(words, " ")) != "" {
		return words
	}
	if verb := app.Command(words[0]); verb != nil && len(words) > 1 && verb.Command(words[1]) != nil {
		return words
	}
	if line, n := inOurWords(app, words); n > 0 {
		return line
	}
	if split := splitWord(app, words); split != nil {
		return verbFirst(app, split)
	}
	return words
}

// splitWord makes two words of a first one that is a verb and a noun, or its sub: "mail_read", "team-add". What
// messages are read or sent goes without saying. nil: it is none.
func splitWord(app *cli.App, words []string) []string {
	one, two, isTwo := strings.Cut(strings.ReplaceAll(words[0], "_", "-"), "-")
	if !isTwo || app.Command(words[0]) != nil {
		return nil
	}
	verb, isMail := app.Command(one), isSynonym("MAIL", two)
	if verb != nil && isMail && !isSynonym("LIST", one) { // send-message
		return append([]string{one}, words[1:]...)
	}
	split := append([]string{one, two}, words[1:]...)
	_, n := inOurWords(app, split)
	if n > 1 || verb != nil && (verb.Command(two) != nil || isMail || isSynonym("TEAM", two)) {
		return split
	}
	return nil
}

// inOurWords is what a line is taken for, and how many of its first words say so; 0: the table does not know them.
func inOurWords(app *cli.App, words []string) (line []string, n int) {
	for row := range strings.Lines(meantTable) {
		typed, meant, isTaken := strings.Cut(strings.TrimSpace(row), " = ")
		if !isTaken {
			continue
		}
		for pattern := range strings.SplitSeq(typed, ", ") {
			n := fitting(app, strings.Fields(pattern), words, strings.Fields(meant))
			if n > 0 && meant == "*" {
				return verbFirst(app, words[1:]), n
			} else if n > 0 {
				return append(strings.Fields(meant), words[n:]...), n
			}
		}
	}
	return nil, 0
}

// fitting is how many words a pattern of the table takes of a line; 0: it does not fit.
func fitting(app *cli.App, pattern, words, meant []string) (n int) {
	for _, p := range pattern {
		switch {
		case p == "-":
			if l, err := Parse(app, slices.Concat(meant, words[n:])); err != nil || len(l.Words) > 0 || l.Help {
				return 0
			}
			return n
		case n == len(words), p == "…" && isFlag(words[n]), p == "--" && !slices.Contains(words, "--"):
			return 0
		case p == "…", p == "--":
			return n
		case !isOneOf(app, p, words[n]):
			return 0
		}
		n++
	}
	return n
}

// isOneOf reports whether a word is one of those that a word of the table stands for.
func isOneOf(app *cli.App, pattern, word string) bool {
	switch pattern {
	case word:
		return true
	case "VERB":
		verb := app.Command(word)
		return verb != nil && !isSynonym("OF MAIL", verb.Name)
	case "MAILVERB": // who writes a message to "stop" stops nobody
		verb := app.Command(word)
		return verb != nil && !strings.Contains(verb.ArgsUsage, "NAME")
	case "MEANT":
		_, n := inOurWords(app, []string{word})
		return n > 0
	}
	return !isFlag(pattern) && isSynonym(pattern, word) // of a flag only flags are synonyms
}

// Meant is what somebody means who types a verb, a sub or a flag ("ps", "team rm", "send from", "--format")
// that there is not; "": that is not known.
func Meant(typed string) string {
	for line := range strings.Lines(meantTable) {
		words, hint, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if slices.Contains(strings.Split(words, ", "), typed) {
			return hint
		}
	}
	return ""
}

package cmdline

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"
)

//go:embed rewrites.txt
var rewrites string

//go:embed synonyms.txt
var synonymTable string

var synonyms = sync.OnceValue(func() map[string][]string {
	table := map[string][]string{}
	for row := range strings.Lines(synonymTable) {
		if name, others, found := strings.Cut(row, " < "); found {
			table[name] = strings.Fields(others)
		}
	}
	return table
})

// isSynonym reports whether synonyms.txt lists a word under a name, which may be a flag.
func isSynonym(name, word string) bool { return slices.Contains(synonyms()[name], word) }

// rewrite puts one of our verbs first where a line begins as another tool's: "list agents" becomes "team". The
// following words stay as typed.
func rewrite(app *cli.App, words []string) []string {
	if len(words) == 0 || HintFor(strings.Join(words, " ")) != "" {
		return words
	}
	if verb := app.Command(words[0]); verb != nil && len(words) > 1 && verb.Command(words[1]) != nil {
		return words
	}
	if line, n := applyRewrites(app, words); n > 0 {
		return line
	}
	if split := splitFirst(app, words); split != nil {
		return rewrite(app, split)
	}
	return words
}

// splitFirst makes two words of a first one such as "mail_read" or "team-add", and only the verb of "send-message" and
// "run-agent". It returns nil where the first word is nothing of the kind.
func splitFirst(app *cli.App, words []string) []string {
	if app.Command(words[0]) != nil {
		return nil
	}
	one, two, _ := strings.Cut(strings.ReplaceAll(words[0], "_", "-"), "-")
	verb, split := app.Command(one), append([]string{one, two}, words[1:]...)
	if _, n := applyRewrites(app, split); n > 1 || verb != nil && verb.Command(two) != nil {
		return split
	}
	if verb != nil && (isSynonym("MAIL", two) || isSynonym("AGENT", two)) {
		return append([]string{one}, words[1:]...)
	}
	return nil
}

// applyRewrites applies the first row of rewrites.txt that matches, and returns how many words its pattern matched; 0:
// no row matches.
func applyRewrites(app *cli.App, words []string) (line []string, n int) {
	for row := range strings.Lines(rewrites) {
		patterns, ours, isRow := strings.Cut(strings.TrimSpace(row), " = ")
		if !isRow {
			continue
		}
		for pattern := range strings.SplitSeq(patterns, ", ") {
			n := matchPattern(app, strings.Fields(pattern), words, strings.Fields(ours))
			if n > 0 && ours == "*" {
				return rewrite(app, words[1:]), n
			} else if n > 0 {
				return append(strings.Fields(ours), words[n:]...), n
			}
		}
	}
	return nil, 0
}

// matchPattern returns how many words a pattern matches; 0: it does not match.
func matchPattern(app *cli.App, pattern, words, ours []string) (n int) {
	for _, p := range pattern {
		switch {
		case p == "-": // flags alone
			if l, err := Parse(app, slices.Concat(ours, words[n:])); err != nil || len(l.Words) > 0 || l.Help {
				return 0
			}
			return n
		case n == len(words), p == "…" && isFlag(words[n]), p == "--" && !slices.Contains(words, "--"):
			return 0
		case p == "…", p == "--":
			return n
		case !matchWord(app, p, words[n]):
			return 0
		}
		n++
	}
	return n
}

// matchWord reports whether a word of a pattern stands for a typed word.
func matchWord(app *cli.App, pattern, word string) bool {
	switch pattern {
	case word:
		return true
	case "VERB":
		verb := app.Command(word)
		return verb != nil && !isSynonym("OF MAIL", verb.Name)
	case "MAILVERB": // "message stop" must not stop anybody
		verb := app.Command(word)
		return verb != nil && !strings.Contains(verb.ArgsUsage, "NAME")
	case "REWRITTEN":
		_, n := applyRewrites(app, []string{word})
		return n > 0
	}
	return !isFlag(pattern) && isSynonym(pattern, word) // a flag in a pattern is itself alone
}

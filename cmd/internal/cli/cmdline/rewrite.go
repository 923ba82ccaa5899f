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

var (
	lists    = sync.OnceValue(func() map[string][]string { return parseTable(rewrites) })
	synonyms = sync.OnceValue(func() map[string][]string { return parseTable(synonymTable) })
)

// parseTable maps what is before "<" in each row to the words behind it: "--file < input" is for "--file", and
// "send reply --file < input" for "send --file" and for "reply --file".
func parseTable(text string) map[string][]string {
	table := map[string][]string{}
	for row := range strings.Lines(text) {
		names, others, isRow := strings.Cut(row, " < ")
		if !isRow {
			continue
		}
		verbs := strings.Fields(names)
		last := len(verbs) - 1
		for _, verb := range verbs[:last] {
			table[verb+" "+verbs[last]] = strings.Fields(others)
		}
		if last == 0 {
			table[names] = strings.Fields(others)
		}
	}
	return table
}

// isListed reports whether a list of rewrites.txt, as MAIL, has a word.
func isListed(list, word string) bool { return slices.Contains(lists()[list], word) }

// isSynonym reports whether synonyms.txt has a word under a name: "TO", "--limit" or "send --to".
func isSynonym(name, word string) bool { return slices.Contains(synonyms()[name], word) }

// rewrite puts one of our verbs first where a line begins as another tool's: "list agents" becomes "team". The
// following words stay as typed.
func rewrite(app *cli.App, words []string) []string {
	if len(words) == 0 || HintFor(strings.Join(words, " ")) != "" {
		return words
	}
	hyphened := append([]string{strings.ReplaceAll(words[0], "_", "-")}, words[1:]...)
	verb := app.Command(hyphened[0])
	if verb != nil && len(words) > 1 && verb.Command(words[1]) != nil {
		return hyphened
	}
	if line, n := applyRewrites(app, hyphened); n > 0 {
		return line
	} else if verb != nil {
		return hyphened
	}
	one, two, _ := strings.Cut(hyphened[0], "-")
	split := append([]string{one, two}, words[1:]...)
	verb = app.Command(one)
	if _, n := applyRewrites(app, split); n >= 2 { // list-agents, mail_read
		return rewrite(app, split)
	}
	if verb != nil && (isListed("MAIL", two) || isListed("TEAM", two)) { // send-message, stop-agent
		split = slices.Delete(split, 1, 2)
	} else if verb == nil || verb.Command(two) == nil {
		return words
	}
	return rewrite(app, split)
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
			if first, _, _ := strings.Cut(pattern, " "); first != words[0] && !isListed(first, words[0]) {
				continue // as nearly all
			}
			if n = matchPattern(app, strings.Fields(pattern), words, strings.Fields(ours)); n > 0 && ours == "*" {
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
		isWord := n < len(words) && !isFlag(words[n])
		switch {
		case p == "-": // flags alone
			if l, err := Parse(app, slices.Concat(ours, words[n:])); err != nil || len(l.Words) > 0 || l.Help {
				return 0
			}
			return n
		case p == "…" && isWord:
			return n
		case n == len(words) || p != words[n] && !(isWord && isListed(p, words[n])):
			return 0
		}
		n++
	}
	return n
}

package command

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"

	"github.com/agentteammail/atm/mailbox/letter"
)

// checkWords counts what is left by ArgsUsage.
func (l *Line) checkWords() error {
	if l.Help || l.Command == nil || l.Command.Args {
		return nil
	}
	name, fields := l.Command.HelpName, strings.Fields(l.Command.ArgsUsage)
	least, most := 0, len(fields)
	for _, field := range fields {
		if !strings.HasPrefix(field, "[") {
			least++
		}
		if strings.Contains(field, "…") {
			most = 1 << 20
		}
	}
	if len(l.Words) < least {
		return Usage("%s needs %s", name, l.Command.ArgsUsage).WithHint("%s", Example(l.Command))
	}
	if len(l.Words) <= most {
		return nil
	}
	word := l.Words[most]
	e := Usage("%q is one argument too many for %s", clipped(word), name).WithHint("%s --help", name)
	if hint := Meant(l.Command.Name + " " + word); hint != "" {
		return e.WithHint("%s", hint)
	}
	var subs []string
	for _, sub := range l.Command.VisibleCommands() {
		subs = append(subs, sub.Name)
	}
	if near, ok := Nearest(word, subs); ok {
		e.WithHint("did you mean \"%s %s\"?", name, near).WithCandidates(near)
	}
	return e
}

// Example is the first example of a verb.
func Example(c *cli.Command) string {
	example, _, _ := strings.Cut(c.UsageText, "\n")
	return example
}

// UsageError says in our words what urfave found wrong with a flag.
func UsageError(c *cli.Context, err error, _ bool) error {
	name, isUnknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !isUnknown {
		return Usage("%s", strings.Replace(err.Error(), "flag -", "--", 1))
	}
	e := Usage("unknown flag %s for %s", dashed(clipped(name)), c.Command.HelpName)
	if hint := Meant(c.Command.Name + " " + dashed(name)); hint != "" {
		return e.WithHint("%s", hint)
	}
	var known []string
	for _, f := range slices.Concat(c.Command.Flags, c.App.Flags) {
		known = append(known, f.Names()...)
	}
	if near, ok := Nearest(name, known); ok {
		near = dashed((&Line{Command: c.Command, app: c.App}).find("--" + near).Names()[0])
		return e.WithHint("did you mean %s?", near).WithCandidates(near)
	}
	if strings.Contains(c.Command.ArgsUsage, "TEXT") {
		return e.WithHint("text that begins with - goes behind --; %s --help lists the flags", c.Command.HelpName)
	}
	return e
}

//go:embed meant.txt
var meantTable string

// Meant is what somebody means who types a verb, a sub or a flag ("ps", "team rm",
// "send --from") that there is not; "": that is not known.
func Meant(typed string) string {
	for line := range strings.Lines(meantTable) {
		words, hint, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if slices.Contains(strings.Split(words, ", "), typed) {
			return hint
		}
	}
	return ""
}

// NotBoth is a usage error where two flags of a set are given: "fyi wait-ack".
func NotBoth(c *cli.Context, sets ...string) error {
	for _, set := range sets {
		given := slices.DeleteFunc(strings.Fields(set), func(name string) bool { return !c.IsSet(name) })
		if len(given) > 1 {
			return Usage("%s and %s contradict each other", dashed(given[0]), dashed(given[1])).WithHint("leave one out")
		}
	}
	return nil
}

// dashed is a flag's name or alias as it is typed.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// clipped shortens a word that somebody typed for a message of one line.
func clipped(s string) string { return letter.Clip(s, 40) }

// Nearest is the known word that was probably meant: the one with the fewest slips of
// the fingers, case aside; one slip for every three letters, at most three.
func Nearest(word string, known []string) (string, bool) {
	best, fewest := "", 4
	for _, name := range known {
		n := slips(strings.ToLower(word), strings.ToLower(name))
		if n < fewest && n <= max(len(word), len(name))/3 {
			best, fewest = name, n
		}
	}
	return best, best != ""
}

// slips counts letters too many, missing or wrong; letters in the wrong order are one slip.
func slips(a, b string) int {
	sorted := func(s string) string { return string(slices.Sorted(slices.Values([]byte(s)))) }
	if a != b && sorted(a) == sorted(b) {
		return 1
	}
	return smetrics.WagnerFischer(a, b, 1, 1, 1)
}

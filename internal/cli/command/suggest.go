package command

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"

	"github.com/agentteammail/atm/mailbox/letter"
)

// Unknown is the error for a verb that there is not.
func Unknown(app *cli.App, name string) *Error {
	root := &cli.Command{HelpName: app.HelpName, Subcommands: app.Commands}
	return Usage("unknown command %q", name).suggest(app, root, name)
}

func unknownFlag(app *cli.App, c *cli.Command, flag string) error {
	return Usage("unknown flag %s for %s", clipped(flag), c.HelpName).suggest(app, c, flag)
}

// UsageError says in our words what urfave found wrong with a flag.
func UsageError(c *cli.Context, err error, _ bool) error {
	if name, isUnknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); isUnknown {
		return unknownFlag(c.App, c.Command, dashed(name))
	}
	said := strings.Replace(err.Error(), "flag -", "--", 1)
	_, flag, _ := strings.Cut(said, "for --")
	flag, _, _ = strings.Cut(flag, ":")
	return Usage("%s", said).WithHint("%s", cmp.Or(Meant(c.Command.Name+" "+flag), c.Command.HelpName+" --help"))
}

// suggest gives an error for a word or a flag that there is not behind a verb, or behind atm alone, its hint: what was
// probably meant, by our table, since something else is called so or alike; and what there is.
func (e *Error) suggest(app *cli.App, c *cli.Command, typed string) *Error {
	name := strings.TrimLeft(typed, "-")
	forFlag := name != typed
	known, offer := knownVerbs(c)
	if forFlag {
		known, offer = knownFlags(app, c)
	}
	meant := meantBy(app, c, typed, name)
	if meant != "" && c.Name == "" && !forFlag {
		return e.WithHint("%s", meant)
	}
	if near, ok := Nearest(name, slices.Sorted(maps.Keys(known))); ok && meant == "" {
		e.WithCandidates(known[near])
		offer, meant = "", fmt.Sprintf("did you mean %q?", c.HelpName+" "+known[near])
		if forFlag {
			meant = "did you mean " + known[near] + "?"
		}
	} else if meant == "" && forFlag && strings.Contains(c.ArgsUsage, "TEXT") {
		meant = "text that begins with - goes behind --"
	}
	return e.WithHint("%s", strings.Trim(strings.ReplaceAll(meant+"; "+offer, "?;", "?"), "; "))
}

// meantBy is what the table says of a word or a flag behind a verb, or what else is called so; "": neither.
func meantBy(app *cli.App, c *cli.Command, typed, name string) string {
	meant := cmp.Or(Meant(strings.TrimSpace(c.Name+" "+name)), Meant(typed), Meant(name), calledSo(app, c, name))
	one, two, isTwo := strings.Cut(strings.ReplaceAll(name, "_", "-"), "-")
	if meant == "" && c.Name == "" && isTwo { // create-team
		return cmp.Or(Meant(one+" "+two), Meant(two+" "+one), Meant(one), Meant(two), calledSo(app, c, one))
	}
	return meant
}

// knownVerbs are the subs that may stand behind a verb, by each of their names, and a line that shows them.
func knownVerbs(c *cli.Command) (known map[string]string, line string) {
	known = map[string]string{}
	var shown []string
	for _, sub := range c.VisibleCommands() {
		shown = append(shown, sub.Name)
		for _, name := range sub.Names() {
			known[name] = sub.Name
		}
	}
	if c.Name == "" {
		return known, "the commands: " + strings.Join(shown, " ")
	} else if len(shown) == 0 {
		return known, example(c)
	}
	return known, c.HelpName + " " + strings.Join(shown, "|") + "; " + cmp.Or(Meant(c.Name+" ?"), example(c))
}

// knownFlags are the flags that may stand behind a verb, by each of their names, and a line that shows them.
func knownFlags(app *cli.App, c *cli.Command) (known map[string]string, line string) {
	known = map[string]string{}
	for _, f := range slices.Concat(c.Flags, app.Flags) {
		for i, name := range f.Names() {
			if i == 0 || len(name) != 2 && len(name) != 3 { // so short a synonym is like anything
				known[name] = dashed(f.Names()[0])
			}
		}
	}
	line = Synopsis(c) + " takes"
	for _, f := range c.VisibleFlags() {
		if c.Name == app.Name || !slices.Contains(app.Flags, f) { // urfave appends them once it has run
			flag, _ := FlagUsage(f)
			line += " " + flag
		}
	}
	return known, strings.TrimSuffix(line, " takes")
}

// calledSo is what else is called so: a verb, the sub of one, or a flag that few others have.
func calledSo(app *cli.App, c *cli.Command, name string) string {
	var called, owners []string
	for _, verb := range app.VisibleCommands() {
		for i, v := range append([]*cli.Command{verb}, verb.VisibleCommands()...) {
			if v.HasName(name) && verb.Name != c.Name && (i == 0 || c.Name == "") {
				called = append(called, Synopsis(v))
			}
			if slices.ContainsFunc(v.VisibleFlags(), func(f cli.Flag) bool { return f.Names()[0] == name }) {
				owners = append(owners, v.HelpName)
			}
		}
	}
	if len(owners) > 0 && len(owners) < 4 {
		called = append(called, dashed(name)+" belongs to "+strings.Join(owners, ", "))
	}
	return strings.Join(called, "; ")
}

// Synopsis is a verb and its words.
func Synopsis(c *cli.Command) string { return strings.TrimSpace(c.HelpName + " " + c.ArgsUsage) }

func example(c *cli.Command) string {
	example, _, _ := strings.Cut(c.UsageText, "\n")
	example, _, _ = strings.Cut(example, "    ") // what it does
	return example
}

// Nearest is the known word that was probably meant: the one with the fewest slips of the fingers, case aside; one slip
// for every three letters, at most three, and where the first letter is another one only, of four letters or more.
func Nearest(word string, known []string) (string, bool) {
	best, fewest := "", 4
	for _, name := range known {
		n := slips(strings.ToLower(word), strings.ToLower(name))
		isAlike := n < 2 && len(word) > 3 || strings.EqualFold(word[:min(1, len(word))], name[:1])
		if isAlike && n < fewest && n <= max(len(word), len(name))/3 {
			best, fewest = name, n
		}
	}
	return best, best != ""
}

// slips counts letters too many, missing or wrong; letters in the wrong order are one slip.
func slips(a, b string) int {
	sorted := func(s string) string { return string(slices.Sorted(slices.Values([]byte(s)))) }
	if a != b && sorted(a) == sorted(b) && a[0] == b[0] {
		return 1
	}
	return smetrics.WagnerFischer(a, b, 1, 1, 1)
}

func clipped(s string) string { return letter.Clip(s, 40) }

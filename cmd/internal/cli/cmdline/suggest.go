package cmdline

import (
	"cmp"
	_ "embed"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/mailbox/letter"
)

//go:embed hints.txt
var hints string

// HintFor returns what hints.txt says about a verb, a sub or a flag that atm does not have: "ps", "team rm", "send
// from", "--format". "" where it says nothing.
func HintFor(typed string) string {
	if !strings.Contains(hints, typed) { // as in most starts
		return ""
	}
	for line := range strings.Lines(hints) {
		words, hint, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if slices.Contains(strings.Split(words, ", "), typed) {
			return hint
		}
	}
	return ""
}

// UnknownVerb is the error for a verb that atm does not have.
func UnknownVerb(app *cli.App, name string) *failure.Error {
	root := &cli.Command{HelpName: app.HelpName, Subcommands: app.Commands}
	return suggest(failure.Usage("unknown command %q", name), app, root, name)
}

func unknownFlag(app *cli.App, c *cli.Command, flag string) error {
	return suggest(failure.Usage("unknown flag %s for %s", letter.Clip(flag, 40), c.HelpName), app, c, flag)
}

// suggest adds the hint for a word or flag that does not exist behind a verb, or behind atm alone (c without a name):
// what hints.txt says, else the nearest name, else what does exist there.
func suggest(e *failure.Error, app *cli.App, c *cli.Command, typed string) *failure.Error {
	name := strings.TrimLeft(typed, "-")
	one, two, _ := strings.Cut(strings.ReplaceAll(name, "_", "-"), "-")
	hints := []string{strings.TrimSpace(c.Name + " " + name), typed, name}
	if c.Name == "" { // create-team
		hints = append(hints, one+" "+two, two+" "+one, one, two)
	}
	for _, words := range hints {
		if hint := HintFor(words); hint != "" {
			return e.WithHint("%s", hint)
		}
	}
	known, overview := knownVerbs(c)
	if name != typed {
		known, overview = knownFlags(app, c)
	}
	if near, ok := failure.Nearest(name, slices.Sorted(maps.Keys(known))); ok {
		return e.WithHint("did you mean %s?", known[near]).WithCandidates(strings.Trim(known[near], `"`))
	}
	return e.WithHint("%s", overview)
}

// knownVerbs maps each name of a verb's subs to the sub, and lists the subs in a line.
func knownVerbs(c *cli.Command) (known map[string]string, overview string) {
	known = map[string]string{}
	var shown []string
	for _, sub := range c.VisibleCommands() {
		shown = append(shown, sub.Name)
		for _, name := range sub.Names() {
			known[name] = strconv.Quote(sub.HelpName)
		}
	}
	switch {
	case c.Name == "":
		return known, "commands: " + strings.Join(shown, " ")
	case len(shown) == 0:
		return known, Example(c)
	}
	return known, cmp.Or(HintFor(c.Name+" *"), c.HelpName+" "+strings.Join(shown, "|"))
}

// knownFlags maps each name of a verb's flags to the flag, and lists the flags in a line.
func knownFlags(app *cli.App, c *cli.Command) (known map[string]string, overview string) {
	known, overview = map[string]string{}, Synopsis(c)+" takes"
	for _, f := range slices.Concat(c.Flags, app.Flags) {
		known[f.Names()[0]] = "--" + f.Names()[0]
	}
	visible := c.VisibleFlags()
	if len(visible) == 0 {
		visible = app.VisibleFlags()
	}
	for _, f := range visible {
		flag, _ := FlagUsage(f)
		overview += " " + flag
	}
	if strings.Contains(c.ArgsUsage, "TEXT") {
		overview += "; text that begins with - goes after --"
	}
	return known, overview
}

// Synopsis returns a verb and the names of its arguments.
func Synopsis(c *cli.Command) string { return strings.TrimSpace(c.HelpName + " " + c.ArgsUsage) }

// Example returns the first example of a verb, without its explanation.
func Example(c *cli.Command) string {
	example, _, _ := strings.Cut(c.UsageText, "\n")
	example, _, _ = strings.Cut(example, "    ")
	return example
}

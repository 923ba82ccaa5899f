package cmdline

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/mailbox/letter"
)

//go:embed hints.txt
var hints string

// HintFor returns what hints.txt says about a verb, a sub or a flag that atm does not have: "ps", "team rm", "send
// from", "--format". "" where it says nothing.
func HintFor(typed string) string {
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
	return suggest(failure.Usage("unknown flag %s for %s", clipped(flag), c.HelpName), app, c, flag)
}

// UsageError rewrites urfave's error about a flag.
func UsageError(c *cli.Context, err error, _ bool) error {
	if name, isUnknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); isUnknown {
		return unknownFlag(c.App, c.Command, dashed(name))
	}
	message := strings.NewReplacer("for flag -", "for --", "for -", "for --", ": parse error", "").Replace(err.Error())
	value, flag, _ := strings.Cut(strings.TrimPrefix(message, "invalid value "), " for --")
	flag, _, _ = strings.Cut(flag, ":")
	value = strings.Trim(value, `"`)
	hint := cmp.Or(HintFor(c.Command.Name+" "+flag), c.Command.HelpName+" --help")
	if strings.HasSuffix(flag, "timeout") && strings.Contains(message, errNoUnit.Error()) { // seconds, as elsewhere
		typed, repaired := []string{"--" + flag, value}, []string{"--" + flag, value + "s"}
		hint = cmp.Or(LineOf(c).Repaired(typed, repaired), strings.Join(repaired, " "))
	}
	return failure.Usage("%s", message).WithHint("%s", hint)
}

// suggest adds the hint for a word or flag that does not exist behind a verb, or behind atm alone (c without a name):
// what hints.txt says, else who else has that name, else the nearest name; and what does exist there.
func suggest(e *failure.Error, app *cli.App, c *cli.Command, typed string) *failure.Error {
	name := strings.TrimLeft(typed, "-")
	isFlag := name != typed
	known, overview := knownVerbs(c)
	if isFlag {
		known, overview = knownFlags(app, c)
	}
	hint := hintBehind(app, c, typed, name)
	if hint != "" && c.Name == "" {
		return e.WithHint("%s", hint)
	}
	if near, ok := failure.Nearest(name, slices.Sorted(maps.Keys(known))); ok && hint == "" {
		e.WithCandidates(known[near])
		overview, hint = "", fmt.Sprintf("did you mean %q?", c.HelpName+" "+known[near])
		if isFlag {
			hint = "did you mean " + known[near] + "?"
		}
	} else if hint == "" && isFlag && strings.Contains(c.ArgsUsage, "TEXT") {
		hint = "text that begins with - goes after --"
	}
	return e.WithHint("%s", strings.Trim(strings.ReplaceAll(hint+"; "+overview, "?;", "?"), "; "))
}

// hintBehind returns what hints.txt says about a word or flag behind a verb, else who else has that name.
func hintBehind(app *cli.App, c *cli.Command, typed, name string) string {
	hint := cmp.Or(HintFor(strings.TrimSpace(c.Name+" "+name)), HintFor(typed), HintFor(name), namesakes(app, c, name))
	one, two, _ := strings.Cut(strings.ReplaceAll(name, "_", "-"), "-")
	if hint == "" && c.Name == "" { // create-team
		return cmp.Or(HintFor(one+" "+two), HintFor(two+" "+one), HintFor(one), HintFor(two), namesakes(app, c, one))
	}
	return hint
}

// knownVerbs maps each name of a verb's subs to the sub, and lists the subs in a line.
func knownVerbs(c *cli.Command) (known map[string]string, overview string) {
	known = map[string]string{}
	var shown []string
	for _, sub := range c.VisibleCommands() {
		shown = append(shown, sub.Name)
		for _, name := range sub.Names() {
			known[name] = sub.Name
		}
	}
	if c.Name == "" {
		return known, "commands: " + strings.Join(shown, " ")
	} else if len(shown) == 0 {
		return known, Example(c)
	}
	return known, c.HelpName + " " + strings.Join(shown, "|") + "; " + cmp.Or(HintFor(c.Name+" ?"), Example(c))
}

// knownFlags maps each name of a verb's flags to the flag, and lists the flags in a line.
func knownFlags(app *cli.App, c *cli.Command) (known map[string]string, overview string) {
	known = map[string]string{}
	for _, f := range slices.Concat(c.Flags, app.Flags) {
		for i, name := range f.Names() {
			if i == 0 || len(name) > 3 { // so short a synonym is near anything
				known[name] = dashed(f.Names()[0])
			}
		}
	}
	overview = Synopsis(c) + " takes"
	for _, f := range c.VisibleFlags() {
		if c.Name == app.Name || !slices.Contains(app.Flags, f) { // urfave appends the app's once it has run
			flag, _ := FlagUsage(f)
			overview += " " + flag
		}
	}
	return known, strings.TrimSuffix(overview, " takes")
}

// namesakes lists what has a name elsewhere: a verb, the sub of another one, or a flag that at most three verbs have.
func namesakes(app *cli.App, c *cli.Command, name string) string {
	var found, owners []string
	for _, verb := range app.VisibleCommands() {
		for _, v := range append([]*cli.Command{verb}, verb.VisibleCommands()...) {
			if v.HasName(name) && verb.Name != c.Name {
				found = append(found, Synopsis(v))
			}
			if slices.ContainsFunc(v.VisibleFlags(), func(f cli.Flag) bool { return f.Names()[0] == name }) {
				owners = append(owners, v.HelpName)
			}
		}
	}
	if len(owners) > 0 && len(owners) < 4 {
		found = append(found, dashed(name)+" belongs to "+strings.Join(owners, ", "))
	}
	return strings.Join(found, "; ")
}

// Synopsis returns a verb and the names of its arguments.
func Synopsis(c *cli.Command) string { return strings.TrimSpace(c.HelpName + " " + c.ArgsUsage) }

// Example returns the first example of a verb, without its explanation.
func Example(c *cli.Command) string {
	example, _, _ := strings.Cut(c.UsageText, "\n")
	example, _, _ = strings.Cut(example, "    ")
	return example
}

func clipped(s string) string { return letter.Clip(s, 40) }

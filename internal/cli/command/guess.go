package command

import (
	"cmp"
	_ "embed"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"

	"github.com/agentteammail/atm/wire"
)

// What people and models type who do not know atm yet, and what they mean by it.

// wordKinds are words that stand for several in the table of what is typed: what only lists, and what it lists.
var wordKinds = map[string]string{
	"LIST": "list ls get show describe info", "MAIL": "message messages mail email inbox",
	"TEAM": "agent agents members team teams", "ASKS": "approvals permissions pending",
	"OF MAIL": "send reply read ack ls show unread thread search trace withdraw wait take",
}

// sameFlags are what other tools call a flag that we have; a verb's own flag of such a name goes first.
var sameFlags = map[string]string{
	"follow": "f watch stream live", "watch": "w f follow live", "all": "a A everything", "json": "j", "since": "after newer-than",
	"limit": "n max head num first", "from": "sender by author", "wait": "w block", "timeout": "for t max-wait wait-timeout",
	"peek": "no-mark no-mark-read keep keep-unread no-ack dry-run preview", "reason": "r m message because", "text": "comment note",
	"cwd": "dir workdir cd C", "last": "lines", "team": "namespace workspace", "file": "F", "detach": "d background bg daemon", "env": "e",
	"kind": "type event-type", "reply": "reply-to in-reply-to", "acked": "acknowledged", "ack": "requires-ack ack-required",
	"due": "deadline reply-by due-by", "supersedes": "replace replaces supersede", "done": "archived", "idle": "until-idle", "wait-reply": "sync wait-response",
}

// verbFirst puts one of our verbs first, where people type it in the words of other tools, as the table has it. All
// other words stay as they are.
func verbFirst(app *cli.App, words []string) []string {
	if len(words) == 0 || Meant(strings.Join(words, " ")) != "" {
		return words
	}
	if verb := app.Command(words[0]); verb != nil && len(words) > 1 && verb.Command(words[1]) != nil {
		return words
	}
	if last := len(words) - 1; words[0] == "send-keys" && (words[last] == "Enter" || words[last] == "C-m") { // of tmux
		return append(words[:last:last], "--enter")
	}
	if line, n := inOurWords(app, words); n > 0 {
		return line
	}
	if plural := words[0] + "s"; app.Command(words[0]) == nil && app.Command(plural) != nil { // permission approve bob
		return verbFirst(app, append([]string{plural}, words[1:]...))
	}
	if split := splitWord(app, words); split != nil {
		return verbFirst(app, split)
	}
	return words
}

// splitWord makes two words of a first one that is a verb and a noun, its sub or a flag: "mail_read", "team-add",
// "send-all". What messages are read, sent or answered goes without saying. nil: it is none.
func splitWord(app *cli.App, words []string) []string {
	one, two, isTwo := strings.Cut(strings.ReplaceAll(words[0], "_", "-"), "-")
	if !isTwo || app.Command(words[0]) != nil {
		return nil
	}
	verb, split := app.Command(one), append([]string{one, two}, words[1:]...)
	isMail, isListing := isOneOf(app, "MAIL", two), isOneOf(app, "LIST", one)
	if two == "all" || two == "count" {
		split[1] = "--" + two
	} else if verb != nil && isListing && boolFlag(verb, two) != "" { // list-sent
		return split
	} else if verb != nil && isMail && !isListing { // send-message
		split = slices.Delete(split, 1, 2)
	} else if _, n := inOurWords(app, split); n < 2 && (verb == nil || verb.Command(two) == nil && !isMail && !isOneOf(app, "TEAM", two)) {
		return nil
	}
	return split
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
				line = verbFirst(app, words[1:])
				if verb := app.Command(line[0]); words[0] == "team" && verb != nil && isOneOf(app, "OF MAIL", verb.Name) {
					return nil, 0
				}
				return line, n
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
			l, err := Parse(app, slices.Concat(meant, words[n:]))
			if err != nil || len(l.Words) > 0 || l.Help {
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
		return app.Command(word) != nil && !isOneOf(app, "LIST", word)
	case "MAILVERB": // who writes a message to "stop" stops nobody
		verb := app.Command(word)
		return verb != nil && !strings.Contains(verb.ArgsUsage, "NAME")
	case "MEANT":
		_, n := inOurWords(app, []string{word})
		return n > 0
	}
	return slices.Contains(strings.Fields(wordKinds[pattern]), word)
}

// boolFlag is the flag of a verb that a word names which takes no value: "ls sent".
func boolFlag(c *cli.Command, word string) string {
	for _, f := range c.Flags {
		if !takesValue(f) && len(word) > 1 && slices.Contains(f.Names(), word) {
			return "--" + f.Names()[0]
		}
	}
	return ""
}

// wordFlags are flags that plainly name a word of a verb, by what ArgsUsage calls the
// word: `ack --id ID` means `ack ID`.
var wordFlags = map[string]string{
	"TO":    "to agent name member user recipient",
	"AGENT": "agent name member worker user queue target to t",
	"NAME":  "agent name member worker user queue target to t agents members names",
	"ID":    "id ids message-id msg-id message msg to reply-to",
	"TEXT":  "text message body content prompt msg input data m b",
	"TOOL":  "tool agent name",
	"FILE":  "file output out input path to from o f",
	"HOST":  "host",
	"KEY":   "key",
	"WORDS": "query text pattern body subject",
	"SHELL": "shell",
	"STATE": "state status until for",
}

// guess takes in a flag whose value plainly is a word of the verb, or that asks for JSON. f is
// the verb's flag of that name; nil: there is none.
func (l *Line) guess(typed string, f cli.Flag, value string) bool {
	place := l.place(typed)
	switch {
	case value != "" && place >= 0 && (f == nil || !fits(f, value)):
		l.named[place], l.wordFlag = append(l.named[place], value), strings.TrimLeft(typed, "-")
	case f == nil && l.isFlagWord(value): // ls --state sent
		l.flags = append(l.flags, boolFlag(l.Command, value))
	case f == nil && slices.Contains([]string{"format", "output", "output-format", "o"}, strings.TrimLeft(typed, "-")) && formats[value] != "":
		l.Global = append(l.Global, formats[value])
	default:
		return false
	}
	return true
}

// formats are what people ask for, and how it is asked for here.
var formats = map[string]string{
	"json": "--json=true", "jsonl": "--json=true", "ndjson": "--json=true", "text": "--json=false", "plain": "--json=false", "table": "--json=false", "wide": "--json=false",
}

// place is which word of its verb a flag names; -1: none.
func (l *Line) place(flag string) int {
	name := strings.TrimLeft(flag, "-")
	return slices.IndexFunc(l.Kinds, func(kind string) bool {
		return slices.ContainsFunc(strings.Split(kind, "|"), func(k string) bool {
			return slices.Contains(strings.Fields(wordFlags[k]), name)
		})
	})
}

// fill puts words that were given as flags into their places.
func (l *Line) fill() error {
	for n, kind := range l.Kinds {
		isLast := n == len(l.Kinds)-1
		// "--members alice bob"
		isList := strings.HasSuffix(l.wordFlag, "s") && strings.Contains(l.Command.ArgsUsage, kind+"…")
		if len(l.named[n]) > 0 && isLast && len(l.Words) > n && !isList {
			return Usage("%s is given twice: as a flag and as %q", kind, clipped(l.Words[n])).
				WithHint("%s", cmp.Or(Meant(l.Command.Name+" "+l.wordFlag), "leave one out"))
		}
		l.Words = slices.Insert(l.Words, min(n, len(l.Words)), l.named[n]...)
	}
	return nil
}

// fits reports whether a flag can take such a value: one of the same name may be meant
// for a word.
func fits(f cli.Flag, value string) bool {
	if _, isSpan := f.(*cli.GenericFlag); isSpan {
		return isDuration(value)
	}
	return f.Names()[0] != "id" || wire.IsID(value)
}

//go:embed meant.txt
var meantTable string

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

// Unknown is the error for a verb that there is not.
func Unknown(app *cli.App, name string) *Error {
	return Usage("unknown command %q", name).suggest(app, nil, name)
}

// suggest gives an error for a word or a flag that there is not behind a verb, or behind atm alone, its hint: what was
// probably meant, by our table, since something else is called so or alike; and what there is.
func (e *Error) suggest(app *cli.App, c *cli.Command, typed string) *Error {
	if c == nil {
		c = &cli.Command{HelpName: app.HelpName, Subcommands: app.Commands}
	}
	name := strings.TrimLeft(typed, "-")
	known, offer := choices(app, c, name != typed)
	meant := cmp.Or(Meant(strings.TrimSpace(c.Name+" "+name)), Meant(typed), Meant(name))
	if meant == "" {
		meant = calledSo(app, c, name)
	}
	one, two, isTwo := strings.Cut(strings.ReplaceAll(name, "_", "-"), "-")
	if meant == "" && c.Name == "" && isTwo { // create-team
		meant = cmp.Or(Meant(one+" "+two), Meant(two+" "+one), Meant(one), Meant(two), calledSo(app, c, one))
	}
	if meant != "" && c.Name == "" && name == typed {
		return e.WithHint("%s", meant)
	}
	if near, ok := Nearest(name, slices.Sorted(maps.Keys(known))); ok && meant == "" {
		e.WithCandidates(known[near])
		offer, meant = "", fmt.Sprintf("did you mean %q?", c.HelpName+" "+known[near])
		if name != typed {
			meant = "did you mean " + known[near] + "?"
		}
	} else if meant == "" && name != typed && strings.Contains(c.ArgsUsage, "TEXT") {
		meant = "text that begins with - goes behind --"
	}
	return e.WithHint("%s", strings.Trim(strings.ReplaceAll(meant+"; "+offer, "?;", "?"), "; "))
}

// choices are the flags, or the subs, that may stand behind a verb, each by its names, and a line that shows them.
func choices(app *cli.App, c *cli.Command, areFlags bool) (known map[string]string, line string) {
	known = map[string]string{}
	if !areFlags {
		var shown []string
		for _, sub := range c.VisibleCommands() {
			shown = append(shown, sub.Name)
			for _, name := range sub.Names() {
				known[name] = sub.Name
			}
		}
		switch {
		case len(shown) == 0:
			return known, example(c)
		case c.Name == "":
			return known, "the commands: " + strings.Join(shown, " ")
		}
		return known, c.HelpName + " " + strings.Join(shown, "|") + "; " + cmp.Or(Meant(c.Name+" ?"), example(c))
	}
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
			if len(name) > 1 && slices.ContainsFunc(v.VisibleFlags(), func(f cli.Flag) bool { return f.Names()[0] == name }) {
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

// FlagUsage is a flag as it is typed, "--limit N", and what it does.
func FlagUsage(f cli.Flag) (typed, usage string) {
	value, usage := flag.UnquoteUsage(&flag.Flag{Usage: f.(cli.DocGenerationFlag).GetUsage()})
	if !takesValue(f) {
		value = ""
	}
	return strings.TrimSpace(dashed(f.Names()[0]) + " " + value), usage
}

// Nearest is the known word that was probably meant: the one with the fewest slips of
// the fingers, case aside; one slip for every three letters, at most three, and where the
// first letter is another one only, of four letters or more.
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

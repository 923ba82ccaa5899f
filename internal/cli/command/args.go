package command

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/wire"
)

// A Line is a command line as urfave/cli wants it.
type Line struct {
	Command *cli.Command // the innermost verb; nil: none is named
	Unknown int          // where a word stands that is no verb; -1: nowhere
	Args    []string     // for cli.App.Run: flags before words
	Words   []string     // neither verb nor flag
	Global  []string     // flags of the app, as --name=value
	Help    bool         // --help
	JSON    bool         // --json

	app *cli.App
}

// Parse sorts the words behind the program's name: flags before words, so that a flag
// means the same wherever it stands before "--". urfave reads what the flags say. The
// Line is there even with an error.
func Parse(app *cli.App, words []string) (*Line, error) {
	words = verbFirst(app, words)
	end := slices.Index(words, "--")
	if end < 0 {
		end = len(words)
	}
	l := &Line{app: app, JSON: slices.Contains(words[:end], "--json"), Unknown: -1}
	verbs := l.findVerb(words[:end])
	var path, flags []string
	named := map[int][]string{} // words that were given as flags, by their place in ArgsUsage
	isRefused := false          // for a flag that there is not, which says more than a word too many behind it
	for i := 0; i < end; i++ {
		if slices.Contains(verbs, i) {
			path = append(path, words[i])
			continue
		}
		if !isFlag(words[i]) {
			l.Words = append(l.Words, words[i])
			if len(l.Words)+len(named) == l.commandAt() {
				end = i + 1 // the rest is a command line of somebody else's
			}
			continue
		}
		typed, value, given := strings.Cut(words[i], "=")
		f, next := l.find(typed), ""
		if i+1 < end {
			next = words[i+1]
		}
		if number := typed[2:]; f == nil && number != "" && strings.Trim(number, "0123456789") == "" { // -n5
			f, value, given = l.find(typed[:2]), number, true
		}
		meant := value
		if !given && !isFlag(next) {
			meant = next
		}
		place := l.place(typed)
		isWord := meant != "" && place >= 0 && (f == nil || !fits(f, meant))
		isJSON := meant == "json" && f == nil && slices.Contains([]string{"format", "output", "o"}, strings.TrimLeft(typed, "-"))
		if isWord {
			named[place] = append(named[place], meant)
		} else if isJSON {
			l.Global = append(l.Global, "--json=true")
		}
		if isWord || isJSON {
			if !given {
				i++
			}
			continue
		}
		if f == nil {
			isRefused = isRefused || strings.HasPrefix(words[i], "--")
			flags = append(flags, words[i]) // urfave takes "-al" apart, or refuses it
			continue
		}
		name, needs, isGlobal := f.Names()[0], takesValue(f), slices.Contains(app.Flags, f)
		waits := strings.HasPrefix(name, "wait") && l.find("--timeout") != nil
		if !given && i+1 < end && (needs && l.find(next) == nil || waits && isDuration(next)) {
			value, given = next, true
			i++
		}
		state := l.place("--state")
		switch {
		case needs && !given && state >= 0: // wait bob --idle
			named[state] = append(named[state], name)
			continue
		case needs && (!given || value == "" && isGlobal):
			return l, Usage("%s needs a value", typed)
		case waits && isDuration(value):
			flags = append(flags, "--timeout="+value)
			value = "true"
		case !given && (next == "true" || next == "false"):
			return l, Usage("%s takes no value, and %q can be nothing else", typed, next).
				WithHint("%s=%s; a text goes into quotes, or behind --", typed, next)
		case !given:
			value = "true"
		}
		l.Help = l.Help || name == "help"
		if isGlobal {
			l.Global = append(l.Global, "--"+name+"="+value)
		} else {
			flags = append(flags, "--"+name+"="+value)
		}
	}
	if end < len(words) && words[end] == "--" {
		end++
	}
	l.Words = append(l.Words, words[end:]...)
	isListing := len(l.Words) > 0 && slices.Contains(listing, l.Words[0])
	if kinds := l.Kinds(); isListing && l.Command != nil && len(l.Words) > len(kinds) && !strings.Contains(l.Command.ArgsUsage, "…") {
		l.Words = l.Words[1:] // pending list, thread show ID
	}
	err := l.fill(named)
	l.Args = slices.Concat([]string{app.Name}, l.Global, path, flags, []string{"--"}, l.Words)
	l.JSON = slices.Contains(l.Global, "--json=true")
	if isRefused || err != nil {
		return l, err
	}
	return l, l.checkWords()
}

// nouns stand beside the verb in the commands of other tools: "list agents", "mail read",
// "send-message". Each has the verb that lists such things.
var nouns = map[string]string{
	"message": "ls", "messages": "ls", "mail": "ls", "email": "ls", "inbox": "ls",
	"agent": "team", "agents": "team", "members": "team", "teams": "team", "status": "status",
	"events": "events", "sessions": "session", "approvals": "pending", "permissions": "pending",
}

// listing are verbs that stand beside a noun and say no more than it does.
var listing = []string{"list", "ls", "get", "show", "describe"}

// phrases are words that plainly mean a verb with something behind it.
var phrases = map[string]string{
	"add": "team add", "teams": "team ls", "new-session": "session new", "broadcast": "send all", "announce": "send all",
	"reply-all": "reply --all", "sent": "ls --sent", "outbox": "ls --sent", "count": "ls --count", "next": "read --limit 1", "pop": "read --limit 1",
	"wait-reply": "wait --reply", "wait-idle": "wait --idle", "log": "watch --since 1h --no-follow", "logs": "watch --since 1h --no-follow",
}

// verbFirst puts the words of the verb first, and takes such a noun off.
func verbFirst(app *cli.App, words []string) []string {
	if len(words) == 0 {
		return words
	}
	if phrase := phrases[words[0]]; phrase != "" {
		return append(strings.Fields(phrase), words[1:]...)
	}
	first, isSplit := strings.ReplaceAll(words[0], "_", "-"), false
	if verb, noun, _ := strings.Cut(first, "-"); app.Command(first) == nil && app.Command(verb) != nil && nouns[noun] != "" {
		words, isSplit = slices.Concat([]string{verb, noun}, words[1:]), true
	}
	if len(words) == 1 {
		return words
	}
	isList := slices.Contains(listing, words[0])
	switch verb, sub := nouns[words[1]], app.Command("team").Command(words[1]); {
	case isList && verb != "":
		return append([]string{verb}, words[2:]...)
	case isSplit && verb == "ls":
		return append(words[:1], words[2:]...)
	case nouns[words[0]] == "ls" && app.Command(words[1]) != nil,
		strings.HasPrefix(words[0], "agent") && app.Command(words[1]) != nil && (sub == nil || sub.Hidden):
		return words[1:]
	}
	return words
}

// wordFlags are flags that plainly name a word of a verb, by what ArgsUsage calls the
// word: `ack --id ID` means `ack ID`.
var wordFlags = map[string]string{
	"TO":    "to agent name member user recipient",
	"AGENT": "agent name member worker user queue target to t",
	"NAME":  "agent name member worker user queue target to t agents members names",
	"ID":    "id message-id msg-id message msg to reply-to",
	"TEXT":  "text message body content prompt msg input data m b",
	"TOOL":  "tool agent name",
	"FILE":  "file output input path o f",
	"WORDS": "query text pattern",
	"SHELL": "shell",
	"STATE": "state until for",
}

// place is which word of its verb a flag names; -1: none.
func (l *Line) place(flag string) int {
	name := strings.TrimLeft(flag, "-")
	return slices.IndexFunc(l.Kinds(), func(kind string) bool {
		return slices.ContainsFunc(strings.Split(kind, "|"), func(k string) bool {
			return slices.Contains(strings.Fields(wordFlags[k]), name)
		})
	})
}

// Kinds are what ArgsUsage calls the words of the verb: TO, ID|NAME, TEXT.
func (l *Line) Kinds() (kinds []string) {
	if l.Command == nil {
		return nil
	}
	for _, field := range strings.Fields(l.Command.ArgsUsage) {
		field = strings.TrimLeft(field, "[")
		kinds = append(kinds, field[:len(field)-len(strings.TrimLeft(field, "|ABCDEFGHIJKLMNOPQRSTUVWXYZ"))])
	}
	return kinds
}

// ValueKind is what the value of a flag is, by its usage or the word that it names; wanted
// is false for one that takes none.
func (l *Line) ValueKind(flag string) (kind string, wanted bool) {
	f := l.find(flag)
	if n := l.place(flag); f == nil && n >= 0 {
		return l.Kinds()[n], true
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

// fill puts words that were given as flags into their places.
func (l *Line) fill(named map[int][]string) error {
	kinds := l.Kinds()
	for n, kind := range kinds {
		isLast := n == len(kinds)-1
		if len(named[n]) > 0 && isLast && len(l.Words) > n {
			return Usage("%s is given twice: as a flag and as %q", kind, clipped(l.Words[n])).WithHint("leave one out")
		}
		l.Words = slices.Insert(l.Words, min(n, len(l.Words)), named[n]...)
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

// isFlag reports whether a word can only be a flag: "-" is stdin, and an item of
// a list or a line of a diff is text.
func isFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && word[1] != ' ' && !strings.HasPrefix(word, "--- ")
}

// findVerb finds where the verb and its sub stand. A flag in front of its verb is not
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
		return nil
	}
	return flags[n]
}

func takesValue(f cli.Flag) bool {
	_, isBool := f.(*cli.BoolFlag)
	return !isBool
}

// commandAt is which word begins a command line of somebody else's, where the verb takes
// one; 0: it takes none.
func (l *Line) commandAt() int {
	if l.Command == nil {
		return 0
	}
	fields := strings.Fields(l.Command.ArgsUsage)
	return 1 + slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(strings.Trim(f, "["), "CMD") })
}

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
	var subs []string
	for _, sub := range l.Command.VisibleCommands() {
		subs = append(subs, sub.Name)
	}
	if len(subs) > 0 {
		e = Usage("unknown command \"%s %s\"", l.Command.Name, clipped(word)).WithHint("%s %s; one agent: atm status NAME", name, strings.Join(subs, "|"))
	}
	if hint := Meant(l.Command.Name + " " + word); hint != "" {
		return e.WithHint("%s", hint)
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
		said := strings.Replace(err.Error(), "flag -", "--", 1)
		_, flag, _ := strings.Cut(said, "for ")
		flag, _, _ = strings.Cut(flag, ":")
		return Usage("%s", said).WithHint("%s", cmp.Or(Meant(c.Command.Name+" "+flag), c.Command.HelpName+" --help"))
	}
	e := Usage("unknown flag %s for %s", dashed(clipped(name)), c.Command.HelpName)
	if hint := cmp.Or(Meant(c.Command.Name+" "+dashed(name)), Meant(dashed(name))); hint != "" {
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
// the fingers, case aside; one slip for every three letters, at most three, and one only
// where the first letter is another.
func Nearest(word string, known []string) (string, bool) {
	best, fewest := "", 4
	for _, name := range known {
		n := slips(strings.ToLower(word), strings.ToLower(name))
		isAlike := n < 2 || strings.EqualFold(word[:min(1, len(word))], name[:1])
		if isAlike && n < fewest && n <= max(len(word), len(name))/3 {
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

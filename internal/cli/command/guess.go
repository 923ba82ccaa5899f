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

// nouns stand beside the verb in the commands of other tools: "list agents", "mail read",
// "send-message". Each has the verb that lists such things.
var nouns = map[string]string{
	"message": "ls", "messages": "ls", "mail": "ls", "email": "ls", "inbox": "ls",
	"agent": "team", "agents": "team", "members": "team", "teams": "team", "status": "status",
	"events": "events", "sessions": "session", "session": "session", "approvals": "pending", "permissions": "pending", "pending": "pending",
	"hooks": "install", "team": "team", "history": "history", "thread": "thread",
}

// listing are verbs that stand beside a noun and say no more than it does.
var listing = []string{"list", "ls", "get", "show", "describe", "info"}

// phrases are words that plainly mean a verb with something behind it; " -": where only flags stand behind them.
var phrases = map[string]string{
	"add": "team add", "teams": "team ls", "new-session": "session new", "broadcast": "send all", "announce": "send all",
	"reply-all": "reply --all", "sent": "ls --sent", "outbox": "ls --sent", "count": "ls --count", "next": "read --limit 1", "pop": "read --limit 1",
	"say": "send", "chat": "send", "notify-all": "send all", "reply-to": "reply", "await": "wait", "wait-for-mail": "wait", "wait-for-message": "wait",
	"check-mail": "ls", "screenshot": "screen", "output": "screen", "halt": "stop", "inspect agent": "status", "start": "up", "stop --all": "down", "kill --all": "down",
	"wait-reply": "wait --reply", "wait-for-reply": "wait --reply", "wait-idle": "wait --idle", "listen": "watch", "follow": "watch", "subscribe": "read --follow",
	"log": "watch --since 1h --no-follow", "logs": "watch --since 1h --no-follow", "tail": "watch --since 1h --no-follow",
	"add agent": "team add", "add member": "team add", "create agent": "team add", "new agent": "team add", "query": "search", "settings": "where",
	"approve list": "pending", "approve ls": "pending", "approve --list": "pending", "mark-read": "read", "mark-as-read": "read", "mark-unread": "unread",
	"mail -": "ls", "email -": "ls", "unread -": "ls", "history -": "ls --all", "peek -": "read --peek", "read --all": "ls --all", "read -a": "ls --all",
	"team members": "team", "team status": "team", "agents status": "team", "init team": "init --team", "init agents": "init",
	"busy": "team", "idle": "team", "online": "team", "available": "team", "top": "team --watch", "status --watch": "team --watch", "status -w": "team --watch",
}

// onlyOne are verbs that show the one thing that a noun and its name say: "get agent bob".
var onlyOne = map[string]string{"agent": "status", "member": "status", "message": "show"}

// sameFlags are what other tools call a flag that we have; a verb's own flag of such a name goes first.
var sameFlags = map[string]string{
	"follow": "f watch stream live", "watch": "w f follow live", "all": "a A everything", "json": "j", "since": "after newer-than",
	"limit": "n max head num first", "from": "sender by author", "wait": "w block", "timeout": "for t max-wait wait-timeout",
	"peek": "no-mark no-mark-read keep keep-unread no-ack dry-run preview", "reason": "r m message because", "text": "comment note",
	"cwd": "dir workdir cd C", "last": "lines", "team": "namespace workspace", "file": "F", "detach": "d background bg daemon", "env": "e",
}

// verbFirst puts the words of the verb first, and takes such a noun off.
func verbFirst(app *cli.App, words []string) []string {
	if len(words) == 0 {
		return words
	}
	first, isSplit := strings.ReplaceAll(words[0], "_", "-"), false
	if one, two, _ := strings.Cut(first, "-"); phrases[first] == "" && app.Command(first) == nil && isPair(app, one, two) {
		words, isSplit = slices.Concat([]string{one, two}, words[1:]), true
	}
	if len(words) > 1 && phrases[words[0]+" "+words[1]] != "" {
		words = append([]string{words[0] + " " + words[1]}, words[2:]...)
	}
	phrase, hasWord := phrases[words[0]], slices.ContainsFunc(words[1:], func(w string) bool { return !isFlag(w) })
	asksHelp := slices.Contains(words, "--help") || slices.Contains(words, "-h")
	if !hasWord && !asksHelp && (len(words) == 1 || Meant(strings.ReplaceAll(strings.Join(words, " "), " --", " ")) == "") {
		phrase = cmp.Or(phrases[words[0]+" -"], phrase)
	}
	if words[0] == "start" && slices.Contains(words, "--") {
		phrase = "run"
	}
	if phrase != "" {
		return append(strings.Fields(phrase), words[1:]...)
	}
	if n := len(words) - 1; words[0] == "send-keys" && (words[n] == "Enter" || words[n] == "C-m") {
		words = append(words[:n:n], "--enter")
	}
	if len(words) == 1 {
		return words
	}
	verb, home, behind := nouns[words[1]], app.Command(words[0]), app.Command(words[1])
	isList, isListed, isNamed := slices.Contains(listing, words[0]), slices.Contains(listing, words[1]), len(words) > 2 && !isFlag(words[2])
	isSub := home != nil && home.Command(words[1]) != nil
	switch noun := nouns[words[0]]; {
	case isList && isNamed && onlyOne[words[1]] != "": // get agent bob
		return append([]string{onlyOne[words[1]]}, words[2:]...)
	case isListed && isNamed && onlyOne[words[0]] != "": // agent show bob
		return append([]string{onlyOne[words[0]]}, words[2:]...)
	case noun == "team" && !isSub && phrases[words[1]] != "": // agent logs bob
		return verbFirst(app, words[1:])
	case isListed && !isSub && !isNamed && noun != "": // hooks list
		return append([]string{noun}, words[2:]...)
	case verb != "" && !isSub && (isList || home != nil && home.Name == verb): // list agents, install hooks
		return append([]string{verb}, words[2:]...)
	case isSplit && verb == "ls": // send-message
		return append(words[:1], words[2:]...)
	case behind == nil || isSub || home != nil && boolFlag(home, words[1]) == "--"+words[1]:
	case noun == "ls" && !strings.Contains(behind.ArgsUsage, "NAME"), !isListed && slices.Contains([]string{"team", "pending", "install"}, noun):
		return words[1:] // inbox read, agents stop bob; who writes a message to "stop" stops nobody
	}
	if words[0] == "mail" || words[0] == "email" {
		return append([]string{"send"}, words[1:]...)
	}
	return words
}

// isPair reports whether two words are a verb and its sub or noun, or a noun and a verb: "team-add", "mail-read".
func isPair(app *cli.App, one, two string) bool {
	verb := app.Command(one)
	return verb != nil && (verb.Command(two) != nil || nouns[two] != "") || nouns[one] != "" && app.Command(two) != nil
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
	"STATE": "state until for",
}

// guess takes in a flag whose value plainly is a word of the verb, or that asks for JSON. f is
// the verb's flag of that name; nil: there is none.
func (l *Line) guess(typed string, f cli.Flag, value string) bool {
	place := l.place(typed)
	switch {
	case value != "" && place >= 0 && (f == nil || !fits(f, value)):
		l.named[place] = append(l.named[place], value)
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
		if len(l.named[n]) > 0 && isLast && len(l.Words) > n {
			return Usage("%s is given twice: as a flag and as %q", kind, clipped(l.Words[n])).WithHint("leave one out")
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
	if meant == "" && (c.Name == "" || name != typed || len(c.Subcommands) == 0) {
		meant = calledSo(app, c, name)
	}
	if meant != "" && c.Name == "" && name == typed {
		return e.WithHint("%s", meant)
	}
	if near, ok := Nearest(name, slices.Sorted(maps.Keys(known))); ok && meant == "" {
		e.WithCandidates(known[near])
		meant = fmt.Sprintf("did you mean %q?", c.HelpName+" "+known[near])
		if name != typed {
			meant = "did you mean " + known[near] + "?"
		}
	} else if meant == "" && name != typed && strings.Contains(c.ArgsUsage, "TEXT") {
		meant = "text that begins with - goes behind --"
	}
	return e.WithHint("%s", strings.TrimLeft(strings.ReplaceAll(meant+"; "+offer, "?;", "?"), "; "))
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

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
	"approval": "pending", "permission": "pending", "member": "team", "user": "team", "users": "team",
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
	"team members": "team", "team status -": "team", "agents status -": "team", "init team": "init --team", "init agents": "init",
	"busy": "status", "busy -": "team", "idle": "status", "idle -": "team", "online -": "team", "available -": "team",
	"top": "team --watch", "status --watch": "team --watch", "status -w": "team --watch",
	"start agent": "up", "shutdown": "down", "id": "where", "backup create": "backup", "sendmail": "send",
	"release": "unread", "requeue": "unread", "nack": "unread", "send-input": "type",
	"new-messages": "ls", "new-mail": "ls", "list teams": "team ls", "ls teams": "team ls", "who is": "team",
	"is idle": "status", "is busy": "status", "is running": "status", "is alive": "status", "validate": "doctor", "verify": "doctor",
	"hook status": "doctor", "hooks status": "doctor", "request": "ask", "get unread": "ls",
	"watch inbox": "watch", "watch mail": "watch", "watch messages": "watch", "stop all": "down", "start all": "up",
	"up all": "up", "extend": "take --renew", "renew": "take --renew", "receipt": "trace",
	"stream": "watch", "console": "attach", "dump": "backup", "list unread": "ls",
}

// onlyOne are verbs that show the one thing that a noun and its name say: "get agent bob".
var onlyOne = map[string]string{"agent": "status", "agents": "status", "member": "status", "message": "show"}

// sameFlags are what other tools call a flag that we have; a verb's own flag of such a name goes first.
var sameFlags = map[string]string{
	"follow": "f watch stream live", "watch": "w f follow live", "all": "a A everything", "json": "j", "since": "after newer-than",
	"limit": "n max head num first", "from": "sender by author", "wait": "w block", "timeout": "for t max-wait wait-timeout",
	"peek": "no-mark no-mark-read keep keep-unread no-ack dry-run preview", "reason": "r m message because", "text": "comment note",
	"cwd": "dir workdir cd C", "last": "lines", "team": "namespace workspace", "file": "F", "detach": "d background bg daemon", "env": "e",
	"kind": "type event-type", "reply": "reply-to in-reply-to", "acked": "acknowledged", "ack": "requires-ack ack-required",
	"due": "deadline", "done": "archived", "idle": "until-idle", "wait-reply": "sync wait-response",
}

// verbFirst puts one of our verbs first, where people type it in the words of other tools:
//
//	mail-read, send_message   a verb and a noun in one word     read, send
//	sent, add agent dave      a phrase                          ls --sent, team add dave
//	send-keys bob ls Enter    tmux's way to press Enter         send-keys bob ls --enter
//	list agents, hooks list   a noun beside a verb that lists   team, install
//	agent show bob            the same, and a name behind it    status bob
//	agents stop bob           a noun in front of our verb       stop bob
//	mail bob hi               mail, where no verb stands by     send bob hi
//
// All other words stay as they are.
func verbFirst(app *cli.App, words []string) []string {
	if len(words) == 0 {
		return words
	}
	words = splitWord(app, words)
	if line := meantByPhrase(app, words); line != nil {
		return line
	}
	if last := len(words) - 1; words[0] == "send-keys" && (words[last] == "Enter" || words[last] == "C-m") {
		return append(words[:last:last], "--enter")
	}
	if len(words) == 1 {
		return words
	}
	first, second, rest := words[0], words[1], words[2:]
	verb := app.Command(first)
	isNamed := len(rest) > 0 && !isFlag(rest[0])
	isFirstListing, isSecondListing := slices.Contains(listing, first), slices.Contains(listing, second)
	switch {
	case isFirstListing && isNamed && onlyOne[second] != "": // get agent bob
		return append([]string{onlyOne[second]}, rest...)
	case isSecondListing && isNamed && onlyOne[first] != "": // agent show bob
		return append([]string{onlyOne[first]}, rest...)
	case verb != nil && verb.Command(second) != nil: // team add
		return words
	case nouns[first] == "team" && phrases[second] != "": // agent logs bob
		return verbFirst(app, words[1:])
	case isSecondListing && !isNamed && nouns[first] != "": // hooks list
		return append([]string{nouns[first]}, rest...)
	case nouns[second] != "" && (isFirstListing || verb != nil && verb.Name == nouns[second]): // list agents
		return append([]string{nouns[second]}, rest...)
	case isNounOf(app, first, second): // inbox read, agents stop bob
		return words[1:]
	case first == "mail", first == "email":
		return append([]string{"send"}, words[1:]...)
	}
	return words
}

// splitWord makes two words of a first one that is a verb and a noun, its sub or a flag: "mail_read", "team-add",
// "stop-all". What messages are read, sent or answered goes without saying.
func splitWord(app *cli.App, words []string) []string {
	typed := strings.ReplaceAll(words[0], "_", "-")
	one, two, isTwo := strings.Cut(typed, "-")
	if !isTwo || phrases[typed] != "" || app.Command(typed) != nil {
		return words
	}
	verb, split := app.Command(one), append([]string{one, two}, words[1:]...)
	switch {
	case (verb != nil || phrases[one] != "") && (two == "all" || two == "count"):
		split[1] = "--" + two
	case verb != nil && nouns[two] == "ls" && !slices.Contains(listing, one): // send-message
		return slices.Delete(split, 1, 2)
	case phrases[one+" "+two] != "", nouns[one] != "" && app.Command(two) != nil: // add-agent, mail-read
	case verb == nil || verb.Command(two) == nil && nouns[two] == "": // else team-add, stop-agent
		return words
	}
	return split
}

// meantByPhrase is what a line means that begins with one of the phrases; nil: it begins with none.
func meantByPhrase(app *cli.App, words []string) []string {
	typed, rest := words[0], words[1:]
	if len(rest) > 0 {
		if two := typed + " " + rest[0]; phrases[two] != "" || phrases[two+" -"] != "" {
			typed, rest = two, rest[1:]
		}
	}
	meant := phrases[typed]
	if alone := phrases[typed+" -"]; alone != "" && Meant(strings.Join(words, " ")) == "" {
		l, err := Parse(app, slices.Concat(strings.Fields(alone), rest))
		if err == nil && len(l.Words) == 0 && !l.Help {
			meant = alone
		}
	}
	if typed == "start" && slices.Contains(rest, "--") { // it names the program
		meant = "run"
	}
	if meant == "" {
		return nil
	}
	return append(strings.Fields(meant), rest...)
}

// isNounOf reports whether a word is one of our verbs and the one in front of it says only of what.
func isNounOf(app *cli.App, noun, word string) bool {
	verb, other := app.Command(word), app.Command(noun)
	if verb == nil || other != nil && boolFlag(other, word) == "--"+word { // inbox unread
		return false
	}
	switch nouns[noun] {
	case "ls": // who writes a message to "stop" stops nobody
		return !strings.Contains(verb.ArgsUsage, "NAME")
	case "team", "pending", "install":
		return !slices.Contains(listing, word)
	}
	return false
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
	if meant == "" && (c.Name == "" || name != typed || len(c.Subcommands) == 0) {
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

package command

import (
	_ "embed"
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

// guess takes in a flag whose value plainly is a word of the verb, or that asks for JSON. f is
// the verb's flag of that name; nil: there is none.
func (l *Line) guess(typed string, f cli.Flag, value string) bool {
	place := l.place(typed)
	switch {
	case value != "" && place >= 0 && (f == nil || !fits(f, value)):
		l.named[place] = append(l.named[place], value)
	case value == "json" && f == nil && slices.Contains([]string{"format", "output", "o"}, strings.TrimLeft(typed, "-")):
		l.Global = append(l.Global, "--json=true")
	default:
		return false
	}
	return true
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

// fill puts words that were given as flags into their places.
func (l *Line) fill() error {
	kinds := l.Kinds()
	for n, kind := range kinds {
		isLast := n == len(kinds)-1
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

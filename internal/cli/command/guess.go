package command

import (
	"cmp"
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
	"events": "events", "sessions": "session", "approvals": "pending", "permissions": "pending", "hooks": "install",
}

// listing are verbs that stand beside a noun and say no more than it does.
var listing = []string{"list", "ls", "get", "show", "describe"}

// phrases are words that plainly mean a verb with something behind it; " -": where only flags stand behind them.
var phrases = map[string]string{
	"add": "team add", "teams": "team ls", "new-session": "session new", "broadcast": "send all", "announce": "send all",
	"reply-all": "reply --all", "sent": "ls --sent", "outbox": "ls --sent", "count": "ls --count", "next": "read --limit 1", "pop": "read --limit 1",
	"say": "send", "chat": "send", "notify-all": "send all", "reply-to": "reply", "await": "wait", "wait-for-mail": "wait", "wait-for-message": "wait",
	"check-mail": "ls", "screenshot": "screen", "output": "screen", "halt": "stop", "inspect agent": "status", "show team": "team",
	"wait-reply": "wait --reply", "wait-idle": "wait --idle", "log": "watch --since 1h --no-follow", "logs": "watch --since 1h --no-follow",
	"add agent": "team add", "add member": "team add", "create agent": "team add", "new agent": "team add", "tail": "watch --since 1h --no-follow", "follow": "watch", "listen": "watch",
	"approve list": "pending", "approve ls": "pending", "approve --list": "pending", "busy": "team",
	"mail -": "ls", "email -": "ls", "unread -": "ls", "history -": "ls --all", "peek -": "read --peek",
	"team members": "team", "team show": "team", "team status": "team", "team info": "team", "agent show": "status", "agent get": "status", "agent info": "status",
}

// onlyOne are verbs that show the one thing that a noun and its name say: "get agent bob".
var onlyOne = map[string]string{"agent": "status", "member": "status", "message": "show"}

// sameFlags are what other tools call a flag that we have; a verb's own flag of such a name goes first.
var sameFlags = map[string]string{
	"follow": "f watch stream live", "watch": "w f follow live", "all": "a everything", "json": "j", "since": "after newer-than",
	"limit": "n max head num first", "from": "sender by author", "wait": "w block", "timeout": "for t max-wait wait-timeout",
	"peek": "no-mark no-mark-read keep keep-unread no-ack dry-run preview", "reason": "r m message because",
	"cwd": "dir workdir cd C", "last": "lines", "detach": "d background bg daemon", "env": "e",
}

// verbFirst puts the words of the verb first, and takes such a noun off.
func verbFirst(app *cli.App, words []string) []string {
	if len(words) == 0 {
		return words
	}
	if len(words) > 1 && phrases[words[0]+" "+words[1]] != "" {
		words = append([]string{words[0] + " " + words[1]}, words[2:]...)
	}
	phrase, hasWord := phrases[words[0]], slices.ContainsFunc(words[1:], func(w string) bool { return !isFlag(w) })
	if !hasWord && (len(words) == 1 || Meant(strings.Join(words, " ")) == "") {
		phrase = cmp.Or(phrases[words[0]+" -"], phrase)
	}
	if phrase != "" {
		return append(strings.Fields(phrase), words[1:]...)
	}
	if n := len(words) - 1; words[0] == "send-keys" && (words[n] == "Enter" || words[n] == "C-m") {
		words = append(words[:n:n], "--enter")
	}
	first, isSplit := strings.ReplaceAll(words[0], "_", "-"), false
	if verb, noun, _ := strings.Cut(first, "-"); app.Command(first) == nil && app.Command(verb) != nil && nouns[noun] != "" {
		words, isSplit = slices.Concat([]string{verb, noun}, words[1:]), true
	}
	if len(words) == 1 {
		return words
	}
	verb, home, behind := nouns[words[1]], app.Command(words[0]), app.Command(words[1])
	isList, isNamed := slices.Contains(listing, words[0]), len(words) > 2 && !isFlag(words[2])
	isSub := home != nil && home.Command(words[1]) != nil
	switch noun := nouns[words[0]]; {
	case isList && isNamed && onlyOne[words[1]] != "": // get agent bob
		return append([]string{onlyOne[words[1]]}, words[2:]...)
	case verb != "" && !isSub && (isList || home != nil && home.Name == verb): // list agents, install hooks
		return append([]string{verb}, words[2:]...)
	case isSplit && verb == "ls": // send-message
		return append(words[:1], words[2:]...)
	case behind != nil && !isSub && (noun == "ls" && !strings.Contains(behind.ArgsUsage, "NAME") || slices.Contains([]string{"team", "pending", "install"}, noun)):
		return words[1:] // inbox read, agents stop bob; who writes a message to "stop" stops nobody
	case words[0] == "mail" || words[0] == "email":
		return append([]string{"send"}, words[1:]...)
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

package letter

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// theirNames matches the names of the tags by which a program around a model, or a model's template, marks who speaks.
// There is no list of these programs: they use several words (<system-reminder>, <user_input>, <local-command-stdout>),
// capitals (<INSTRUCTIONS>, <<SYS>>) or a role. HTML, comparisons, here-documents and most generic types are none of it.
const theirNames = `(?:[A-Za-z][A-Za-z0-9.:]*[-_][-A-Za-z0-9._:]*|[A-Z]{3,}|` +
	`(?:system|developer|assistant|user|human|tool|instructions|permissions)\b)`

// What the programs that mail is pushed into write around what they pass on, however a model might still read it: in any
// case, with any blanks, a tag without its end. The names that could be a variable's need an end or an attribute.
const (
	blank    = `[\s\p{Z}]`
	tagNames = `cross-session-message|task-notification|system-reminder|teammate-message|user-prompt-submit-hook`
	varNames = `pasted_content|user_input|hook_context`
	phrases  = `stop hook (?:feedback|blocking error)|user steering update|another claude session|user sent (?:the following|a new) message`
)

const tagEnd = `(?:~/?~>|` + blank + `~[a-z_:-]+~=~["'])`

// They are compiled when the first text has what may be a mark: most starts of atm show none.
var (
	knownMark = sync.OnceValue(func() *regexp.Regexp {
		names := strings.NewReplacer("-", "~[-_]~", "_", "~[-_]~")
		tags, vars := names.Replace(tagNames), names.Replace(varNames)
		return compileMark(`<~/?~(?:` + tags + `)\b|<~/~(?:` + vars + `|event)\b|<~(?:` + vars + `)` + tagEnd +
			`|\[~system` + blank + `~notification|\[~request` + blank + `~interrupted`)
	})
	eventMark   = sync.OnceValue(func() *regexp.Regexp { return compileMark(`<~event` + tagEnd) })
	knownPhrase = sync.OnceValue(func() *regexp.Regexp {
		return compileMark(`(?:` + strings.ReplaceAll(phrases, " ", blank+"+") + `)\b`)
	})
	theirMark = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:</` + theirNames + `|<` + theirNames + `(?:\s[^<>]*|/)?>` +
			`|<[|｜][A-Za-z_/]|\[/?(?:INST|(?:SYSTEM|TOOL|AVAILABLE)_[A-Z]+)\])`) // <|im_start|>, [INST]
	})
	ourMark = sync.OnceValue(func() *regexp.Regexp { return compileMark(`\[~/?~atm\b`) })
)

// compileMark compiles the beginning of a text, in any case, in which ~ stands for blanks.
func compileMark(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`^(?i:` + strings.ReplaceAll(pattern, "~", blank+"*") + `)`)
}

// maxMark is how far one of these is looked for: the less there is to read, the faster.
const maxMark = 512

// markStart returns how much of a mark to be broken is in front of the backslash; 0: the text begins with none. <size_t> is
// a type of C, and Vec<Event> one of Rust.
func markStart(before rune, s string, marks breaks) int {
	begins := func(word string) bool { return len(s) > len(word) && strings.EqualFold(s[:len(word)], word) }
	near := s[:min(len(s), maxMark)]
	switch {
	case marks == noMarks:
	case s[0] == '<', s[0] == '[':
		theirs := theirMark().FindString(s)
		name := strings.TrimLeftFunc(near[1:], func(c rune) bool { return c == '/' || unicode.IsSpace(c) })
		mayBeKnown := name != "" && strings.Contains("acehprstu", strings.ToLower(name[:1])) // a look at each bracket is dear
		if theirs != "" && !strings.HasSuffix(theirs, "_t>") || mayBeKnown && (knownMark().MatchString(near) ||
			!isLetter(before) && eventMark().MatchString(near) || marks == allMarks && ourMark().MatchString(near)) {
			return 1
		}
	case !isLetter(before) && (begins("stop") || begins("user") || begins("another")) && knownPhrase().MatchString(near):
		return strings.IndexFunc(s, unicode.IsSpace) // behind its first word
	}
	return 0
}

func isLetter(c rune) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

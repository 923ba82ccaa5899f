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

// isMark reports whether a text begins with a mark that is to be broken. <size_t> is a type of C, and Vec<Event> one of
// Rust.
func isMark(before rune, s string, marks breaks) bool {
	if marks == allMarks && s[0] == '[' && ourMark().MatchString(s) {
		return true
	}
	if marks == noMarks {
		return false
	}
	found := theirMark().FindString(s)
	if found != "" && !strings.HasSuffix(found, "_t>") {
		return true
	}
	name := strings.TrimLeftFunc(strings.TrimPrefix(strings.TrimLeftFunc(s[1:], unicode.IsSpace), "/"), unicode.IsSpace)
	if name == "" || !strings.Contains("cstuphre", strings.ToLower(name[:1])) { // else one look at each bracket of a program is dear
		return false
	}
	s = s[:min(len(s), maxMark)]
	return knownMark().MatchString(s) || !isLetter(before) && eventMark().MatchString(s)
}

// mayBeginPhrase reports whether a text begins a word that begins a phrase.
func mayBeginPhrase(before rune, s string) bool {
	begins := func(word string) bool { return len(s) > len(word) && strings.EqualFold(s[:len(word)], word) }
	return !isLetter(before) && strings.IndexByte("AaSsUu", s[0]) >= 0 && (begins("stop") || begins("user") || begins("another"))
}

func isLetter(c rune) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

package wire

import (
	"slices"
	"strings"
	"unicode"
)

// OptionKind classifies an option of a permission request by its id and label, in ACP's words: allow_once,
// allow_always, reject_once or reject_always. It returns "" if they say neither yes nor no, or contradict each other.
// An option without a kind approves nothing.
func OptionKind(id, label string) string {
	id, label = strings.ToLower(id), strings.ToLower(label)
	isYes := beginsWith(id, yesWords) || beginsWith(label, yesWords)
	isNo := beginsWith(id, noWords) || beginsWith(label, noWords) || label == "cancel"
	if isYes == isNo {
		return ""
	}
	kind, duration := "reject", "_once"
	if isYes {
		kind = "allow"
	}
	if slices.ContainsFunc(alwaysWords, func(s string) bool { return strings.Contains(id+" "+label, s) }) {
		duration = "_always"
	}
	return kind + duration
}

var (
	yesWords    = []string{"yes", "allow", "approve"}
	noWords     = []string{"no", "reject", "deny"}
	alwaysWords = []string{
		"always", "again", "don't ask", "session", "future", "from now on", "all edits", "all commands",
		"in this project", "auto-accept", "auto mode", "automatically", "bypass", "trust", "save", "every",
	}
)

// beginsWith reports whether a text begins with one of words: "none of these" does not begin with "no".
func beginsWith(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		rest, ok := strings.CutPrefix(text, word)
		return ok && strings.IndexFunc(rest, unicode.IsLetter) != 0
	})
}

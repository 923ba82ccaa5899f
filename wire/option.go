package wire

import (
	"slices"
	"strings"
	"unicode"
)

// OptionKind is what an option of a question does, as its id and its label say: ACP's allow_once, allow_always,
// reject_once or reject_always. "": they do not say it, or not the same. An option of a kind that is not known
// approves nothing.
func OptionKind(id, label string) string {
	id, label = strings.ToLower(id), strings.ToLower(label)
	isYes := beginsWith(id, yes) || beginsWith(label, yes)
	isNo := beginsWith(id, no) || beginsWith(label, no) || label == "cancel"
	kind := "reject"
	if isYes {
		kind = "allow"
	}
	switch {
	case isYes == isNo:
		return ""
	case slices.ContainsFunc(lasts, func(s string) bool { return strings.Contains(id+" "+label, s) }):
		return kind + "_always"
	}
	return kind + "_once"
}

var (
	yes   = []string{"yes", "allow", "approve"}
	no    = []string{"no", "reject", "deny"}
	lasts = []string{
		"always", "again", "don't ask", "session", "future", "from now on", "all edits", "all commands",
		"in this project", "auto-accept", "trust", "save", "every",
	}
)

// beginsWith reports whether a text begins with one of words: "none of these" does not begin with "no".
func beginsWith(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		rest, ok := strings.CutPrefix(text, word)
		return ok && strings.IndexFunc(rest, unicode.IsLetter) != 0
	})
}

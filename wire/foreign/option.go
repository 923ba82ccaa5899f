package foreign

import (
	"slices"
	"strings"
	"unicode"
)

// alwaysWords are in the label of an option that is about more than this request.
var alwaysWords = []string{
	"always", "again", "don't ask", "session", "future", "from now on", "all edits", "all commands",
	"in this project", "auto-accept", "auto mode", "automatically", "bypass", "trust", "save", "every",
}

// OptionKind classifies an option of a permission request by its id and label, in ACP's words: allow_once,
// allow_always, reject_once or reject_always. It returns "" if they say neither yes nor no, or contradict each other.
// An option without a kind approves nothing.
func OptionKind(id, label string) string {
	id, label = strings.ToLower(id), strings.ToLower(label)
	isYes, isNo, duration := false, label == "cancel", "_once"
	for _, text := range []string{id, label} {
		rest := strings.TrimLeftFunc(text, unicode.IsLetter) // "none of these" does not begin with "no"
		switch strings.TrimSuffix(text, rest) {
		case "yes", "allow", "approve":
			isYes = true
		case "no", "reject", "deny":
			isNo = true
		}
	}
	if slices.ContainsFunc(alwaysWords, func(s string) bool { return strings.Contains(id+" "+label, s) }) {
		duration = "_always"
	}
	switch {
	case isYes == isNo:
		return ""
	case isYes:
		return "allow" + duration
	}
	return "reject" + duration
}

package driver

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Columns are counted in runes here: left of the column in question stand only frames, glyphs and blanks,
// which are all one cell wide.

func blank(s string) bool { return strings.Trim(s, " \t") == "" }

// margin is the number of blanks that s begins with.
func margin(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

func firstRunes(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

func lastRunes(s string, n int) string {
	r := []rune(s)
	return string(r[max(0, len(r)-n):])
}

func skipRunes(s string, n int) string { return s[len(firstRunes(s, n)):] }

func runeAt(s string, n int) string { return firstRunes(skipRunes(s, n), 1) }

// columnOf is the number of runes before the first what in s.
func columnOf(s, what string) (int, bool) {
	before, _, ok := strings.Cut(s, what)
	return utf8.RuneCountInString(before), ok
}

// Solid is s without any blank, tab or newline: the form in which texts are compared, since a program may
// wrap and indent them as it likes.
func Solid(s string) string { return strings.Join(strings.Fields(s), "") }

// solidRows is Solid of rows a to b (without b).
func (l *Look) solidRows(a, b int) string {
	return Solid(strings.Join(l.Lines[min(max(a, 0), len(l.Lines)):min(max(a, b, 0), len(l.Lines))], ""))
}

func hasAny(s string, texts []string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(s, t) })
}

func startsAny(s string, texts []string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.HasPrefix(s, t) })
}

// findPrefix returns the first note whose text s begins with.
func findPrefix(s string, notes []phrase) (phrase, bool) {
	i := slices.IndexFunc(notes, func(n phrase) bool { return strings.HasPrefix(s, n.text) })
	if i < 0 {
		return phrase{}, false
	}
	return notes[i], true
}

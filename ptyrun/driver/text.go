package driver

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Columns are counted in runes here, because only frames, glyphs and blanks precede them, which are one cell wide.

func blank(s string) bool { return strings.Trim(s, " \t") == "" }

// margin counts the blanks at the start of s.
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

// columnOf returns the column of the first what in s.
func columnOf(s, what string) (int, bool) {
	before, _, ok := strings.Cut(s, what)
	return utf8.RuneCountInString(before), ok
}

// RemoveBlanks removes all blanks, tabs and newlines. Texts are compared in this form because programs wrap and indent
// them.
func RemoveBlanks(s string) string { return strings.Join(strings.Fields(s), "") }

// solidRows is RemoveBlanks of rows a to b (exclusive).
func (l *Look) solidRows(a, b int) string {
	return RemoveBlanks(strings.Join(l.Lines[min(max(a, 0), len(l.Lines)):min(max(a, b, 0), len(l.Lines))], ""))
}

// solidFoot is RemoveBlanks of the last five rows, without the blank ones below them.
func (l *Look) solidFoot() string {
	end := len(l.Lines)
	for end > 0 && blank(l.line(end-1)) {
		end--
	}
	return l.solidRows(end-5, end)
}

func hasAny(s string, texts []string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(s, t) })
}

func startsAny(s string, texts []string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.HasPrefix(s, t) })
}

// findPrefix returns the first phrase whose text is a prefix of s.
func findPrefix(s string, phrases []phrase) (phrase, bool) {
	i := slices.IndexFunc(phrases, func(p phrase) bool { return strings.HasPrefix(s, p.text) })
	if i < 0 {
		return phrase{}, false
	}
	return phrases[i], true
}

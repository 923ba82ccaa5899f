package letter

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes text safe to show in one line of a terminal: it makes control characters and bidirectional controls
// visible. A backslash stays as it is, so the result cannot be converted back.
func Escape(s string) string { return escape(s, "") }

// EscapeBody is Escape for several lines: line feeds and tabs stay.
func EscapeBody(s string) string { return escape(s, "\n\t") }

func escape(s, allowed string) string {
	var b strings.Builder
	for len(s) > 0 {
		_, n := utf8.DecodeRuneInString(s)
		b.WriteString(escapeRune(s[:n], allowed))
		s = s[n:]
	}
	return b.String()
}

func escapeRune(s, allowed string) string {
	c, n := utf8.DecodeRuneInString(s)
	switch {
	case c == utf8.RuneError && n == 1:
		return fmt.Sprintf(`\x%02x`, s[0])
	case !isControl(c), strings.ContainsRune(allowed, c):
		return s
	case strings.ContainsRune("\n\t\r", c):
		return strings.Trim(strconv.QuoteRune(c), "'")
	case c < 0x100:
		return fmt.Sprintf(`\x%02x`, c)
	}
	return fmt.Sprintf(`\u%04x`, c)
}

// isControl reports whether a terminal might act on a character: C0, DEL, C1, bidirectional controls, line and
// paragraph separators.
func isControl(c rune) bool {
	return unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || c == '\u2028' || c == '\u2029'
}

// Clip shortens a line to n characters.
func Clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// FirstLine returns a text's first line that is not blank, shortened to n characters.
func FirstLine(s string, n int) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return Clip(line, n)
}

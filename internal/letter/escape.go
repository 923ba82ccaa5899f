package letter

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes text of others safe to show within one line: what is hidden (IsHidden) is shown as \u200b or \n, and a mark
// or a phrase by which programs tell a model who speaks is broken by a backslash. A backslash stays as it is, so the
// result cannot be converted back.
func Escape(s string) string { return escape(s, false, theirMarks) }

// EscapeBody is Escape for several lines: line feeds and tabs stay, and CRLF becomes a line feed.
func EscapeBody(s string) string { return withoutCR(escape(s, true, theirMarks)) }

// EscapeMail is EscapeBody for text in which we say ourselves who speaks: it breaks our marks too, [atm …] and [/atm].
func EscapeMail(s string) string { return withoutCR(escape(s, true, allMarks)) }

// Reveal is EscapeBody for a screen: it shows what is hidden, and breaks no marks.
func Reveal(s string) string { return withoutCR(escape(s, true, noMarks)) }

func withoutCR(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// OneLine makes one line of text of others, with single blanks, and shortens it to n characters.
func OneLine(s string, n int) string {
	return Clip(Escape(strings.Join(strings.Fields(s), " ")), n)
}

// Quote quotes text of others within a line of ours. No other double quote is in it, so the text cannot seem to end
// before it does.
func Quote(s string, n int) string { return `"` + OneLine(doubleQuotes.Replace(s), n) + `"` }

var doubleQuotes = strings.NewReplacer(`"`, "'", "“", "'", "”", "'", "„", "'", "‟", "'", "″", "'", "＂", "'")

// Name is text of others in the place of a name or of a few words: quoted if it has what separates the words of ours.
func Name(s string, n int) string {
	if text := OneLine(s, n); !strings.ContainsAny(text, `";:,()|\`) {
		return text
	}
	return Quote(s, n)
}

// breaks says which marks are broken.
type breaks int

const (
	noMarks breaks = iota
	theirMarks
	allMarks
)

// escape leaves line feeds, CRLF and tabs as they are if the text may have several lines.
func escape(s string, hasLines bool, marks breaks) string {
	var b strings.Builder
	for before := rune(0); s != ""; {
		c, n := utf8.DecodeRuneInString(s)
		after, _ := utf8.DecodeRuneInString(s[n:])
		mark := markStart(before, s, marks)
		shown := s[:max(n, mark)]
		n = len(shown)
		switch {
		case mark > 0:
			shown += `\`
		case c == utf8.RuneError && n == 1:
			shown = fmt.Sprintf(`\x%02x`, s[0])
		case hasLines && (c == '\n' || c == '\t' || c == '\r' && after == '\n'), !IsHidden(c), isInScript(before, c, after):
		case unicode.IsControl(c) && !strings.ContainsRune("\n\r\t", c):
			shown = fmt.Sprintf(`\x%02x`, c)
		default:
			shown = strings.Trim(strconv.QuoteRuneToASCII(c), "'")
		}
		b.WriteString(shown)
		if before = c; shown[0] == '\\' { // it is not there any more
			before = 0
		}
		s = s[n:]
	}
	return b.String()
}

// IsHidden reports whether a character is invisible, or a terminal might act on it: control and format characters, line
// separators, everything that Unicode lets a program ignore (tags and variation selectors among it), and blanks that
// are no white space.
func IsHidden(c rune) bool {
	if c < utf8.RuneSelf {
		return unicode.IsControl(c)
	}
	return unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point) && !unicode.Is(unicode.Prepended_Concatenation_Mark, c) ||
		c == '\u2800' || c == '\ufffc' || c == '\U0001d159'
}

const zwnj, zwj, textStyle, emojiStyle = '\u200c', '\u200d', '\ufe0e', '\ufe0f'

// isInScript reports whether an invisible character does its work where it stands: a joiner or a selector in a script
// that needs it, or in emoji. Two in a row never do.
func isInScript(before, c, after rune) bool {
	switch c {
	case zwnj:
		return isJoined(before, after)
	case zwj:
		return isJoined(before, after) || (isEmoji(before) || before == emojiStyle) && isEmoji(after)
	case textStyle, emojiStyle:
		return isEmoji(before)
	}
	return unicode.Is(unicode.Mongolian, c) && unicode.Is(unicode.Mongolian, before)
}

// isJoined reports whether a joiner between these matters: between letters or marks of a script that may join them (all
// from Arabic to Mongolian), or behind a mark of such a script (a virama at the end of a word).
func isJoined(before, after rune) bool {
	joins := func(c rune) bool {
		return c >= 0x600 && c < 0x1900 && unicode.In(c, unicode.L, unicode.M) && !IsHidden(c)
	}
	return joins(before) && (joins(after) || unicode.IsMark(before))
}

// isEmoji reports whether a character may be part of an emoji: it is a symbol.
func isEmoji(c rune) bool {
	return c >= 0x2190 && c < 0x3300 && unicode.In(c, unicode.So, unicode.Sm) || c >= 0x1f000 && c < 0x1fb00 ||
		strings.ContainsRune("©®‼⁉™ℹ〰", c)
}

// Clip shortens a line to n characters; at least to the "…" that says so.
func Clip(s string, n int) string {
	n = max(n, 1)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// Typable makes a text safe to type: tabs and newlines stay, CR becomes a newline, all other control characters are
// removed, and invalid UTF-8 becomes U+FFFD. So no text can end a paste, press a key or send an escape sequence.
func Typable(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case r != '\n' && r != '\t' && unicode.IsControl(r):
			return -1
		}
		return r
	}, s)
}

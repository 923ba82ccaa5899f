package letter

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes text of others safe to show within one line: what is hidden (IsHidden) is shown as \u200b or \n, and a mark
// or a phrase by which programs tell a model who speaks is broken by a backslash. A backslash stays as it is, so the result cannot be
// converted back.
func Escape(s string) string { return escape(s, "", theirMarks) }

// EscapeBody is Escape for several lines: line feeds and tabs stay, and CRLF becomes a line feed.
func EscapeBody(s string) string { return escape(s, inBody, theirMarks) }

// EscapeMail is EscapeBody for text in which we say ourselves who speaks: it breaks our marks too, [atm …] and [/atm].
func EscapeMail(s string) string { return escape(s, inBody, allMarks) }

// Reveal is EscapeBody for a screen: it shows what is hidden, and breaks no marks.
func Reveal(s string) string { return escape(s, inBody, noMarks) }

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

// inBody are the hidden characters that stay in several lines.
const inBody = "\n\t"

// breaks says which marks are broken.
type breaks int

const (
	noMarks breaks = iota
	theirMarks
	allMarks
)

func escape(s, allowed string, marks breaks) string {
	var b strings.Builder
	for shown := range visible(s, allowed, marks) {
		b.WriteString(strings.TrimPrefix(shown, "\r"))
	}
	return b.String()
}

// visible yields each character of a text as it is shown, or a few that stay as they are, with their length in the text.
// If line feeds are allowed, CRLF is one character.
func visible(s, allowed string, marks breaks) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for before := rune(0); s != ""; {
			if marks != noMarks && mayBeginPhrase(before, s) && knownPhrase().MatchString(s[:min(len(s), maxMark)]) {
				n := strings.IndexFunc(s, unicode.IsSpace) // behind its first word
				if !yield(s[:n]+`\`, n) {
					return
				}
				before, s = 0, s[n:]
				continue
			}
			if n := plainLength(s); n > 0 {
				if !yield(s[:n], n) {
					return
				}
				before, s = rune(s[n-1]), s[n:]
				continue
			}
			c, n := utf8.DecodeRuneInString(s)
			shown := s[:n]
			switch {
			case c == utf8.RuneError && n == 1:
				shown = fmt.Sprintf(`\x%02x`, s[0])
			case strings.ContainsRune(allowed, c):
			case c == '\r' && allowed != "" && strings.HasPrefix(s, "\r\n"):
				shown, n = s[:2], 2
			case c == '<' || c == '[':
				if isMark(before, s, marks) {
					shown += `\`
				}
			case isKeycap(s):
				n += len(keycap)
				shown = s[:n]
			case IsHidden(c):
				after, _ := utf8.DecodeRuneInString(s[n:])
				if !isInScript(before, c, after) {
					shown = escapeRune(c)
				}
			}
			if !yield(shown, n) {
				return
			}
			if before = c; shown[0] == '\\' { // it is not there any more
				before = 0
			}
			s = s[n:]
		}
	}
}

// plainLength counts the characters at the beginning that stay as they are whatever is around them, at most 16: a text is
// cut between what visible yields. A phrase may begin behind them.
func plainLength(s string) (n int) {
	for n < min(len(s), 16) && s[n] >= ' ' && s[n] <= '~' && s[n] != '<' && s[n] != '[' {
		if n > 0 && mayBeginPhrase(rune(s[n-1]), s[n:]) {
			return n
		}
		n++
	}
	if n > 0 && n < len(s) && s[n] >= utf8.RuneSelf { // what follows may belong to the last one
		n--
	}
	return n
}

func escapeRune(c rune) string {
	switch {
	case strings.ContainsRune("\n\t\r", c):
		return strings.Trim(strconv.QuoteRune(c), "'")
	case unicode.IsControl(c):
		return fmt.Sprintf(`\x%02x`, c)
	case c > 0xffff:
		return fmt.Sprintf(`\U%08x`, c)
	}
	return fmt.Sprintf(`\u%04x`, c)
}

// IsHidden reports whether a character is invisible, or a terminal might act on it: control and format characters, line
// separators, everything that Unicode lets a program ignore (tags and variation selectors among it), and blanks that
// are no white space.
func IsHidden(c rune) bool {
	return unicode.IsControl(c) || unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point) && !unicode.Is(unicode.Prepended_Concatenation_Mark, c) ||
		c == '\u2800' || c == '\ufffc' || c == '\U0001d159'
}

const zwnj, zwj, textStyle, emojiStyle = '\u200c', '\u200d', '\ufe0e', '\ufe0f'

// keycap makes a key of a digit.
const keycap = "\ufe0f\u20e3"

func isKeycap(s string) bool {
	return strings.HasPrefix(s[1:], keycap) && strings.IndexByte("#*0123456789", s[0]) >= 0
}

// isInScript reports whether an invisible character does its work where it stands: a joiner or a selector in a script
// that needs it, or in emoji. Two in a row never do.
func isInScript(before, c, after rune) bool {
	switch c {
	case zwnj:
		return isJoined(before, after)
	case zwj:
		isEmoji := unicode.Is(pictographs, before) || before == emojiStyle
		return isJoined(before, after) || isEmoji && unicode.Is(pictographs, after)
	case textStyle, emojiStyle:
		return unicode.Is(pictographs, before)
	}
	return unicode.Is(unicode.Mongolian, c) && unicode.Is(unicode.Mongolian, before)
}

// isJoined reports whether a joiner between these matters: between letters or marks of a script that joins them, or
// behind a mark of such a script (a virama at the end of a word).
func isJoined(before, after rune) bool {
	joins := func(c rune) bool { return unicode.In(c, joining...) && !IsHidden(c) }
	return joins(before) && (joins(after) || unicode.IsMark(before))
}

var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Nko, unicode.Mongolian, unicode.Adlam,
	unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu,
	unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar, unicode.Tibetan,
}

// pictographs are Unicode's Extended_Pictographic and the modifiers of skin tones, with a few symbols beside them.
var pictographs = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xa9, 0xae, 5}, {0x203c, 0x2049, 13}, {0x2122, 0x2139, 23}, {0x2194, 0x2199, 1}, {0x21a9, 0x21aa, 1},
		{0x231a, 0x231b, 1}, {0x2328, 0x2328, 1}, {0x23cf, 0x23cf, 1}, {0x23e9, 0x23fa, 1}, {0x24c2, 0x24c2, 1},
		{0x25aa, 0x25ab, 1}, {0x25b6, 0x25b6, 1}, {0x25c0, 0x25c0, 1}, {0x25fb, 0x25fe, 1}, {0x2600, 0x27bf, 1},
		{0x2934, 0x2935, 1}, {0x2b05, 0x2b07, 1}, {0x2b1b, 0x2b1c, 1}, {0x2b50, 0x2b55, 5}, {0x3030, 0x303d, 13},
		{0x3297, 0x3299, 2},
	},
	R32:         []unicode.Range32{{0x1f000, 0x1faff, 1}},
	LatinOffset: 1,
}

// Clip shortens a line to n characters; at least to the "…" that says so.
func Clip(s string, n int) string {
	n = max(n, 1)
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

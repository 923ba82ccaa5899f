package screen

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// An OutputFilter makes of a program's output, however it is split, what a person's terminal is sent. As in a terminal
// multiplexer that is what draws: text, styles, the cursor, and the modes that Repaint and the end of an attachment put
// back; and the window's title, links, prompt marks and the progress bar, without control characters. Everything else is
// left out, because it would act on the terminal, be answered by it, or be taken for what this program says of itself:
//
//   - strings: clipboard, palette, notifications, files, graphics, what a multiplexer hands on to the terminal around it
//   - window operations, such as its size and its stack of titles, printing, other modes
//   - status sequences, in which the program says what it does
//   - queries, which the runner answers: a terminal's answer may come when a shell reads it
//   - other encodings, and the 8-bit controls, which are a second way to write all this
//
// The zero value is ready.
type OutputFilter struct {
	partial []byte // the beginning of a sequence or of a control
}

// maxSequence is how many bytes a control sequence may have; of a longer one as many are left out, and the rest is text.
const maxSequence = 1 << 10

const (
	enq     = 0x05 // a terminal may answer it with any text
	leadsC1 = 0xc2 // the first byte of U+0080 to U+009F, the 8-bit controls, and of some letters
)

func isSpecial(b byte) bool { return b == ansi.ESC || b == leadsC1 || b == enq }

// Filter returns what of p, and of bytes kept back before, is sent. It may keep back the first bytes of a sequence.
func (f *OutputFilter) Filter(p []byte) (out []byte) {
	if len(f.partial) == 0 && !slices.ContainsFunc(p, isSpecial) {
		return p
	}
	p = append(f.partial, p...)
	f.partial = nil
	for len(p) > 0 {
		at := slices.IndexFunc(p, isSpecial)
		if at < 0 {
			return append(out, p...)
		}
		out, p = append(out, p[:at]...), p[at:]
		var sent []byte
		n := 0 // 0: the rest is missing
		switch {
		case p[0] == enq:
			n = 1
		case len(p) == 1:
		case p[0] == leadsC1 && utf8.RuneStart(p[1]): // else what is left out behind it could be joined to one
			n, sent = 1, []byte("\ufffd")
		case p[0] == leadsC1:
			if n = 2; p[1] >= 0xa0 {
				sent = p[:2]
			}
		case p[1] == '[':
			sent, n = controlSequence(p)
		case strings.IndexByte("]P_^X", p[1]) >= 0:
			var end int
			if end, n = stringEnd(p); n > 0 {
				sent = oscString(p[:end], p[end:n])
			} else if p[1] != ']' || end > len("\x1b]")+maxReport { // it is left out, so its text is not kept
				p = slices.Concat(p[:2], []byte("!"), p[end:])
			}
		default:
			sent, n = escapeSequence(p)
		}
		if n == 0 {
			f.partial = bytes.Clone(p)
			return out
		}
		out, p = append(out, sent...), p[n:]
	}
	return out
}

// controlSequence returns the length of the control sequence at the start of p, and what of it is sent. A control
// character in it, which a terminal would carry out in its middle, ends it.
func controlSequence(p []byte) (sent []byte, n int) {
	for n = len("\x1b["); n < min(len(p), maxSequence) && p[n] >= ' ' && p[n] < '@'; n++ {
	}
	switch {
	case n == maxSequence:
		return nil, n
	case n == len(p):
		return nil, 0
	case p[n] < '@' || p[n] > '~':
		return nil, n
	}
	n++
	text, final := string(p[len("\x1b["):n-1]), p[n-1]
	numbers := strings.Trim(text, "<=>? !")
	if strings.Trim(numbers, "0123456789:;") != "" {
		return nil, n
	}
	draws, kind := "", strings.Replace(text, numbers, "", 1)
	switch kind {
	case "":
		draws = "@ABCDEFGHIJKLMPSTXZ`abdefmrsu"
	case "?":
		draws = "JK"
	case ">":
		draws = "mu" // how keys are reported
	case "<", "=":
		draws = "u"
	case " ":
		draws = "q" // the cursor's shape
	case "!":
		draws = "p" // a soft reset
	}
	switch {
	case strings.IndexByte(draws, final) >= 0:
		return p[:n], n
	case (final == 'h' || final == 'l') && kind == "":
		return modes("", numbers, final, []int{4}), n
	case (final == 'h' || final == 'l') && kind == "?":
		return modes("?", numbers, final, sentModes), n
	}
	return nil, n
}

// sentModes are the DEC modes that a program may set in a person's terminal.
var sentModes = slices.Concat(restoredModes, []int{5, 6, 7, 12, 25, 47, 66, 1047, 1048, 1049, 2026})

// modes returns a sequence that sets or resets those of the modes that are known; nil: there are none.
func modes(private, numbers string, final byte, known []int) []byte {
	var sent []string
	for mode := range strings.SplitSeq(numbers, ";") {
		if n, err := strconv.Atoi(mode); err == nil && slices.Contains(known, n) {
			sent = append(sent, strconv.Itoa(n))
		}
	}
	if sent == nil {
		return nil
	}
	return []byte("\x1b[" + private + strings.Join(sent, ";") + string(final))
}

// escapeSequence is controlSequence for a sequence without parameters.
func escapeSequence(p []byte) (sent []byte, n int) {
	for n = 1; n < min(len(p), maxSequence) && p[n] >= ' ' && p[n] < '0'; n++ {
	}
	switch {
	case n == maxSequence:
		return nil, n
	case n == len(p):
		return nil, 0
	case p[n] < '0' || p[n] > '~':
		return nil, n
	}
	n++
	isCharset := n == 3 && strings.IndexByte("()*+", p[1]) >= 0
	if isCharset || n == 2 && strings.IndexByte("78DEMNOc=>", p[1]) >= 0 || string(p[:n]) == "\x1b#8" {
		return p[:n], n
	}
	return nil, n
}

// stringEnd returns where the text of the string at the start of p ends, and the length of all of it; 0: its rest is
// missing.
func stringEnd(p []byte) (end, n int) {
	ends := "\x1b\x18\x1a"
	if p[1] == ']' {
		ends += "\a"
	}
	end = bytes.IndexAny(p[2:], ends)
	if end < 0 {
		return len(p), 0
	}
	end += 2
	switch {
	case p[end] != ansi.ESC:
		return end, end + 1
	case end+1 == len(p):
		return end, 0
	case p[end+1] == '\\':
		return end, end + 2
	}
	return end, end // another sequence cancels it
}

// oscString returns what is sent of a string.
func oscString(text, end []byte) []byte {
	isWhole := string(end) == "\a" || string(end) == "\x1b\\"
	if text[1] != ']' || !isWhole || len(text) > len("\x1b]")+maxReport {
		return nil
	}
	number, rest, _ := strings.Cut(string(text[2:]), ";")
	switch number {
	case "0", "1", "2", "8", "133":
	case "9":
		if !progressPattern.MatchString(rest) {
			return nil
		}
	default:
		return nil
	}
	return []byte("\x1b]" + number + ";" + plain(rest) + string(end))
}

// plain returns a text without control characters.
func plain(s string) string { return strings.Map(withoutControl, strings.ToValidUTF8(s, "\ufffd")) }

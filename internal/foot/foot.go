// Package foot is a line that is being typed at the foot of a terminal, under
// a line of status, while text comes in above them.
//
// What is typed stands in one row, of which the part around the cursor is seen,
// so that nothing depends on how terminals wrap. Widths are those of what is
// seen: a wide character is two cells, a cluster of several characters is moved
// over and removed as one. What is pasted is text, with its line feeds; no key in
// it does anything.
//
// The terminal must be raw. A Foot starts nothing and reads nothing: it is
// given the bytes that were typed, in any pieces. It is not for concurrent use.
package foot

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// Foot is the foot of a terminal.
type Foot struct {
	out    io.Writer
	width  int
	status string

	line  line
	first int // the first cluster that is seen
	past  []string
	back  int    // how far up in past; 0: not
	draft string // what was being typed before going there

	held    []byte // the beginning of a key or character
	pasting bool
	pasted  []byte

	drawn bool
	above int // rows above the cursor that are ours
	cells int // of the status row, as it was drawn
	at    int // the cursor's column, as it was drawn
}

// maxPast is how many lines are kept to be called up again.
const maxPast = 100

// mark stands before what is typed.
const mark = "> "

// New makes one on a terminal of so many columns. Nothing is shown before
// Status or Print.
func New(out io.Writer, width int) *Foot { return &Foot{out: out, width: max(width, 8)} }

// Begin asks the terminal to tell what is pasted from what is typed.
func (f *Foot) Begin() error {
	_, err := io.WriteString(f.out, "\x1b[?2004h")
	return err
}

// End takes the prompt away, with what was being typed.
func (f *Foot) End() error {
	b := append(f.erase(nil), "\x1b[?2004l"...)
	f.drawn = false
	_, err := f.out.Write(b)
	return err
}

// Resize takes in that the terminal has other columns.
func (f *Foot) Resize(width int) error {
	width = max(width, 8)
	if width == f.width {
		return nil
	}
	if f.drawn && width < f.width {
		// Terminals that get narrower wrap what no longer fits.
		f.above = (f.cells+width-1)/width + f.at/width
	}
	f.width = width
	return f.draw(nil)
}

// Status shows a line above what is typed, as much of it as fits.
func (f *Foot) Status(text string) error {
	if f.drawn && text == f.status {
		return nil
	}
	f.status = text
	return f.draw(nil)
}

// Print shows text above the prompt. It ends with a line feed or gets one; what
// is in it is the caller's to make harmless.
func (f *Foot) Print(text string) error {
	text = strings.TrimSuffix(text, "\n")
	return f.draw([]byte(strings.ReplaceAll(text, "\n", "\r\n") + "\r\n"))
}

// erase takes away what was drawn: the cursor is then where it began.
func (f *Foot) erase(b []byte) []byte {
	if !f.drawn {
		return b
	}
	b = append(b, '\r')
	if f.above > 0 {
		b = fmt.Appendf(b, "\x1b[%dA", f.above)
	}
	return append(b, "\x1b[J"...)
}

// draw shows the prompt, with text before it.
func (f *Foot) draw(text []byte) error {
	b := append(f.erase(nil), text...)
	f.above, f.cells = 0, 0
	if f.status != "" {
		s := displaywidth.TruncateString(f.status, f.width-1, "…")
		b = append(append(b, s...), "\r\n"...)
		f.above, f.cells = 1, max(displaywidth.String(s), 1)
	}
	b = append(b, mark...)
	seen, at := f.window(f.width - 1 - len(mark))
	b = append(b, seen...)
	f.at = len(mark) + at
	b = fmt.Appendf(b, "\r\x1b[%dC", f.at)
	f.drawn = true
	_, err := f.out.Write(b)
	return err
}

// window is what is seen of the line in so many cells, and where in it the
// cursor stands.
func (f *Foot) window(cells int) (seen string, at int) {
	l := &f.line
	if f.first = min(f.first, l.at); f.first > 0 && l.at == f.first {
		f.first = max(0, l.at-4) // going back shows what is there
	}
	// One cell for the cursor behind the end, one for the mark on the left.
	n, fits := 0, l.at
	for fits > f.first {
		_, w := shown(l.clusters[fits-1])
		if n += w; n > cells-2 {
			break
		}
		fits--
	}
	f.first, n = fits, 0
	var b strings.Builder
	if f.first > 0 {
		b.WriteString("…")
		n = 1
	}
	for i := f.first; i < len(l.clusters); i++ {
		if i == l.at {
			at = n
		}
		s, w := shown(l.clusters[i])
		if n+w > cells {
			break
		}
		b.WriteString(s)
		n += w
	}
	if l.at == len(l.clusters) {
		at = n
	}
	return b.String(), at
}

// Type takes in bytes that were typed. It returns the lines that were entered,
// and whether the one who types wants to leave: by Ctrl-D, or Ctrl-C, where
// nothing is typed; else Ctrl-C takes away what is.
func (f *Foot) Type(b []byte) (entered []string, leave bool, err error) {
	b = append(f.held, b...)
	f.held = nil
	for len(b) > 0 && !leave {
		if f.pasting {
			end := bytes.Index(b, []byte("\x1b[201~"))
			if end < 0 {
				keep := len(b)
				if i := bytes.LastIndexByte(b, 0x1b); i >= 0 && len(b)-i < 6 {
					keep = i // the end of the paste, perhaps
				}
				f.pasted = append(f.pasted, b[:keep]...)
				f.held = append(f.held, b[keep:]...)
				break
			}
			f.line.insert(clean(append(f.pasted, b[:end]...)))
			f.pasting, f.pasted = false, nil
			b = b[end+6:]
			continue
		}
		k, n := key(b)
		if n == 0 {
			f.held = append(f.held, b...)
			break
		}
		text := b[:n]
		b = b[n:]
		switch {
		case k == paste:
			f.pasting = true
		case k == enter:
			entered = append(entered, f.enter())
		case k == leaves && len(f.line.clusters) == 0, k == cancel && len(f.line.clusters) == 0:
			leave = true
		default:
			f.press(k, text)
		}
	}
	if leave {
		return entered, true, nil
	}
	return entered, false, f.draw(nil)
}

// enter takes the line away, and remembers it.
func (f *Foot) enter() string {
	text := f.line.text()
	if strings.TrimSpace(text) != "" && (len(f.past) == 0 || f.past[len(f.past)-1] != text) {
		f.past = append(f.past, text)
		f.past = f.past[max(0, len(f.past)-maxPast):]
	}
	f.line, f.back, f.first, f.draft = line{}, 0, 0, ""
	return text
}

// press does what a key does to the line.
func (f *Foot) press(k action, text []byte) {
	l := &f.line
	switch k {
	case self:
		l.insert(clean(text))
	case cancel, clearAll:
		if k == cancel {
			*l = line{}
		} else {
			l.remove(0, l.at)
		}
	case clearRest:
		l.remove(l.at, len(l.clusters))
	case rubout:
		l.remove(l.at-1, l.at)
	case remove, leaves:
		l.remove(l.at, l.at+1)
	case ruboutWord:
		l.remove(l.word(-1), l.at)
	case left:
		l.at = max(0, l.at-1)
	case right:
		l.at = min(len(l.clusters), l.at+1)
	case leftWord:
		l.at = l.word(-1)
	case rightWord:
		l.at = l.word(1)
	case home:
		l.at = 0
	case end:
		l.at = len(l.clusters)
	case up:
		f.recall(1)
	case down:
		f.recall(-1)
	case redraw:
		f.drawn = true
	}
}

// recall shows a line that was entered before.
func (f *Foot) recall(by int) {
	to := f.back + by
	if to < 0 || to > len(f.past) {
		return
	}
	if f.back == 0 {
		f.draft = f.line.text()
	}
	text := f.draft
	if f.back = to; to > 0 {
		text = f.past[len(f.past)-to]
	}
	f.line, f.first = line{}, 0
	f.line.insert(text)
}

// clean makes of bytes that were typed or pasted what can stand in a text: line
// feeds and tabs stay, other controls go.
func clean(b []byte) string {
	s := strings.ReplaceAll(strings.ToValidUTF8(string(b), string(utf8.RuneError)), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r' || r == '\n':
			return '\n'
		case r == '\t':
			return r
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			return -1
		}
		return r
	}, s)
}

package control

import (
	"bytes"
	"fmt"
)

// A Trail follows what a program writes to a terminal and knows what it has
// left switched on there: the alternate screen, a hidden cursor, mouse, focus
// and paste reports, keys written as sequences. The zero value is a terminal
// that nothing was written to. It is not for several goroutines.
type Trail struct {
	state   trailState
	params  []byte
	private [len(privateModes)]bool // other than at the start
	alt     bool
	insert  bool // ANSI modes 4 and 20
	newline bool
	keypad  bool
	others  bool   // modifyOtherKeys
	kitty   [2]int // how many settings lie on the stack of the main and of the alternate screen
	shape   bool   // of the cursor
	margins bool
	charset bool
	below   bool // the cursor is below all that is shown: Below was the last
}

// Below ends the output of a program that has ended, with the cursor below it.
const Below = "\x1b[0J"

type trailState uint8

const (
	plain trailState = iota
	trailEscape
	trailControl
	trailString
	trailStringEnd
	trailCharset // one more byte
)

// privateModes are the modes that are put back, by number, and whether they are
// on in a terminal at rest.
var privateModes = [...]struct {
	number int
	rest   bool
}{
	{1, false}, {5, false}, {6, false}, {7, true}, {9, false}, {25, true}, {66, false}, {69, false},
	{1000, false}, {1001, false}, {1002, false}, {1003, false}, {1004, false}, {1005, false}, {1006, false},
	{1015, false}, {1016, false}, {2004, false}, {2026, false}, {2031, false}, {2048, false},
}

// mostParams is more than what any sequence that counts here has.
const mostParams = 128

// Begin is written before a program's output: it keeps the terminal's title.
const Begin = "\x1b[22;2t"

// Write follows a piece of output, however it was cut. It never fails.
func (t *Trail) Write(p []byte) (int, error) {
	if len(p) > 0 {
		t.below = bytes.HasSuffix(p, []byte(Below))
	}
	for i := 0; i < len(p); i++ {
		if t.state == plain {
			text := p[i:]
			n := bytes.IndexByte(text, esc)
			if n >= 0 {
				text = text[:n]
			}
			const shiftOut = 0x0e
			t.charset = t.charset || bytes.IndexByte(text, shiftOut) >= 0
			if n < 0 {
				break
			}
			i += n
		}
		t.step(p[i])
	}
	return len(p), nil
}

func (t *Trail) step(b byte) {
	const (
		cancel     = 0x18
		substitute = 0x1a
	)
	switch {
	case b == cancel || b == substitute:
		t.state = plain
		return
	case b == esc && t.state == trailString:
		t.state = trailStringEnd
		return
	case b == esc:
		t.state = trailEscape
		return
	}
	switch t.state {
	case trailEscape, trailStringEnd:
		t.state = plain
		switch b {
		case '[':
			t.state, t.params = trailControl, t.params[:0]
		case ']', 'P', '_', '^', 'X':
			t.state = trailString
		case '(', ')', '*', '+':
			t.state, t.charset = trailCharset, true
		case '=':
			t.keypad = true
		case '>':
			t.keypad = false
		case 'c':
			*t = Trail{params: t.params[:0]}
		}
	case trailCharset:
		t.state = plain
	case trailString:
		if b == '\a' {
			t.state = plain
		}
	case trailControl:
		switch {
		case b < 0x20: // carried out by the terminal in the middle of the sequence
		case b < 0x40:
			if len(t.params) < mostParams {
				t.params = append(t.params, b)
			}
		default:
			t.state = plain
			t.control(b)
		}
	}
}

// control takes a whole control sequence.
func (t *Trail) control(final byte) {
	params := t.params
	mark := byte(0)
	if len(params) > 0 && params[0] >= '<' && params[0] <= '?' {
		mark, params = params[0], params[1:]
	}
	first, second, _ := fields(params)
	switch {
	case (final == 'h' || final == 'l') && mark == '?':
		for len(params) > 0 {
			var one []byte
			one, params, _ = bytes.Cut(params, []byte{';'})
			t.set(digits(one), final == 'h')
		}
	case (final == 'h' || final == 'l') && mark == 0:
		for len(params) > 0 {
			var one []byte
			one, params, _ = bytes.Cut(params, []byte{';'})
			switch digits(one) {
			case 4:
				t.insert = final == 'h'
			case 20:
				t.newline = final == 'h'
			}
		}
	case final == 'u' && mark == '>':
		t.kitty[t.page()] = min(t.kitty[t.page()]+1, 99)
	case final == 'u' && mark == '=' && first.number > 0:
		t.kitty[t.page()] = max(t.kitty[t.page()], 1)
	case final == 'u' && mark == '<':
		t.kitty[t.page()] = max(0, t.kitty[t.page()]-max(1, first.number))
	case final == 'm' && mark == '>' && first.number == 4:
		t.others = second.number > 0
	case final == 'q' && bytes.HasSuffix(params, []byte{' '}):
		t.shape = first.number > 0
	case final == 'r' && mark == 0:
		t.margins = len(params) > 0
	case final == 'p' && bytes.Equal(t.params, []byte{'!'}):
		// A soft reset.
		t.insert, t.keypad, t.margins, t.charset = false, false, false, false
		t.set(1, false)
		t.set(6, false)
		t.set(25, true)
	}
}

func (t *Trail) page() int {
	if t.alt {
		return 1
	}
	return 0
}

func (t *Trail) set(number int, on bool) {
	if number == 47 || number == 1047 || number == 1049 {
		t.alt = on
		return
	}
	for i, m := range privateModes {
		if m.number == number {
			t.private[i] = on != m.rest
			return
		}
	}
}

// Undo is what puts a terminal to rest and its title back, with the cursor at
// the left edge below the program's output. Writing it does not change t.
func (t *Trail) Undo() []byte {
	var b []byte
	if t.state != plain {
		b = append(b, "\x18\x1b\\"...) // cut off in the middle of a sequence
	}
	for i, m := range privateModes {
		if !t.private[i] {
			continue
		}
		switch m.rest {
		case true:
			b = fmt.Appendf(b, "\x1b[?%dh", m.number)
		default:
			b = fmt.Appendf(b, "\x1b[?%dl", m.number)
		}
	}
	flag := func(on bool, undo string) {
		if on {
			b = append(b, undo...)
		}
	}
	kitty := func(page int) {
		if n := t.kitty[page]; n > 0 {
			b = fmt.Appendf(b, "\x1b[<%du\x1b[=0u", n)
		}
	}
	if t.alt {
		kitty(1)
	}
	flag(t.insert, "\x1b[4l")
	flag(t.newline, "\x1b[20l")
	flag(t.keypad, "\x1b>")
	flag(t.others, "\x1b[>4;0m")
	flag(t.shape, "\x1b[0 q")
	flag(t.charset, "\x1b(B\x0f")
	flag(t.margins, "\x1b[r")
	b = append(b, "\x1b[0m"...)
	flag(t.alt, "\x1b[?1049l")
	kitty(0)
	b = append(b, "\x1b[23;2t\r"...)
	// The last line is the lowest that there is, however many there are.
	flag(!t.alt && !t.below, "\x1b[9999;1H\r\n")
	return b
}

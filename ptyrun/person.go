package ptyrun

import (
	"bytes"
	"time"
)

// human says which of the bytes that come from an attached terminal a person
// typed. A terminal also answers questions and tells of focus and the mouse;
// none of these is a person at a draft. Answers are taken out, since the runner
// has answered the program already. State is kept over calls: a sequence may
// come in pieces.
type human struct {
	held  []byte // the beginning of a sequence whose end has not come
	since time.Time
}

// A sequence that is not finished is no terminal's when it gets too long, or its
// end does not come soon: somebody has pressed Alt and [ or P.
const (
	maxHeld  = 256
	longHeld = 200 * time.Millisecond
)

// sort returns what the program is to get, and whether a person typed any of
// it.
func (h *human) sort(p []byte, now time.Time) (out []byte, person bool) {
	if len(h.held) > 0 && now.Sub(h.since) > longHeld {
		out, person, h.held = h.held, true, nil
	}
	if len(h.held) > 0 {
		p = append(h.held, p...)
		h.held = nil
	}
	for len(p) > 0 {
		i := bytes.IndexByte(p, 0x1b)
		if i < 0 {
			return append(out, p...), true
		}
		if i > 0 {
			out, person = append(out, p[:i]...), true
			p = p[i:]
		}
		n, kind := sequence(p)
		if n == 0 { // not whole
			if len(p) == 1 || len(p) > maxHeld {
				// The escape key itself, or nothing that a terminal sends.
				return append(out, p...), true
			}
			h.held, h.since = append(h.held, p...), now
			return out, person
		}
		switch kind {
		case answer:
		case report:
			out = append(out, p[:n]...)
		default:
			out, person = append(out, p[:n]...), true
		}
		p = p[n:]
	}
	return out, person
}

type kind int

const (
	key    kind = iota
	answer      // to a question of the program's
	report      // of focus or the mouse
)

// sequence is how long the escape sequence at the beginning of p is (0: its end
// has not come), and what it is.
func sequence(p []byte) (n int, k kind) {
	if len(p) < 2 {
		return 0, key
	}
	switch p[1] {
	case '[':
		if len(p) == 2 {
			return 0, key
		}
		if p[2] == 'M' { // X10 mouse: three bytes follow
			if len(p) < 6 {
				return 0, report
			}
			return 6, report
		}
		for i := 2; i < len(p); i++ {
			if c := p[i]; c >= 0x40 && c <= 0x7e {
				return i + 1, csi(p[2:i], c)
			} else if c < 0x20 || c > 0x7e {
				return i, key // broken off
			}
		}
		return 0, key
	case ']', 'P', '_', '^':
		for i := 2; i < len(p); i++ {
			switch {
			case p[i] == 7:
				return i + 1, answer
			case p[i] == 0x1b && i+1 < len(p) && p[i+1] == '\\':
				return i + 2, answer
			case p[i] == 0x1b && i+1 < len(p):
				return i, key
			}
		}
		return 0, answer
	case 'O':
		if len(p) == 2 {
			return 0, key
		}
		return 3, key
	}
	return 2, key
}

// csi is what a control sequence from a terminal is.
func csi(args []byte, final byte) kind {
	private := len(args) > 0 && (args[0] == '?' || args[0] == '>' || args[0] == '=')
	switch final {
	case 'I', 'O':
		if len(args) == 0 {
			return report
		}
	case 'M', 'm':
		if len(args) > 0 && args[0] == '<' {
			return report
		}
	case 'R':
		// (A shifted F3 looks like the place of a cursor in the first row.)
		if private || bytes.IndexByte(args, ';') >= 0 {
			return answer
		}
	case 'c', 'n', 'y', 't':
		return answer
	case 'u':
		if private {
			return answer
		}
	}
	return key
}

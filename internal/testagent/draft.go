package testagent

import (
	"strings"
	"unicode/utf8"
)

// draft is what stands in the input box: runs of text, and pastes that are shown as something
// shorter.
type draft struct {
	pieces []piece
	pastes int // how many placeholders there ever were: they are numbered
}

type piece struct{ text, shown string }

func (d *draft) add(text, shown string) {
	if n := len(d.pieces); n > 0 && shown == "" && d.pieces[n-1].shown == "" {
		d.pieces[n-1].text += text
		return
	}
	d.pieces = append(d.pieces, piece{text, shown})
}

func (d *draft) isEmpty() bool { return len(d.pieces) == 0 }

// text is what is sent.
func (d *draft) text() (s string) {
	for _, p := range d.pieces {
		s += p.text
	}
	return s
}

// shown is what is seen.
func (d *draft) shown() (s string) {
	for _, p := range d.pieces {
		if p.shown != "" {
			s += p.shown
		} else {
			s += p.text
		}
	}
	return s
}

// take empties the draft and returns its text.
func (d *draft) take() string {
	text := d.text()
	d.pieces = nil
	return text
}

// backspace takes the last character, or a placeholder whole.
func (d *draft) backspace() {
	n := len(d.pieces)
	if n == 0 {
		return
	}
	last := &d.pieces[n-1]
	if last.shown == "" {
		_, size := utf8.DecodeLastRuneInString(last.text)
		last.text = last.text[:len(last.text)-size]
	}
	if last.shown != "" || last.text == "" {
		d.pieces = d.pieces[:n-1]
	}
}

// cutLine is Ctrl-U: back to the beginning of the line, or where that is already, the line break
// before it. A draft of many lines survives one.
func (d *draft) cutLine() {
	if n := len(d.pieces); n > 0 && d.pieces[n-1].shown == "" && strings.HasSuffix(d.pieces[n-1].text, "\n") {
		d.backspace()
		return
	}
	for n := len(d.pieces); n > 0; n = len(d.pieces) {
		last := &d.pieces[n-1]
		if i := strings.LastIndexByte(last.text, '\n'); i >= 0 && last.shown == "" {
			last.text = last.text[:i+1]
			return
		}
		d.pieces = d.pieces[:n-1]
	}
}

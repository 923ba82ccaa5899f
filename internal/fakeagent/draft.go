package fakeagent

import (
	"strings"
	"unicode/utf8"
)

// draft is what stands in the input box. Its zero value is empty.
type draft struct {
	pieces []piece
	pastes int // how many placeholders there ever were: they are numbered
}

// piece is a run of text, or a paste that is shown as something shorter.
type piece struct{ text, shown string }

func (d *draft) typed(s string) {
	if n := len(d.pieces); n > 0 && d.pieces[n-1].shown == "" {
		d.pieces[n-1].text += s
		return
	}
	d.pieces = append(d.pieces, piece{text: s})
}

// pasted adds a paste that is shown as a placeholder.
func (d *draft) pasted(text, shown string) {
	d.pieces = append(d.pieces, piece{text, shown})
}

func (d *draft) empty() bool { return len(d.pieces) == 0 }

// text is what is sent.
func (d *draft) text() string {
	var b strings.Builder
	for _, p := range d.pieces {
		b.WriteString(p.text)
	}
	return b.String()
}

// shown is what is seen.
func (d *draft) shown() string {
	var b strings.Builder
	for _, p := range d.pieces {
		if p.shown != "" {
			b.WriteString(p.shown)
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// placeholder says whether something is not shown as it is.
func (d *draft) placeholder() bool {
	for _, p := range d.pieces {
		if p.shown != "" {
			return true
		}
	}
	return false
}

func (d *draft) clear() { d.pieces = nil }

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

// cutLine is Ctrl-U: back to the beginning of the line, or where that is
// already, the line break before it. A draft of many lines survives one.
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

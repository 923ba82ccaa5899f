package fakeagent

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// frame is the part of the screen that changes: whole lines with colours, and
// where the cursor stands in them.
type frame struct {
	lines  []string
	x, y   int
	cursor bool // it is visible
}

// painter brings frames to the terminal. An inline one keeps the frame below
// what was written before, on the main screen, and lets that scroll away; a
// full one owns the alternate screen.
type painter struct {
	out        io.Writer
	full       bool
	early      bool // the title goes before the screen that it tells of
	cols, rows int
	split      int
	pause      time.Duration

	drawn []string // the lines that stand there
	y     int      // the cursor's line in them
	title string
	blank bool // nothing is known of the screen
}

// draw shows a frame under the new lines of the transcript (inline only).
func (p *painter) draw(fresh []string, f frame, title string) {
	var b strings.Builder
	if p.full {
		p.drawFull(&b, f)
	} else {
		p.drawInline(&b, fresh, f)
	}
	s := b.String()
	if title != p.title {
		p.title = title
		title = "\x1b]0;" + title + "\x07"
		if p.early {
			s = title + s
		} else {
			s += title
		}
	}
	p.raw(s)
}

func (p *painter) drawInline(b *strings.Builder, fresh []string, f frame) {
	if over := len(f.lines) - p.rows; over > 0 {
		f.lines, f.y = f.lines[over:], max(f.y-over, 0)
	}
	switch {
	case p.blank:
		b.WriteString("\x1b[H\x1b[2J\x1b[3J")
		p.drawn, p.y, p.blank = nil, 0, false
		fallthrough
	case len(fresh) > 0 || len(f.lines) != len(p.drawn):
		b.WriteByte('\r')
		up(b, p.y)
		for _, line := range fresh {
			b.WriteString("\x1b[2K" + line + reset + "\r\n")
		}
		for i, line := range f.lines {
			if i > 0 {
				b.WriteString("\r\n")
			}
			b.WriteString("\x1b[2K" + line + reset)
		}
		if len(p.drawn) > len(f.lines)+len(fresh) {
			b.WriteString("\r\n\x1b[J")
			up(b, 1)
		}
		p.y = len(f.lines) - 1
	case slices.Equal(f.lines, p.drawn):
		if f.y == p.y {
			fmt.Fprintf(b, "\x1b[%dG", f.x+1)
			return
		}
	default:
		for i, line := range f.lines {
			if line == p.drawn[i] {
				continue
			}
			p.to(b, i)
			b.WriteString("\x1b[2K" + line + reset)
		}
	}
	p.to(b, f.y)
	fmt.Fprintf(b, "\x1b[%dG", f.x+1)
	p.drawn = f.lines
}

// to moves to a line of the frame.
func (p *painter) to(b *strings.Builder, y int) {
	b.WriteByte('\r')
	if y < p.y {
		up(b, p.y-y)
	} else if y > p.y {
		fmt.Fprintf(b, "\x1b[%dB", y-p.y)
	}
	p.y = y
}

func up(b *strings.Builder, n int) {
	if n > 0 {
		fmt.Fprintf(b, "\x1b[%dA", n)
	}
}

func (p *painter) drawFull(b *strings.Builder, f frame) {
	if p.blank {
		p.drawn = nil
	}
	b.WriteString("\x1b[?2026h\x1b[?25l")
	if p.blank {
		b.WriteString("\x1b[1;1H\x1b[0m\x1b[2J")
		p.blank = false
	}
	for i := range p.rows {
		line, old := "", ""
		if i < len(f.lines) {
			line = f.lines[i]
		}
		if i < len(p.drawn) {
			old = p.drawn[i]
		}
		if line != old {
			fmt.Fprintf(b, "\x1b[%d;1H\x1b[0m\x1b[2K%s\x1b[0m", i+1, line)
		}
	}
	p.drawn = f.lines
	fmt.Fprintf(b, "\x1b[%d;%dH", f.y+1, f.x+1)
	if f.cursor {
		b.WriteString("\x1b[?25h")
	}
	b.WriteString("\x1b[?2026l")
}

// forget is for a screen that something else has drawn on.
func (p *painter) forget() { p.blank = true }

// raw writes bytes, where it is to be so, in pieces that are cut anywhere.
// That the terminal is gone is found out by reading.
func (p *painter) raw(s string) {
	if p.split <= 0 {
		io.WriteString(p.out, s)
		return
	}
	for len(s) > 0 {
		n := min(p.split, len(s))
		io.WriteString(p.out, s[:n])
		s = s[n:]
		time.Sleep(p.pause)
	}
}

package screen

import (
	"bytes"
	"slices"

	"github.com/charmbracelet/x/ansi"
)

const (
	floodSize  = 8 << 10   // undrawn bytes from which on drawing may wait, even if there is no line to drop
	maxUndrawn = 512 << 10 // bytes that may wait
)

// isFlood drops undrawn lines that the lines after them will scroll out of the scrollback, and reports whether the rest
// may wait for more: whether it is only text and styles. The emulator draws 2 MB/s: 200 MB would take it minutes.
func (s *Screen) isFlood() bool {
	p := s.undrawn
	end := len(p)
	if bytes.IndexByte(p, '\n') < 0 { // much faster than looking from the end
		end = -1
	}
	for n := s.scrollback + s.rows + 1; n > 0 && end >= 0; n-- {
		end = bytes.LastIndexByte(p[:end], '\n')
	}
	if end < 0 && len(p) < floodSize || len(s.partialString) > 0 {
		return false
	}
	skipped, rest := p[:end+1], p[end+1:]
	if _, isText := stylesOf(p[s.textUntil:]); !isText {
		return false
	}
	if s.textUntil = bytes.LastIndexByte(p, ansi.ESC); s.textUntil < 0 {
		s.textUntil = len(p) - 1
	}
	if len(skipped) > 0 {
		styles, _ := stylesOf(skipped)
		s.textUntil = max(0, s.textUntil-len(skipped))
		s.addScrolled(bytes.Count(skipped, []byte("\n")))
		s.partialRune = nil
		s.feed(append(styles, '\r'))
		s.undrawn = append(p[:0], rest...)
	}
	if len(s.undrawn) >= min(4*s.keptCells(), maxUndrawn) {
		s.skipRows()
	}
	return len(s.undrawn) < maxUndrawn
}

// addScrolled counts lines that were skipped. Those of the alternate screen never count.
func (s *Screen) addScrolled(lines int) {
	if !s.modes[1049] {
		s.scrolled += uint64(lines)
	}
}

// keptCells is how many cells of an endless line are not scrolled out.
func (s *Screen) keptCells() int { return (s.scrollback + s.rows + 1) * s.cols }

// skipRows drops rows of an endless undrawn line that its later rows will scroll out, if each character takes one cell.
// Whole rows are dropped, so the others stay in their columns.
func (s *Screen) skipRows() {
	at := bytes.LastIndexAny(s.undrawn, "\r\n\t") + 1
	line := s.undrawn[at:]
	cells, _ := skipCells(line, len(line))
	rows := (cells - s.keptCells()) / s.cols
	if rows <= 0 || s.noWrap || s.modes[69] || len(s.partialRune) > 0 {
		return
	}
	known := s.textUntil
	s.undrawn = s.undrawn[:at:at]
	s.draw()
	_, end := skipCells(line, rows*s.cols)
	styles, _ := stylesOf(line[:end])
	s.addScrolled(rows)
	s.feed(styles)
	s.undrawn, s.textUntil = line[end:], max(0, known-at-end)
}

// skipCells returns how many cells, up to a number, the ASCII characters at the start of a line take, and where they end.
// Beyond them it has sequences, as stylesOf allows them.
func skipCells(line []byte, most int) (cells, end int) {
	for end < len(line) && cells < most {
		switch b := line[end]; {
		case b >= ' ' && b < ansi.DEL:
			cells, end = cells+1, end+1
		case b == ansi.ESC: // and "[", numbers and a letter, perhaps cut off
			for end += 2; end < len(line) && !isNoNumber(line[end]); {
				end++
			}
			end = min(end+1, len(line))
		default:
			return 0, end
		}
	}
	return cells, end
}

func isNoNumber(b byte) bool { return b < '0' || b > ';' }

// stylesOf returns the styles that still apply at the end of lines; false: there is more in them than text and styles.
// An incomplete sequence at the end is ignored.
func stylesOf(lines []byte) (styles []byte, ok bool) {
	for i := 0; i < len(lines); i++ {
		b := lines[i]
		switch {
		case b == '\x1b':
			sequence, _, n, state := ansi.DecodeSequence(lines[i:], ansi.NormalState, nil)
			if state != ansi.NormalState {
				return styles, state != ansi.StringState
			}
			i += n - 1
			if n < len("\x1b[m") || sequence[1] != '[' || slices.ContainsFunc(sequence[2:n-1], isNoNumber) {
				return nil, false
			}
			switch sequence[n-1] {
			case 'm':
				if string(sequence) == "\x1b[m" || string(sequence) == "\x1b[0m" {
					styles = nil
				}
				styles = append(styles, sequence...)
			case 'K': // grep and compilers send it after each style
			default:
				return nil, false
			}
		case b < ' ' && b != '\r' && b != '\n' && b != '\t', b == leadsC1 && i+1 < len(lines) && lines[i+1] < 0xa0:
			return nil, false
		}
	}
	return styles, true
}

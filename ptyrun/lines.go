package ptyrun

import (
	"strings"

	"github.com/agentteammail/atm/internal/screen"
)

// lines tells of a screen's lines each once: one that has left it at the top is
// final, one that stands on it is told as it stands when the program rests, and
// again if it has become another by then. Rows are counted as screen.Scrolled
// counts them.
type lines struct {
	upto       uint64            // the first row that is not final, or of which nothing is wanted
	told       map[uint64]string // what was told of rows from there on
	cols, rows int
}

// skip takes everything that the screen shows now as told.
func (l *lines) skip(s *screen.Screen) {
	l.upto = s.Scrolled()
	l.told = map[uint64]string{}
	for y, line := range s.Lines() {
		l.told[l.upto+uint64(y)] = line
	}
	l.cols, l.rows = s.Size()
}

// fit takes in that the screen may have another size. Rows that a larger one has
// taken back from above count anew.
func (l *lines) fit(s *screen.Screen) {
	cols, rows := s.Size()
	if l.cols != cols || l.rows < rows {
		if l.cols != 0 {
			l.skip(s)
		}
	}
	l.cols, l.rows = cols, rows
}

// gone are the lines that have left the screen since, and how many are kept
// nowhere any more. Without want they are all passed over, and counted.
func (l *lines) gone(s *screen.Screen, want bool) (out []string, lost uint64) {
	l.fit(s)
	end := s.Scrolled()
	if end == l.upto || s.Modes().Alt {
		return nil, 0
	}
	if !want {
		lost = end - l.upto
		l.pass(end)
		return nil, lost
	}
	if n := uint64(s.History()); end-l.upto > n {
		lost = end - n - l.upto
		l.upto = end - n
	}
	for l.upto < end {
		text, next := l.line(s, l.upto)
		if next > end {
			break // its rest still stands on the screen
		}
		if l.told[l.upto] != text || text == "" {
			out = append(out, text)
		}
		l.upto = next
	}
	l.pass(l.upto)
	return out, lost
}

// pass forgets what was told of rows that are final.
func (l *lines) pass(upto uint64) {
	l.upto = upto
	for row := range l.told {
		if row < upto {
			delete(l.told, row)
		}
	}
}

// line is the line that begins in a row, put together where it was wrapped, and
// the row behind it.
func (l *lines) line(s *screen.Screen, row uint64) (text string, next uint64) {
	top := s.Scrolled()
	_, rows := s.Size()
	var b strings.Builder
	for {
		y := int(int64(row - top))
		b.WriteString(s.Line(y))
		row++
		if y+1 >= rows || !s.Wrapped(y+1) {
			return b.String(), row
		}
	}
}

// standing are the lines above the visible row end that were not told as they
// stand now.
func (l *lines) standing(s *screen.Screen, end int) (out []string) {
	l.fit(s)
	top := s.Scrolled()
	row := max(l.upto, top)
	if l.upto < top {
		row = l.upto // a line whose beginning has left the screen
	}
	now := map[uint64]string{}
	for row < top+uint64(end) {
		text, next := l.line(s, row)
		if next > top+uint64(end) {
			break // it goes on
		}
		if told, ok := l.told[row]; !ok || told != text {
			out = append(out, text)
		}
		now[row] = text
		row = next
	}
	l.told = now
	return out
}

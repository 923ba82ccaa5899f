package ptyrun

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/screen"
)

// lines tells of a screen's lines each once: one that has left it at the top is
// final, one that stands on it is told as it stands when the program rests, and
// again if it has become another by then, not if it has only moved. Rows are
// counted as screen.Scrolled counts them. For another screen it begins as the
// zero value.
type lines struct {
	upto       uint64            // the first row that is not final, or of which nothing is wanted
	told       map[uint64]string // what was told of rows from there on
	cols, rows int
	seen       uint64 // the version of the screen when what stands was told
	stood      stood
}

// skip takes everything that the screen shows now as told.
func (l *lines) skip(s *screen.Screen) {
	l.upto = s.Scrolled()
	l.told = map[uint64]string{}
	l.cols, l.rows = s.Size()
	for row, end := l.upto, l.upto+uint64(l.rows); row < end; {
		text, next := l.line(s, row)
		l.told[row] = text
		row = next
	}
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
// stand now. One that was told and stands further down is told: a program that
// paints its screen has pushed it there; on the alternate screen, which nothing
// leaves at the top, also one that stands further up.
func (l *lines) standing(s *screen.Screen, end int) (out []string) {
	l.fit(s)
	top := s.Scrolled()
	row := max(l.upto, top)
	if l.upto < top {
		row = l.upto // a line whose beginning has left the screen
	}
	var was, now []placed
	for _, row := range slices.Sorted(maps.Keys(l.told)) {
		was = append(was, placed{row, l.told[row]})
	}
	l.told = map[uint64]string{}
	for row < top+uint64(end) {
		text, next := l.line(s, row)
		if next > top+uint64(end) {
			break // it goes on
		}
		now = append(now, placed{row, text})
		l.told[row] = text
		row = next
	}
	return added(was, now, s.Modes().Alt)
}

// placed is a line and the row that it begins in.
type placed struct {
	row  uint64
	text string
}

// added are the lines in now that are none of was: those outside the weightiest
// sequence that both have. up says whether a line may have moved up.
func added(was, now []placed, up bool) (out []string) {
	weights := weigh(was, now)
	same := func(a, b placed) bool { return a.text == b.text && (up || b.row >= a.row) }
	for len(was) > 0 && len(now) > 0 && same(was[0], now[0]) {
		was, now = was[1:], now[1:]
	}
	for len(was) > 0 && len(now) > 0 && same(was[len(was)-1], now[len(now)-1]) {
		was, now = was[:len(was)-1], now[:len(now)-1]
	}
	// common[i][j] is the weight of that sequence from was[i] and now[j] on.
	common := make([][]int, len(was)+1)
	common[len(was)] = make([]int, len(now)+1)
	for i := len(was) - 1; i >= 0; i-- {
		common[i] = make([]int, len(now)+1)
		for j := len(now) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); same(was[i], now[j]) {
				common[i][j] = max(common[i][j], common[i+1][j+1]+weights[now[j].text])
			}
		}
	}
	for i, j := 0, 0; j < len(now); {
		switch {
		case i < len(was) && same(was[i], now[j]) && common[i][j] == common[i+1][j+1]+weights[now[j].text]:
			i, j = i+1, j+1
		case i < len(was) && common[i][j] == common[i+1][j]:
			i++
		default:
			out = append(out, now[j].text)
			j++
		}
	}
	return out
}

// weigh says what it counts that a line stands there still: most of a text that
// stands there once, and nearly nothing of a blank one, which all look alike.
func weigh(was, now []placed) map[string]int {
	weights := map[string]int{}
	for _, all := range [][]placed{was, now} {
		seen := map[string]bool{}
		for _, p := range all {
			if seen[p.text] {
				weights[p.text] = 1 << 8
			} else if seen[p.text] = true; weights[p.text] == 0 {
				weights[p.text] = 1 << 16
			}
		}
	}
	weights[""] = 1
	return weights
}

// stood is since when a screen shows the same text. Bytes do not tell: a program
// that waits may draw its cursor again ten times a second.
type stood struct {
	text     []string // nil: it has scrolled since
	scrolled uint64
	version  uint64 // of the screen that was compared
	from     time.Time
}

// since compares the screen with what it was, by when it was written to last.
func (t *stood) since(s *screen.Screen, wrote time.Time) time.Time {
	v := s.Version()
	if v == t.version && !t.from.IsZero() {
		return t.from
	}
	t.version = v
	if at := s.Scrolled(); at != t.scrolled {
		t.text, t.scrolled, t.from = nil, at, wrote // a flood is not compared line by line
		return t.from
	}
	if text := s.Lines(); t.text == nil || !slices.Equal(text, t.text) {
		t.text, t.from = text, wrote
	}
	return t.from
}

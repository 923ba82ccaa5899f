package screen

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// state is all of a screen that a caller can see.
type state struct {
	Cols, Rows int
	Cells      [][]Cell
	Wraps      []bool
	History    []string
	X, Y       int
	WrapNext   bool
	Pen        Style
	Modes      Modes
	Title      string
	Scrolled   uint64
	Notes      []Note
	Replies    string
}

func stateOf(s *Screen) state {
	st := state{
		Cols: s.cols, Rows: s.rows, X: s.x, Y: s.y, WrapNext: s.wrapNext, Pen: s.pen.style(),
		Modes: s.Modes(), Title: s.Title(), Scrolled: s.Scrolled(),
		Notes: slices.Clone(s.notes), Replies: string(s.replies),
	}
	for y := range s.rows {
		st.Cells = append(st.Cells, slices.Clone(s.Row(y)))
		st.Wraps = append(st.Wraps, s.Wrapped(y))
	}
	for y := -s.main.hist; y < 0; y++ {
		st.History = append(st.History, s.lineText(s.main.row(y)))
	}
	return st
}

// same compares two states; the difference is only made where there is one,
// because that is slow.
func same(t testing.TB, what string, want, got state) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("%s (-want +got):\n%s", what, cmp.Diff(want, got))
	}
}

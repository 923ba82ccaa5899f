package screen

import "slices"

// row is one line. Cells from n on are blank whatever they hold, so clearing a
// row is one store, and a short line costs the memory of a short line.
type row struct {
	cells []cell
	n     int
	wraps bool // the text goes on in the row below: a soft wrap
	wide  bool // wide cells may be among the cells
}

// clear makes the row blank: default, or filled to cols with a background.
func (r *row) clear(fill cell, cols int) {
	r.n, r.wraps, r.wide = 0, false, false
	if fill != (cell{}) {
		r.erase(0, cols, fill, cols)
	}
}

// reach makes room for n cells.
func (r *row) reach(n, cols int) {
	if n <= len(r.cells) {
		return
	}
	grown := make([]cell, min(max(n, 2*len(r.cells), 16), max(cols, n)))
	copy(grown, r.cells[:r.n])
	r.cells = grown
}

// extend makes the cells up to n ones that count.
func (r *row) extend(n, cols int) {
	if n <= r.n {
		return
	}
	r.reach(n, cols)
	clear(r.cells[r.n:n])
	r.n = n
}

// at is the cell at x, blank beyond the end.
func (r *row) at(x int) cell {
	if x >= r.n {
		return cell{}
	}
	return r.cells[x]
}

// split blanks the halves of wide characters that stand across the borders of
// x..end, which is about to be written or moved.
func (r *row) split(x, end int) {
	if r.wide { // the rest is apart so that this much is inlined
		r.splitWide(x, end)
	}
}

func (r *row) splitWide(x, end int) {
	if x > 0 && x < r.n && r.cells[x].tail() {
		r.cells[x-1] = r.cells[x-1].bare()
		r.cells[x] = r.cells[x].bare()
	}
	if end < r.n && r.cells[end].tail() {
		r.cells[end-1] = r.cells[end-1].bare()
		r.cells[end] = r.cells[end].bare()
	}
}

// erase blanks x..end with the fill.
func (r *row) erase(x, end int, fill cell, cols int) {
	r.split(x, end)
	if end >= cols {
		r.wraps = false
	}
	if fill == (cell{}) {
		if end >= r.n {
			r.n = min(r.n, x)
			return
		}
		clear(r.cells[x:end])
		return
	}
	r.extend(end, cols)
	for i := x; i < end; i++ {
		r.cells[i] = fill
	}
}

// insert moves the cells from x on k to the right; what leaves cols is lost.
func (r *row) insert(x, k int, fill cell, cols int) {
	k = min(k, cols-x)
	r.split(x, x)
	if x < r.n {
		n := min(r.n+k, cols)
		r.split(n-k, n-k)
		r.extend(n, cols)
		copy(r.cells[x+k:n], r.cells[x:n-k])
		r.n = n
	}
	if x < r.n || fill != (cell{}) {
		r.extend(x+k, cols)
		for i := x; i < x+k; i++ {
			r.cells[i] = fill
		}
	}
	r.wraps = false
}

// remove takes k cells at x away; the rest moves left.
func (r *row) remove(x, k int, fill cell, cols int) {
	k = min(k, cols-x)
	r.split(x, x+k)
	r.wraps = false
	if x < r.n {
		if x+k >= r.n {
			r.n = x
		} else {
			copy(r.cells[x:], r.cells[x+k:r.n])
			r.n -= k
		}
	}
	if fill != (cell{}) {
		r.extend(cols, cols)
		for i := cols - k; i < cols; i++ {
			r.cells[i] = fill
		}
	}
}

// cut makes the row fit a screen of cols.
func (r *row) cut(cols int) {
	if r.n > cols {
		r.split(cols, cols)
		r.n, r.wraps = cols, false
	}
}

// blank says that nothing can be seen in the row.
func (r *row) blank() bool {
	for _, c := range r.cells[:r.n] {
		if !c.empty() {
			return false
		}
	}
	return true
}

// textual says that there is text in the row.
func (r *row) textual() bool {
	return slices.ContainsFunc(r.cells[:r.n], cell.text)
}

// grid is a screen and the lines that left it at the top, in one ring: a line
// that scrolls out stays where it is, the place of the oldest becomes the new
// bottom one.
type grid struct {
	ring  []*row // limit+rows places, nil where nothing was yet
	base  int    // place of the top row
	hist  int    // lines above it
	limit int    // most lines above it
	rows  int
}

func newGrid(rows, limit int) *grid {
	g := &grid{ring: make([]*row, rows+limit), limit: limit, rows: rows}
	for y := range rows {
		g.ring[y] = &row{}
	}
	return g
}

func (g *grid) place(i int) int {
	i += g.base
	if i >= len(g.ring) {
		return i - len(g.ring)
	}
	if i < 0 {
		return i + len(g.ring)
	}
	return i
}

// row is the visible row y, or for y < 0 a line of the scrollback, -1 the newest.
func (g *grid) row(y int) *row { return g.ring[g.place(y)] }

// push scrolls rows 0..bottom up by one into the scrollback. The new row is
// not yet cleared.
func (g *grid) push(bottom int) *row {
	g.base = g.place(1)
	if g.hist < g.limit {
		g.hist++
	}
	last := g.place(g.rows - 1)
	fresh := g.ring[last]
	if fresh == nil {
		fresh = &row{}
		g.ring[last] = fresh
	}
	if bottom < g.rows-1 {
		for y := g.rows - 1; y > bottom; y-- {
			g.ring[g.place(y)] = g.ring[g.place(y-1)]
		}
		g.ring[g.place(bottom)] = fresh
	}
	return fresh
}

// rotate moves the rows top..bottom up by k (down for k < 0); those that leave
// come in at the other end, not yet cleared.
func (g *grid) rotate(top, bottom, k int) {
	var few [64]*row
	height := bottom - top + 1
	moved := few[:0]
	for i := range height {
		moved = append(moved, g.row(top+(i+k+height)%height))
	}
	for i, r := range moved {
		g.ring[g.place(top+i)] = r
	}
}

// forget drops the scrollback.
func (g *grid) forget() { g.hist = 0 }

// resize makes the grid cols × rows and says where the cursor's row y is then.
// A shrinking screen first loses blank rows below the cursor, then rows at the
// top, which go to the scrollback; a growing one takes them back, as xterm does,
// so that a size which changes for a moment changes nothing.
func (g *grid) resize(cols, rows, y int) (newY, pushed int) {
	all := make([]*row, 0, g.hist+g.rows+rows)
	for i := -g.hist; i < g.rows; i++ {
		all = append(all, g.row(i))
	}
	hist, visible := g.hist, g.rows
	for visible > rows && visible-1 > y && all[len(all)-1].blank() {
		all = all[:len(all)-1]
		visible--
	}
	if d := min(visible-rows, y); d > 0 {
		hist, visible, y, pushed = hist+d, visible-d, y-d, d
	}
	if visible > rows {
		all, visible = all[:hist+rows], rows
	}
	if d := min(rows-visible, hist); d > 0 {
		hist, visible, y = hist-d, visible+d, y+d
	}
	for ; visible < rows; visible++ {
		all = append(all, &row{})
	}
	if over := hist - g.limit; over > 0 {
		all, hist = all[over:], g.limit
	}
	ring := make([]*row, rows+g.limit)
	copy(ring, all)
	g.ring, g.base, g.hist, g.rows = ring, hist, hist, rows
	for i := range rows {
		g.row(i).cut(cols)
	}
	return y, pushed
}

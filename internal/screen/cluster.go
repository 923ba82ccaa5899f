package screen

import (
	"github.com/clipperhouse/displaywidth"
)

const (
	zwj = '\u200d'

	maxCluster  = 64   // bytes of a cluster; marks beyond are dropped
	maxClusters = 4096 // entries of the table before unused ones are looked for
)

// clusters is the table of the texts that are more than one rune; cells hold
// places in it. What no cell holds any more is found when the table is full,
// and then the table may grow to double of what is in use: the number of cells
// bounds it.
type clusters struct {
	table []string
	index map[string]uint32
	free  []uint32
	full  int
}

func (s *Screen) cluster(ch uint32) string { return s.table[ch&^clusterBit] }

// intern is the character for a cluster.
func (s *Screen) intern(text []byte) uint32 {
	if i, ok := s.index[string(text)]; ok {
		return i | clusterBit
	}
	if s.index == nil {
		s.index, s.full = make(map[string]uint32), maxClusters
	}
	if len(s.free) == 0 && len(s.table) >= s.full {
		s.sweep()
	}
	var i uint32
	if n := len(s.free); n > 0 {
		i, s.free = s.free[n-1], s.free[:n-1]
	} else {
		i = uint32(len(s.table))
		s.table = append(s.table, "")
	}
	s.table[i] = string(text)
	s.index[s.table[i]] = i
	return i | clusterBit
}

// sweep frees the clusters that no cell holds.
func (s *Screen) sweep() {
	used := make([]bool, len(s.table))
	for _, g := range []*grid{s.main, s.alt} {
		for y := -g.hist; y < g.rows; y++ {
			r := g.row(y)
			for _, c := range r.cells[:r.n] {
				if c.char()&clusterBit != 0 {
					used[c.char()&^clusterBit] = true
				}
			}
		}
	}
	for i, u := range used {
		if !u {
			delete(s.index, s.table[i])
			s.table[i] = ""
			s.free = append(s.free, uint32(i))
		}
	}
	s.full = max(maxClusters, 2*(len(s.table)-len(s.free)))
}

// clusterWidth is the width of the text and whether it is one cluster.
func clusterWidth(text []byte) (width int, one bool) {
	g := displaywidth.BytesGraphemes(text)
	if !g.Next() {
		return 0, false
	}
	return g.Width(), len(g.Value()) == len(text)
}

// runeWidth is what is known about a rune: its cells, and what it may join.
type runeWidth uint8

const (
	cellsMask runeWidth = 3
	joins     runeWidth = 1 << (iota + 2) // goes on any cluster: marks, selectors, ZWJ
	joinsZWJ                              // goes on a cluster that ends in ZWJ: emoji
	joinsLike                             // goes on some of its like: Hangul, flags, Indic conjuncts
	known
)

// widths remembers runeWidths in pages of 256, each made when a rune of it is
// first met: asking the tables for every rune costs ten times as much.
type widths [0x1100]*[256]runeWidth

func (w *widths) width(r rune) runeWidth {
	page := w[uint32(r)>>8]
	if page == nil {
		page = new([256]runeWidth)
		w[uint32(r)>>8] = page
	}
	if page[r&0xff] == 0 {
		page[r&0xff] = measure(r)
	}
	return page[r&0xff]
}

// measure asks displaywidth. Which classes of the grapheme rules a rune is in
// shows in what it joins.
func measure(r rune) runeWidth {
	after := func(begin string) bool {
		_, one := clusterWidth([]byte(begin + string(r)))
		return one
	}
	w := known | runeWidth(displaywidth.Rune(r))
	switch {
	case r < 0x80:
	case after("a"):
		w |= joins
	case after("👩\u200d"):
		w |= joinsZWJ
	case after("ᄀ"), after("가"), after("각"), after("🇦"), after("क्"):
		w |= joinsLike
	}
	return w
}

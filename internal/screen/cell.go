package screen

// Cell is one place of the grid, as Row shows it.
type Cell struct {
	Text  string // one grapheme cluster, " " for a written space, "" for a place that nothing was written to
	Width uint8  // 1; 2: the next cell is its tail; 0: the tail
	Style Style
}

// Style is how a cell looks. The zero value is the terminal's default.
type Style struct {
	Fg, Bg Color
	Attr   Attr
}

// Attr is a set of bits. How a line under the text is drawn stands in three
// more of them: see Underlined.
type Attr uint16

// The attributes.
const (
	Bold Attr = 1 << iota
	Dim
	Italic
	Underline
	Blink
	Inverse
	Hidden
	Strike
	Overline

	underlineShift      = 9
	underlineMask  Attr = 7 << underlineShift
)

// Underlined says how the text is underlined: 0 not, 1 single, 2 double,
// 3 curly, 4 dotted, 5 dashed, the numbers of SGR 4:n.
func (a Attr) Underlined() int {
	if a&Underline == 0 {
		return 0
	}
	return int(a&underlineMask>>underlineShift) + 1
}

func (a Attr) underlined(kind int) Attr {
	a &^= Underline | underlineMask
	if kind >= 1 && kind <= 5 {
		a |= Underline | Attr(kind-1)<<underlineShift
	}
	return a
}

// Color is the default colour (zero), one of the 256 of the palette, or RGB.
type Color uint32

const (
	paletteColor Color = 1 << 24
	rgbColor     Color = 2 << 24
)

// Palette is the colour of that number, 0–255.
func Palette(index uint8) Color { return paletteColor | Color(index) }

// RGB is a true colour.
func RGB(r, g, b uint8) Color { return rgbColor | Color(r)<<16 | Color(g)<<8 | Color(b) }

// Palette is the number of a palette colour.
func (c Color) Palette() (index uint8, ok bool) { return uint8(c), c&^0xffffff == paletteColor }

// RGB are the parts of a true colour.
func (c Color) RGB() (r, g, b uint8, ok bool) {
	return uint8(c >> 16), uint8(c >> 8), uint8(c), c&^0xffffff == rgbColor
}

// cell is a Cell in two words without pointers: a run of text is two stores a
// character, and the garbage collector has nothing to look at.
//
//	lo: character (0 blank, a rune, or clusterBit and a place in the table), colour << 32
//	hi: background, attributes << 32, wideBit, tailBit
//
// The zero cell is blank in the default style.
type cell struct{ lo, hi uint64 }

const (
	clusterBit uint32 = 1 << 31
	wideBit    uint64 = 1 << 48
	tailBit    uint64 = 1 << 49

	charMask  uint64 = 1<<32 - 1
	colorMask uint64 = 1<<32 - 1
)

func (c cell) char() uint32 { return uint32(c.lo) }
func (c cell) wide() bool   { return c.hi&wideBit != 0 }
func (c cell) tail() bool   { return c.hi&tailBit != 0 }

// empty says that nothing can be seen in the cell.
func (c cell) empty() bool {
	return (c.char() == 0 || c.char() == ' ') && c.hi&colorMask == 0 && c.attr()&(Inverse|Underline|Strike|Overline) == 0
}

// text says that the cell holds something other than space.
func (c cell) text() bool { return c.char() != 0 && c.char() != ' ' }

func (c cell) attr() Attr { return Attr(c.hi >> 32) }

func (c cell) style() Style {
	return Style{Fg: Color(c.lo >> 32), Bg: Color(c.hi & colorMask), Attr: c.attr()}
}

// bare is the style of the cell without its character.
func (c cell) bare() cell { return cell{c.lo &^ charMask, c.hi &^ (wideBit | tailBit)} }

// setStyle makes c the pen that writes in that style.
func (c *cell) setStyle(s Style) {
	*c = cell{uint64(s.Fg) << 32, uint64(s.Bg) | uint64(s.Attr)<<32}
}

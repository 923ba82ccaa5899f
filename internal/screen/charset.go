package screen

// charset is what a byte of a set of 94 characters means.
type charset uint8

const (
	asciiSet charset = iota
	lineDrawing
	british
)

// charsets are the four designated sets and which of them is in use.
type charsets struct {
	g      [4]charset
	gl     uint8
	single uint8 // set for the next character only: SS2, SS3; 0 none
}

// plain says that bytes mean ASCII.
func (c *charsets) plain() bool { return c.single == 0 && c.g[c.gl] == asciiSet }

// designate makes one of the four a set by the final byte of its designation.
func (c *charsets) designate(which byte, final byte) {
	set := asciiSet
	switch final {
	case '0', '2':
		set = lineDrawing
	case 'A':
		set = british
	}
	c.g[which-'('] = set
}

// lineDrawn are the characters of DEC Special Graphics from 0x5f on.
var lineDrawn = [...]uint16{
	' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼',
	'⎺', '⎻', '─', '⎼', '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
}

// translate is the character that a byte means now.
func (c *charsets) translate(b byte) uint32 {
	set := c.g[c.gl]
	if c.single != 0 {
		set, c.single = c.g[c.single], 0
	}
	switch {
	case set == lineDrawing && b >= 0x5f:
		return uint32(lineDrawn[b-0x5f])
	case set == british && b == '#':
		return '£'
	}
	return uint32(b)
}

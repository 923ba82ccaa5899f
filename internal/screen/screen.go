// Package screen is a terminal without a window: bytes go in; text, styles, title, modes and replies come out. It wraps
// charmbracelet/x/vt, and is the only package that imports it.
//
// What it adds to the emulator:
//
//   - Strings (titles, clipboards, …) are removed first: the emulator would end them at the byte 0x9C inside "✳".
//   - Invalid UTF-8 becomes U+FFFD; the emulator would swallow the byte after it.
//   - The 8-bit controls U+0080 to U+009F are removed; the emulator would draw some of them, for another terminal to obey.
//   - U+FE0E, which asks for a character as text and not as a picture, is left out: it says how a cell looks anyway.
//   - After a panic the emulator is replaced, and blank until the program draws again.
//   - Counts in control sequences are lowered to a screenful; the emulator would carry out any, one by one.
//   - It never blocks: the answers to queries are in Replies.
//
// How the bytes are split over calls of Write does not matter, but for the code points of one character: "e" and an
// accent in two calls may be two characters, and for how many of a long run of repeated characters are drawn. A Screen
// is not for concurrent use and does no I/O.
package screen

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// Cell is one cell of the grid. Its colours are those of x/ansi; nil: the default.
type Cell struct {
	Text               string // one grapheme cluster; "": nothing was written there
	Width              int    // 1 or 2; 0: the second half of the cell before
	Fg, Bg             color.Color
	Bold, Dim, Inverse bool
}

// Modes are the terminal modes that callers need.
type Modes struct {
	Paste bool // 2004: bracketed paste
	Alt   bool // 1049: the alternate screen
	Sync  bool // 2026: a synchronized frame is open

	AppCursor    bool // 1: arrow keys send ESC O
	CursorHidden bool // 25 off
}

// Screen is the terminal. Create it with New.
type Screen struct {
	emulator      *vt.Emulator
	cols, rows    int
	scrollback    int // lines
	title         string
	progress      Progress
	bar           string // the sequence that showed it
	status        Status
	hasExcess     bool         // the program has declared more than the limits allow
	modes         map[int]bool // the DEC private modes that are set
	hidden        bool         // the cursor
	noWrap        bool         // DEC mode 7 is off
	replies       []byte
	version       uint64
	partialString []byte // an incomplete string, or just its ESC
	partialRune   []byte
	repeats       int // characters that REP may still draw
}

// piece is how many bytes are drawn at once: what REP may draw grows with each.
const piece = 255

// Scrollback is how many lines above the screen a runner keeps.
const Scrollback = 500

// New returns a blank screen with that many lines of scrollback. Sizes below one count as one.
func New(cols, rows, scrollback int) *Screen {
	s := &Screen{cols: max(cols, 1), rows: max(rows, 1), scrollback: max(scrollback, 1), modes: map[int]bool{}}
	s.create()
	return s
}

// create makes the emulator, and handles the queries of programs.
func (s *Screen) create() {
	e := vt.NewEmulator(s.cols, s.rows)
	// Nobody reads the emulator's own replies, and its open pipe would block.
	e.InputPipe().(io.Closer).Close()
	e.SetScrollbackSize(s.scrollback)
	// The alternate screen would keep 10,000 lines that nobody can see: github.com/charmbracelet/x/pull/948.
	alt := reflect.ValueOf(e).Elem().FieldByName("scrs").Index(1).Addr()
	(*vt.Screen)(alt.UnsafePointer()).SetScrollback(nil)
	e.SetCallbacks(vt.Callbacks{
		CursorVisibility: func(visible bool) { s.hidden = !visible },
		AltScreen:        func(on bool) { s.setMode(ansi.DECMode(1049), on) },
		EnableMode:       func(m ansi.Mode) { s.setMode(m, true) },
		DisableMode:      func(m ansi.Mode) { s.setMode(m, false) },
	})
	reply := func(query int, f func(ansi.Params) string) {
		e.RegisterCsiHandler(query, func(p ansi.Params) bool {
			s.replies = append(s.replies, f(p)...)
			return true
		})
	}
	reply('c', func(ansi.Params) string { return "\x1b[?62;22c" })
	reply(ansi.Command('>', 0, 'c'), func(ansi.Params) string { return "\x1b[>1;10;0c" })
	reply(ansi.Command('?', 0, 'n'), func(ansi.Params) string { return "" })
	reply('n', s.replyStatus)
	reply(ansi.Command('?', '$', 'p'), func(p ansi.Params) string {
		n, _, _ := p.Param(0, 0)
		return fmt.Sprintf("\x1b[?%d;0$y", n) // mode not recognised
	})
	e.RegisterCsiHandler('J', s.eraseScreen)
	e.RegisterCsiHandler('u', func(ansi.Params) bool { // the emulator knows only CSI s, which saves the cursor
		e.WriteString("\x1b8")
		return true
	})
	s.clipCounts(e)
	s.emulator, s.repeats = e, s.cols*s.rows
}

const (
	maxMode        = 9999 // no mode is above it; the emulator keeps every number that it was told
	repeatsPerByte = 32   // how much REP may draw for each byte of output, after a screenful that may come at once
)

// clipCounts has the numbers of control sequences lowered to what makes a difference on this screen. The emulator would
// believe any: it would draw a character 999999999 times, or scroll in a region of as many lines.
func (s *Screen) clipCounts(e *vt.Emulator) {
	clip := func(command int, limit func() int) {
		e.RegisterCsiHandler(command, func(p ansi.Params) bool { // called before the handlers that are registered already
			for i := range p {
				if most := limit(); p[i].Param(0) > most {
					p[i] = ansi.Param(most)
				}
			}
			return false // they carry out the sequence
		})
	}
	for _, command := range "ABEFLMSTder" {
		clip(int(command), func() int { return s.rows })
	}
	for _, command := range "@CDGIPXZ`as" {
		clip(int(command), func() int { return s.cols })
	}
	for _, command := range "hl" {
		clip(int(command), func() int { return maxMode })
		clip(ansi.Command('?', 0, byte(command)), func() int { return maxMode })
	}
	e.RegisterCsiHandler('b', func(p ansi.Params) bool {
		if len(p) > 0 {
			n := min(p[0].Param(1), s.repeats)
			p[0], s.repeats = ansi.Param(n), s.repeats-n
		}
		return false
	})
}

// replyStatus replies to a device status report.
func (s *Screen) replyStatus(p ansi.Params) string {
	switch n, _, _ := p.Param(0, 0); n {
	case 5:
		return "\x1b[0n"
	case 6:
		x, y := s.Cursor()
		return fmt.Sprintf("\x1b[%d;%dR", y+1, x+1)
	}
	return ""
}

// eraseScreen handles CSI 2 J, where the emulator would scroll the screen into the scrollback, and CSI 3 J, where it
// would erase not only the scrollback.
func (s *Screen) eraseScreen(p ansi.Params) bool {
	n, _, _ := p.Param(0, 0)
	switch n {
	case 2:
		for y := range s.rows {
			for x := range s.cols {
				s.emulator.SetCell(x, y, nil)
			}
		}
	case 3:
		s.emulator.ClearScrollback()
	}
	return n == 2 || n == 3
}

func (s *Screen) setMode(m ansi.Mode, on bool) {
	if _, isPrivate := m.(ansi.DECMode); !isPrivate {
		return
	}
	if m.Mode() == 7 {
		s.noWrap = !on
	}
	delete(s.modes, m.Mode())
	if on {
		s.modes[m.Mode()] = true
	}
}

// Write draws a program's output. It never fails.
func (s *Screen) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(piece, len(rest))
		if at := bytes.LastIndexFunc(rest[:n], isControlOrBlank); n < len(rest) && at > 0 {
			n = at // no joined characters are parted
		}
		s.feed(s.wholeRunes(s.withoutStrings(rest[:n])))
		rest = rest[n:]
	}
	if len(p) > 0 {
		s.version++
	}
	return len(p), nil
}

func isControlOrBlank(r rune) bool { return r <= ' ' }

// wholeRunes keeps back an incomplete rune until its rest comes, replaces invalid bytes, and leaves out the 8-bit
// controls and U+FE0E.
func (s *Screen) wholeRunes(p []byte) []byte {
	p = append(s.partialRune, p...)
	end := len(p)
	for i := max(end-utf8.UTFMax, 0); i < end; i++ {
		if utf8.RuneStart(p[i]) && !utf8.FullRune(p[i:]) {
			end = i
		}
	}
	s.partialRune = bytes.Clone(p[end:])
	p = bytes.ToValidUTF8(p[:end], []byte("\ufffd"))
	p = bytes.ReplaceAll(p, []byte("\ufe0e"), nil)
	if bytes.IndexByte(p, leadsC1) < 0 {
		return p
	}
	return bytes.Map(func(r rune) rune {
		if r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, p)
}

func (s *Screen) feed(p []byte) {
	defer s.recover()
	s.repeats = min(s.repeats+repeatsPerByte*len(p), s.cols*s.rows)
	s.emulator.Write(p)
}

// recover replaces an emulator that panicked, as it may after the screen became smaller.
func (s *Screen) recover() {
	if recover() == nil {
		return
	}
	s.version++
	alt := s.Modes().Alt
	s.create()
	if alt {
		s.emulator.WriteString("\x1b[?1049h")
	}
}

// statusOSC is the number of the OSC string in which a program says what it does: see [Report].
const statusOSC = "7501"

// maxString is how many bytes of a string are kept.
const maxString = 1 << 10

// stringPattern matches a string (OSC, DCS, APC, PM, SOS) and its end. BEL (of an OSC) and ESC \ end it; the byte 0x9C
// does not, because it is part of "✳". CAN and SUB cancel it, and so does another sequence, which is not removed. At
// the end of the text it also matches an incomplete string.
var stringPattern = regexp.MustCompile(`\x1b(?:\]([^\a\x1b\x18\x1a]*)|[P_^X][^\x1b\x18\x1a]*|$)` +
	`(\a|\x1b\\|[\x18\x1a]|\x1b?$|)`)

// withoutStrings removes the strings from a stream, wherever it is split, and carries out OSC strings.
func (s *Screen) withoutStrings(p []byte) (out []byte) {
	p = append(s.partialString, p...)
	s.partialString = nil
	for at := stringPattern.FindSubmatchIndex(p); at != nil; at = stringPattern.FindSubmatchIndex(p) {
		found, end := p[at[0]:at[4]], string(p[at[4]:at[5]])
		limit := maxString
		switch {
		case bytes.HasPrefix(found, []byte(statusPrefix)):
			limit = maxReport // one that long has no room for its end
		}
		found = found[:min(len(found), len("\x1b]")+limit)]
		out, p = append(out, p[:at[0]]...), p[at[1]:]
		isWhole := end == "\a" || end == "\x1b\\"
		switch {
		case isWhole && at[2] >= 0:
			s.runOSC(string(found[2:]), end)
		case len(p) == 0 && (end == "" || end == "\x1b"):
			s.partialString = append(bytes.Clone(found), end...)
		}
	}
	return append(out, p...)
}

// runOSC carries out an OSC string.
func (s *Screen) runOSC(text, end string) {
	number, rest, _ := strings.Cut(text, ";")
	switch number {
	case "0", "2":
		s.title = plain(rest)
	case "9":
		s.takeProgress(rest)
	case statusOSC:
		s.takeReport(text, rest)
	case "133":
		if isPrompt(rest) {
			s.status = s.status.AtPrompt()
		}
	case "10", "11":
		if rest == "?" {
			colour := map[string]string{"10": "d0d0/d0d0/d0d0", "11": "0000/0000/0000"}[number]
			s.replies = fmt.Appendf(s.replies, "\x1b]%s;rgb:%s%s", number, colour, end)
		}
	}
}

// isPrompt reports whether an OSC 133 with this text says that a shell shows its prompt.
func isPrompt(text string) bool { return text == "A" || strings.HasPrefix(text, "A;") }

// Resize sets the size. Text is not reflowed. On the main screen lines scroll out at the top to keep the cursor's line,
// as in other terminals.
func (s *Screen) Resize(cols, rows int) {
	x, y := s.Cursor()
	if over := y + 1 - max(rows, 1); over > 0 && !s.modes[1049] {
		s.feed(fmt.Appendf(nil, "\x1b[r\x1b[%dH%s\x1b[%d;%dH", s.rows, strings.Repeat("\n", over), y-over+1, x+1))
	}
	s.cols, s.rows = max(cols, 1), max(rows, 1)
	s.version++
	defer s.recover()
	s.emulator.Resize(s.cols, s.rows)
}

// Size returns the size in cells.
func (s *Screen) Size() (cols, rows int) { return s.cols, s.rows }

// Title returns the window title, without control characters.
func (s *Screen) Title() string { return s.title }

// takeReport carries out a status sequence.
func (s *Screen) takeReport(text, rest string) {
	if rest == "?" {
		s.replies = append(s.replies, statusPrefix+"?\x1b\\"...)
		return
	}
	isTooLong := len("\x1b]")+len(text)+len("\a") > maxReport
	r, ok := ParseReport(rest)
	hasRoom := true
	if ok && !isTooLong {
		s.status, hasRoom = s.status.with(r)
	}
	s.hasExcess = s.hasExcess || isTooLong || !hasRoom
}

// Status returns what the program says that it does; empty: nothing. hasExcess: some of it was dropped, because it was
// too long, or too much.
func (s *Screen) Status() (status Status, hasExcess bool) { return s.status, s.hasExcess }

// Cursor returns the cursor's position, from 0.
func (s *Screen) Cursor() (x, y int) {
	at := s.emulator.CursorPosition()
	return min(at.X, s.cols-1), min(at.Y, s.rows-1)
}

// Version increases when the program writes and when the size changes.
func (s *Screen) Version() uint64 { return s.version }

// Modes returns the current modes.
func (s *Screen) Modes() Modes {
	return Modes{
		Paste: s.modes[2004], Alt: s.modes[1049], Sync: s.modes[2026],
		AppCursor: s.modes[1], CursorHidden: s.hidden,
	}
}

// Replies returns the replies to queries since the last call, to be written to the program; nil: none.
func (s *Screen) Replies() []byte {
	r := s.replies
	s.replies = nil
	return r
}

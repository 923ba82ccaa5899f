// Package confedit edits people's configuration files in place: JSON with or
// without comments, TOML, and files of lines.
//
// An edit changes the bytes that it is about and no other: key order, comments,
// indentation, line ends, a byte order mark, duplicate keys and a missing last
// newline stay as they are. What does not parse is not edited. Every edit can
// be taken back byte for byte, as long as nobody else edited in between.
//
// Offsets are in bytes. Nothing here touches a file. The types are not for
// concurrent use.
package confedit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A Splice replaces Del bytes at At by Ins.
type Splice struct {
	At  int    `json:"at"`
	Del int    `json:"del,omitempty"`
	Ins string `json:"ins,omitempty"`
}

// An Edit is one change: splices that do not overlap, ascending, all in the
// offsets of the text before it.
type Edit []Splice

// Text is the content of a file while it is edited.
type Text struct {
	data []byte
	undo []Splice // applied one after the other, they give what New was given
}

// New begins with a file's content.
func New(data []byte) *Text { return &Text{data: bytes.Clone(data)} }

// Bytes is the content as it is now; not to be changed.
func (t *Text) Bytes() []byte { return t.data }

// Apply makes an edit.
func (t *Text) Apply(e Edit) {
	e = slices.Clone(e)
	slices.SortStableFunc(e, func(a, b Splice) int { return a.At - b.At })
	// From the end, so that the offsets of the rest hold.
	for i := len(e) - 1; i >= 0; i-- {
		s := e[i]
		was := string(t.data[s.At : s.At+s.Del])
		if was == s.Ins {
			continue
		}
		t.data = slices.Concat(t.data[:s.At], []byte(s.Ins), t.data[s.At+s.Del:])
		t.undo = append(t.undo, Splice{At: s.At, Del: len(s.Ins), Ins: was})
	}
}

// Undo are the splices that lead back, to be applied one after the other.
func (t *Text) Undo() []Splice {
	out := slices.Clone(t.undo)
	slices.Reverse(out)
	return out
}

// Revert applies what Undo gave to the text that it was given for. It fails
// where they do not fit.
func Revert(data []byte, undo []Splice) ([]byte, error) {
	for _, s := range undo {
		if s.At < 0 || s.Del < 0 || s.At > len(data) || s.Del > len(data)-s.At {
			return nil, fmt.Errorf("the record of the edit does not fit the file")
		}
		data = slices.Concat(data[:s.At], []byte(s.Ins), data[s.At+s.Del:])
	}
	return data, nil
}

// bom is how some editors begin a file.
const bom = "\uFEFF"

// Blank reports whether there is nothing in a file but white space and a byte
// order mark.
func Blank(data []byte) bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(data, []byte(bom)))) == 0
}

// newline is how the lines of a text end: as its first one does.
func newline(data []byte) string {
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// lineIndent is the white space that the line of an offset begins with.
func lineIndent(data []byte, at int) string {
	start := bytes.LastIndexByte(data[:at], '\n') + 1
	end := start
	for end < at && (data[end] == ' ' || data[end] == '\t') {
		end++
	}
	return string(data[start:end])
}

// position is an offset as people count: line and column, from 1.
func position(data []byte, at int) (line, col int) {
	at = min(at, len(data))
	line = 1 + bytes.Count(data[:at], []byte("\n"))
	start := bytes.LastIndexByte(data[:at], '\n') + 1
	col = 1 + len([]rune(strings.TrimPrefix(string(data[start:at]), bom)))
	return line, col
}

// A SyntaxError says where a file cannot be understood.
type SyntaxError struct {
	Line, Col int // from 1
	What      string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Col, e.What)
}

func syntaxError(data []byte, at int, format string, args ...any) error {
	line, col := position(data, at)
	return &SyntaxError{Line: line, Col: col, What: fmt.Sprintf(format, args...)}
}

package confedit

import (
	"bytes"
	"strings"
)

// AddLine puts a line at the end of a file of lines. It is nil where the line
// is there.
func AddLine(data []byte, line string) Edit {
	if _, _, ok := findLine(data, line); ok {
		return nil
	}
	nl := newline(data)
	text := line + nl
	if len(data) > 0 && data[len(data)-1] != '\n' {
		text = nl + text
	}
	return Edit{{At: len(data), Ins: text}}
}

// RemoveLine takes every such line out.
func RemoveLine(data []byte, line string) Edit {
	var e Edit
	for at := 0; ; {
		start, end, ok := findLine(data[at:], line)
		if !ok {
			return e
		}
		e = append(e, Splice{At: at + start, Del: end - start})
		at += end
	}
}

// findLine is where a line begins and ends, its line end included.
func findLine(data []byte, line string) (start, end int, ok bool) {
	for l := range bytes.Lines(data) {
		end = start + len(l)
		s := strings.TrimRight(string(l), "\r\n")
		if start == 0 {
			s = strings.TrimPrefix(s, bom)
		}
		if s == line {
			if start == 0 && bytes.HasPrefix(data, []byte(bom)) {
				start = len(bom)
			}
			return start, end, true
		}
		start = end
	}
	return 0, 0, false
}

// A Block is a run of whole lines in a file, between two lines that only its
// writer writes. What stands before and after it is somebody else's.
type Block struct {
	Begin, End string // lines, without their line ends
}

// Find is where the block stands, its markers and last line end included, and
// its text. Without the closing marker it ends with the file.
func (b Block) Find(data []byte) (start, end int, text string, ok bool) {
	start, at, ok := findLine(data, b.Begin)
	if !ok {
		return 0, 0, "", false
	}
	end = len(data)
	if _, e, ok := findLine(data[at:], b.End); ok {
		end = at + e
	}
	return start, end, string(data[start:end]), true
}

// Set writes the block: in its place, or at the end of the file. It is nil
// where the file has it so.
func (b Block) Set(data []byte, body string) Edit {
	nl := newline(data)
	text := strings.ReplaceAll(b.Begin+"\n"+body+b.End+"\n", "\n", nl)
	start, end, was, ok := b.Find(data)
	switch {
	case ok && was == text:
		return nil
	case ok:
		return Edit{{At: start, Del: end - start, Ins: text}}
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		text = nl + text
	}
	return Edit{{At: len(data), Ins: text}}
}

// Remove takes the block out. It is nil where there is none.
func (b Block) Remove(data []byte) Edit {
	start, end, _, ok := b.Find(data)
	if !ok {
		return nil
	}
	return Edit{{At: start, Del: end - start}}
}

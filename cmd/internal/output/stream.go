package output

import (
	"cmp"
	"io"
	"os"

	"golang.org/x/term"
)

// Streams are what a program reads and writes. A field that is nil, or no file, is no terminal and no pipe.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// file returns the file that a stream is, else nil, of which each method is an error.
func file(stream any) *os.File {
	f, _ := stream.(*os.File)
	return f
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	return file(stream) != nil && term.IsTerminal(int(file(stream).Fd()))
}

// Size is the size of a terminal, zero if it does not say; ok is false for other streams.
func Size(w io.Writer) (columns, rows int, ok bool) {
	if file(w) == nil {
		return 0, 0, false
	}
	columns, rows, err := term.GetSize(int(file(w).Fd()))
	return columns, rows, err == nil
}

// Width is the width of a terminal in columns, 80 if it does not say; 0: it is none.
func Width(w io.Writer) int {
	columns, _, ok := Size(w)
	if !ok {
		return 0
	}
	return cmp.Or(columns, 80)
}

// MakeRaw puts a terminal into raw mode: each key comes as it is, at once.
func MakeRaw(r io.Reader) (restore func(), err error) {
	fd := int(file(r).Fd())
	before, err := term.MakeRaw(fd)
	return func() { term.Restore(fd, before) }, err
}

package wire

import (
	"bufio"
	"io"
	"strings"
	"testing"
)

// A line that is too long is read to its end without being held, and those around it are whole.
func TestReadLine(t *testing.T) {
	r := bufio.NewReaderSize(strings.NewReader("one\n"+strings.Repeat("x", 100)+"\n\nfour"), 16)
	for i, want := range []struct {
		line string
		n    int64
		err  error
	}{{"one\n", 4, nil}, {"", 101, nil}, {"\n", 1, nil}, {"four", 4, io.EOF}, {"", 0, io.EOF}} {
		line, n, err := ReadLine(r, 20)
		if string(line) != want.line || n != want.n || err != want.err || (n > 20) != (line == nil && n > 0) {
			t.Errorf("%d: %q, %d, %v", i, line, n, err)
		}
	}
}

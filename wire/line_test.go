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

// A program that uses the package with a length that is too short does not make it panic.
func TestOddArguments(t *testing.T) {
	for n := -1; n < 6; n++ {
		for _, s := range []string{"", "abcdefg", "äöü\xff\xff"} {
			if a, b := Clip(s, n), ClipStart(s, n); len(a) > max(n, 0) || len(b) > max(n, 0) {
				t.Errorf("%q, %d: %q, %q", s, n, a, b)
			}
		}
		ID("x").Short(n)
	}
}

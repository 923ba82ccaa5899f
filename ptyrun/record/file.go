package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const keptFiles = 5 // beside the newest

// next rotates the files and begins a new one. On an error the old one goes on.
func (w *Writer) next() error {
	if err := rotate(w.options.Path); err != nil {
		return err
	}
	fresh, err := os.OpenFile(w.options.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	fresh.Chmod(0o600) // whatever the umask
	w.file.Close()     // at first there is none
	w.file, w.whole = fresh, 0
	return nil
}

// write writes lines. Where it fails nothing of them stays in the file, so that it ends with a whole event.
func (w *Writer) write(l lines) error {
	if len(l.text) == 0 {
		return nil
	}
	n, err := w.file.Write(l.text)
	if err != nil {
		w.file.Truncate(w.whole)
		return err
	}
	w.whole += int64(n)
	w.written = l.last
	return nil
}

func quote(s string) []byte {
	text, _ := json.Marshal(strings.ToValidUTF8(s, "\uFFFD")) // of a string: never an error
	return text
}

// rotate moves each file of a recording one number up; the oldest is overwritten.
func rotate(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for n := keptFiles - 1; n > 0; n-- {
		err := os.Rename(numbered(path, n), numbered(path, n+1))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Rename(path, numbered(path, 1))
}

// numbered is the path of a rotated file: screen.1.cast.
func numbered(path string, n int) string {
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + "." + strconv.Itoa(n) + ext
}

// cause is an error without the path, with which the recording's user tells it.
func cause(err error) error {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err
}

func sizeText(cols, rows int) []byte { return fmt.Appendf(nil, "%dx%d", cols, rows) }

// splitRune cuts off the beginning of a rune at the end of p.
func splitRune(p []byte) (whole, rest []byte) {
	for n := 1; n <= min(utf8.UTFMax-1, len(p)); n++ {
		last := p[len(p)-n:]
		if utf8.RuneStart(last[0]) && !utf8.FullRune(last) {
			return p[:len(p)-n], bytes.Clone(last)
		}
	}
	return p, nil
}

// tornSequence is the beginning of an escape sequence whose end has not come. (x/ansi would take one for
// ended in the middle of "✳", with which Claude Code begins its titles.)
var tornSequence = regexp.MustCompile(`\x1b(?:\[[ -?]*|[]PX^_][^\a\x1b]*\x1b?)?$`)

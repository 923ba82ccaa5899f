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
	"time"
	"unicode/utf8"
)

const (
	maxBuffer = 64 << 10 // bytes of lines that wait in memory
	keptFiles = 5        // beside the newest
)

// A file is the newest file of a recording, and whole lines that are not yet in it. The Writer's goroutine
// owns it.
type file struct {
	options Options
	started time.Time
	file    *os.File
	size    int64 // of what is in the file
	lines   []byte
	failed  error // why nothing is written until the next repaint

	last    int64 // when the last event was, in milliseconds since the start
	written int64 // the same of the last one that is in the file

	shown, typed []byte // the beginning of a rune whose rest has not come
}

// write records an event; after a failure only a repaint, which tries again.
func (f *file) write(e event) {
	if e.code == repaint {
		f.repaint(e)
		return
	}
	if f.failed != nil {
		return
	}
	switch e.code {
	case output:
		e.data, f.shown = splitRune(append(f.shown, e.data...))
	case input:
		e.data, f.typed = splitRune(append(f.typed, e.data...))
	}
	f.add(e)
	if len(f.lines) >= maxBuffer {
		f.flush()
	}
}

// repaint begins the next file where this one is full, and goes on after a gap.
func (f *file) repaint(e event) {
	why := f.failed
	if why == nil && e.gap {
		why = errSlowDisk
	}
	if why == nil && !f.isFull() {
		return // it was asked for twice
	}
	f.failed, f.shown, f.typed = nil, nil, nil
	if f.isFull() {
		f.flush()
		if f.failed == nil {
			f.failed = f.next(e.at, e.cols, e.rows)
		}
	} else if f.size == 0 {
		f.addHeader(e.at, e.cols, e.rows) // the first one was not written
	}
	if f.failed != nil {
		return
	}
	if why != nil {
		f.add(event{code: marker, at: e.at, data: fmt.Appendf(nil, "recording was interrupted: %v", why)})
		f.add(event{code: resize, at: e.at, data: sizeText(e.cols, e.rows)})
	}
	f.add(event{code: output, at: e.at, data: e.data})
	f.flush()
}

// add puts an event behind the lines.
func (f *file) add(e event) {
	if len(e.data) == 0 {
		return
	}
	at := max(f.last, e.at)
	pause := at - f.last
	f.last = at
	f.lines = fmt.Appendf(f.lines, "[%d.%03d,%q,%s]\n", pause/1000, pause%1000, string(e.code), quote(string(e.data)))
}

// addHeader puts the first line of a file, which begins at that time, behind the lines.
func (f *file) addHeader(at int64, cols, rows int) {
	f.last = max(f.last, at)
	began := f.started.Add(time.Duration(f.last) * time.Millisecond).Unix()
	f.lines = fmt.Appendf(f.lines, `{"version":3,"term":{"cols":%d,"rows":%d,"type":"xterm-256color"},"timestamp":%d,"command":%s,"title":%s}`+"\n",
		cols, rows, began, quote(f.options.Command), quote(f.options.Title))
}

func quote(s string) []byte {
	text, _ := json.Marshal(strings.ToValidUTF8(s, "\uFFFD")) // of a string: never an error
	return text
}

// flush writes the lines. Where it fails nothing of them stays in the file, so that it ends with a whole
// event.
func (f *file) flush() {
	n, err := f.file.Write(f.lines)
	f.lines = f.lines[:0]
	if err == nil {
		f.size += int64(n)
		f.written = f.last
		return
	}
	f.failed, f.last = cause(err), f.written
	f.file.Truncate(f.size)
}

// isFull reports whether the next file is due.
func (f *file) isFull() bool { return f.size+int64(len(f.lines)) >= f.options.MaxSize }

// next rotates the files and begins a new one. On an error the old one goes on.
func (f *file) next(at int64, cols, rows int) error {
	if err := rotate(f.options.Path); err != nil {
		return err
	}
	fresh, err := os.OpenFile(f.options.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	f.close()
	f.file, f.size = fresh, 0
	f.addHeader(at, cols, rows)
	f.flush()
	return nil
}

func (f *file) close() {
	if f.file != nil {
		f.file.Close()
	}
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

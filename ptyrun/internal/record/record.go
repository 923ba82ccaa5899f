// Package record records an agent's terminal in asciicast v3 files, which asciinema plays.
//
// A recording is screen.cast and the older files screen.1.cast to screen.5.cast. Each can be played by itself:
//
//	{"version":3,"term":{"cols":120,"rows":30,"type":"xterm-256color"},"timestamp":1700000000}
//	[0.512,"o","hello\r\n"]
//
// The first line is the header. Every other line is an event: the seconds since the previous event, a code and a text.
// The codes are "o" output, "r" the new size as COLSxROWS, "m" a marker, "x" the program's exit code.
//
// What you may rely on:
//
//   - Intervals add up: what rounding to milliseconds takes from one is added to the next.
//   - Text is UTF-8. A rune in two pieces is recorded with the second; invalid bytes become U+FFFD.
//   - A file ends with a whole event. A new file, and what follows a gap, begins with a repaint of the screen.
//   - When the disk is full or hangs, events are dropped; Err and Failed say why, and a marker shows where events are missing.
//   - Only Create and Close wait for the disk: a goroutine writes.
//
// Begin with Create. It draws nothing and reads no recording.
package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
)

const (
	keptFiles  = 5 // older ones
	retryAfter = 5 * time.Second
)

// Options say what to record and where.
type Options struct {
	Path       string // of the newest file; a recording that exists there is rotated
	Cols, Rows int
	Command    string
	Title      string

	// Repaint returns what repaints the screen as it is after all previous Output; it is called by Output. Nil: nothing
	// is repainted.
	Repaint func() []byte

	// Failed is called once, with the reason, each time the recording stops, by the goroutine that writes. May be nil.
	Failed func(error)

	maxSize int64            // bytes, after which the next file is begun; 0: 10 MB
	now     func() time.Time // nil: time.Now
}

// A Writer records, for one goroutine.
type Writer struct {
	options       Options
	started       time.Time
	isMidSequence bool // the last output ended inside an escape sequence

	worker     loop.Worker
	lock       sync.Mutex
	jobs       int       // of the worker
	waiting    int       // bytes of text in them
	isSlow     bool      // there were too many
	isFull     bool      // the file, so that it needs a repaint
	mayGoOn    time.Time // when a gap needs one; zero: there is none
	repainting bool      // one is among the jobs
	err        error     // why events are missing

	// The rest is the worker's.

	now, lastEvent int64 // in milliseconds since started
	cols, rows     int
	partial        []byte // an incomplete rune

	file    *os.File
	size    int64     // of the file, which ends with a whole line
	isGap   bool      // events are dropped until the next repaint
	failed  error     // why events are missing; nil once the recording continues
	retryAt time.Time // after a gap began
}

// maxWaiting is how many bytes of text may wait for the disk.
const maxWaiting = 4 << 20

var errSlow = errors.New("the disk is too slow")

// do has the worker write what happens now. Of text it takes no more than maxWaiting.
func (w *Writer) do(size int, write func()) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.isSlow = w.isSlow || w.waiting+size > maxWaiting; w.isSlow && size > 0 {
		return
	}
	w.jobs, w.waiting = w.jobs+1, w.waiting+size
	at := w.elapsed()
	w.worker.Do(func() { w.write(at, size, write) })
}

// write writes what happened at a time, and notes what came of it.
func (w *Writer) write(at int64, size int, write func()) {
	w.lock.Lock()
	isSlow := w.isSlow
	w.lock.Unlock()
	if w.now = max(w.lastEvent, at); isSlow && !w.isGap {
		w.fail(errSlow)
	}
	write()
	w.lock.Lock()
	defer w.lock.Unlock()
	w.jobs, w.waiting = w.jobs-1, w.waiting-size
	w.isSlow = w.isSlow && w.jobs > 0
	w.isFull, w.mayGoOn, w.err = w.size >= w.options.maxSize && !w.isGap, w.retryAt, w.failed
}

type event struct {
	code string
	text []byte
}

// Codes of events.
const output, resize, marker, exit = "o", "r", "m", "x"

// Create begins a recording, and rotates one that exists at its path.
func Create(o Options) (*Writer, error) {
	o.maxSize = cmp.Or(o.maxSize, 10<<20)
	if o.now == nil {
		o.now = time.Now
	}
	w := &Writer{options: o, started: o.now(), cols: o.Cols, rows: o.Rows}
	if err := w.startFile(); err != nil {
		return nil, fmt.Errorf("record to %s: %w", o.Path, err)
	}
	return w, nil
}

// Output records the program's output. Call it before the screen gets that: see Options.Repaint.
func (w *Writer) Output(p []byte) {
	if !w.isMidSequence && w.needsRepaint() { // no file begins with the rest of a sequence
		var screen []byte
		if w.options.Repaint != nil {
			screen = w.options.Repaint()
		}
		w.do(0, func() {
			w.repaint(screen)
			w.lock.Lock()
			w.repainting, w.isFull, w.mayGoOn = false, false, time.Time{} // until it is known anew
			w.lock.Unlock()
		})
	}
	w.isMidSequence = tornSequence.Match(p[max(0, len(p)-256):])
	w.addOutput(p)
}

// needsRepaint reports whether the file is full, or a gap may end, and no repaint is on its way yet.
func (w *Writer) needsRepaint() bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	isOver := !w.mayGoOn.IsZero() && !w.options.now().Before(w.mayGoOn)
	needs := (w.isFull || isOver) && !w.repainting && !w.isSlow
	w.repainting = w.repainting || needs
	return needs
}

// repaint begins the next file if this one is full, and ends a gap.
func (w *Writer) repaint(screen []byte) {
	if w.size >= w.options.maxSize {
		if err := w.startFile(); err != nil {
			w.fail(err)
			return
		}
	}
	var events []event
	if w.isGap {
		w.isGap, w.retryAt, w.partial = false, time.Time{}, nil
		events = []event{{marker, fmt.Appendf(nil, "recording was interrupted: %v", w.failed)}, {resize, w.sizeText()}}
	}
	if screen != nil {
		events = append(events, event{output, screen})
	}
	w.add(events...)
}

// Resize records the terminal's new size.
func (w *Writer) Resize(cols, rows int) {
	w.do(0, func() {
		w.cols, w.rows = cols, rows
		w.add(event{resize, w.sizeText()})
	})
}

func (w *Writer) sizeText() []byte { return fmt.Appendf(nil, "%dx%d", w.cols, w.rows) }

// Marker records a label, which players show or skip.
func (w *Writer) Marker(label string) {
	w.do(len(label), func() { w.add(event{marker, []byte(label)}) })
}

// Exit records the program's exit code.
func (w *Writer) Exit(code int) {
	w.do(0, func() { w.add(event{exit, []byte(strconv.Itoa(code))}) })
}

// Err says why nothing is recorded now; nil: it is.
func (w *Writer) Err() error {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.isSlow {
		return errSlow
	}
	return w.err
}

// Close ends the recording.
func (w *Writer) Close() error {
	w.worker.Wait()
	if err := errors.Join(w.failed, w.file.Close()); err != nil {
		return fmt.Errorf("record to %s: %w", w.options.Path, err)
	}
	return nil
}

// addOutput adds output behind an incomplete rune, and keeps the one at its end.
func (w *Writer) addOutput(p []byte) {
	p = bytes.Clone(p)
	w.do(len(p), func() {
		var whole []byte
		if whole, w.partial = splitRune(append(w.partial, p...)); len(whole) > 0 {
			w.add(event{output, whole})
		}
	})
}

// add writes events that happen now, all of them or none.
func (w *Writer) add(events ...event) {
	if w.isGap {
		return
	}
	var lines []byte
	if w.size == 0 {
		lines = w.header()
	}
	pause := w.now - w.lastEvent
	for _, e := range events {
		lines = fmt.Appendf(lines, "[%d.%03d,%q,%s]\n", pause/1000, pause%1000, e.code, quote(string(e.text)))
		pause = 0
	}
	n, err := w.file.Write(lines)
	if err != nil {
		w.file.Truncate(w.size)
		w.fail(err)
		return
	}
	w.size += int64(n)
	w.lastEvent, w.failed = w.now, nil
}

func (w *Writer) elapsed() int64 { return w.options.now().Sub(w.started).Milliseconds() }

func (w *Writer) fail(err error) {
	for errors.Unwrap(err) != nil { // drop the path, which the caller names
		err = errors.Unwrap(err)
	}
	isNew := w.failed == nil
	w.failed, w.isGap, w.retryAt = err, true, w.options.now().Add(retryAfter)
	if isNew && w.options.Failed != nil {
		w.options.Failed(err)
	}
}

func (w *Writer) header() []byte {
	began := w.started.Add(time.Duration(w.lastEvent) * time.Millisecond).Unix()
	return fmt.Appendf(nil, `{"version":3,"term":{"cols":%d,"rows":%d,"type":"xterm-256color"},"timestamp":%d,"command":%s,"title":%s}`+"\n",
		w.cols, w.rows, began, quote(w.options.Command), quote(w.options.Title))
}

func quote(s string) []byte {
	text, _ := json.Marshal(strings.ToValidUTF8(s, "\uFFFD")) // a string: cannot fail
	return text
}

// startFile rotates the files and begins a new one. On an error the old one is kept in use.
func (w *Writer) startFile() error {
	if err := rotate(w.options.Path); err != nil {
		return err
	}
	dir, err := durable.Open(filepath.Dir(w.options.Path))
	if err != nil {
		return err
	}
	defer dir.Close()
	fresh, err := dir.OpenFile(filepath.Base(w.options.Path), os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	w.file.Close() // nil for the first file
	w.file, w.size, w.lastEvent = fresh, 0, w.now
	return nil
}

// rotate increments the number of each file of a recording, replacing the oldest.
func rotate(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil // or every retry on a full disk would rotate
	}
	for n := keptFiles; n > 0; n-- {
		from := numbered(path, n-1)
		if err := os.Rename(from, numbered(path, n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// numbered returns the path of a rotated file like screen.1.cast; 0: screen.cast itself.
func numbered(path string, n int) string {
	if n == 0 {
		return path
	}
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + "." + strconv.Itoa(n) + ext
}

// splitRune splits off an incomplete rune at the end of p.
func splitRune(p []byte) (whole, rest []byte) {
	for n := 1; n <= min(utf8.UTFMax-1, len(p)); n++ {
		last := p[len(p)-n:]
		if utf8.RuneStart(last[0]) && !utf8.FullRune(last) {
			return p[:len(p)-n], bytes.Clone(last)
		}
	}
	return p, nil
}

// tornSequence matches an incomplete escape sequence at the end. (x/ansi would end one in the middle of "✳", with which
// Claude Code's titles begin.)
var tornSequence = regexp.MustCompile(`\x1b(?:\[[ -?]*|[]PX^_][^\a\x1b]*\x1b?)?$`)

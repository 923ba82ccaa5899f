// Package record writes what an agent's terminal shows into asciicast v3 files, which asciinema plays.
//
// A recording is screen.cast and the files before it, screen.1.cast to screen.5.cast. Each can be played by itself:
//
//	{"version":3,"term":{"cols":120,"rows":30,"type":"xterm-256color"},"timestamp":1700000000}
//	[0.512,"o","hello\r\n"]
//
// The first line is the header. Each other line is an event: the seconds since the event before it, a code
// and a text. "o" was shown, "i" was typed, "r" is the terminal's new size as COLSxROWS, "m" is a marker,
// "x" is the program's exit code.
//
// What may be relied on:
//
//   - Intervals add up: what rounding to milliseconds takes from one is given to the next.
//   - Text is UTF-8. A rune whose bytes come in two pieces is recorded whole with the
//     second; bytes that are no UTF-8 become U+FFFD.
//   - A file ends with a whole event. A new one, and what follows a gap, begins with what repaints the screen.
//   - Recording never blocks the terminal. Where the disk is slow or full, events are
//     left out; Err and Failed say why, and a marker stands where events are missing.
//   - An event is in the file within a second.
package record

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	maxBuffer  = 64 << 10 // bytes of lines, from which on they are written at once
	maxWaiting = 16 << 20 // bytes of lines that wait for the disk
	maxText    = 16 << 10 // bytes of an event's text
	flushAfter = time.Second
	retryAfter = 5 * time.Second
	closeWait  = 5 * time.Second // Close waits no longer for the disk
)

var errSlowDisk = errors.New("the disk is too slow")

// Options say what to record, and where.
type Options struct {
	Path       string // of the newest file; an older recording there is rotated away
	Cols, Rows int
	Command    string
	Title      string
	MaxSize    int64 // of a file in bytes, at which the next is begun; 0: 10 MB

	// Repaint returns what makes a terminal show the screen as it is after everything that was given to
	// Output before. Output calls it. Nil: nothing is repainted.
	Repaint func() []byte

	// Failed is told why recording has stopped. It must not wait, nor call the Writer. Nil: nobody is told.
	Failed func(error)

	Now func() time.Time // nil: time.Now
}

// A Writer records. It is for one goroutine; another writes the lines when they are due.
type Writer struct {
	options Options
	started time.Time
	flushes *time.Timer

	lock         sync.Mutex // of all below; held for an instant
	cols, rows   int
	midSequence  bool   // the last output ended inside an escape sequence
	shown, typed []byte // the beginning of a rune whose rest has not come
	full         *lines // what is left for a file that is full, while the others go into the next; nil: it is not
	lines        lines
	size         int64     // of the file
	failed       error     // why something is missing, until the recording goes on
	isGap        bool      // events are left out until the next repaint
	retryAt      time.Time // where writing has failed
	closed       bool

	disk    sync.Mutex // of all below; taken before lock
	file    *os.File
	whole   int64 // how much of it is whole lines
	written int64 // when the last event in it was
}

// lines are whole ones that are not in a file yet.
type lines struct {
	text []byte
	last int64 // when the last event was, in milliseconds since the start
}

// The codes of events.
const (
	output = 'o'
	input  = 'i'
	resize = 'r'
	marker = 'm'
	exit   = 'x'
)

// Create begins a recording, and rotates away what is at its path.
func Create(o Options) (*Writer, error) {
	if o.MaxSize <= 0 {
		o.MaxSize = 10 << 20
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Writer{options: o, started: o.Now(), cols: o.Cols, rows: o.Rows}
	w.flushes = time.AfterFunc(flushAfter, w.flush)
	if err := w.next(); err != nil {
		return nil, fmt.Errorf("record to %s: %w", o.Path, err)
	}
	w.addHeader()
	w.flush()
	return w, nil
}

// Output records what the program showed. It is called before the screen takes that in: see Repaint.
func (w *Writer) Output(p []byte) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if !w.midSequence && w.needsRepaint() { // a file does not begin with the rest of a sequence
		w.repaint()
	}
	w.midSequence = tornSequence.Match(p[max(0, len(p)-256):])
	w.addText(output, &w.shown, p)
}

// needsRepaint reports whether the next file is due, or the end of a gap.
func (w *Writer) needsRepaint() bool {
	switch {
	case !w.isGap:
		return w.isFull() && w.full == nil
	case w.failed == errSlowDisk:
		return len(w.lines.text) < maxWaiting/2
	}
	return !w.options.Now().Before(w.retryAt)
}

func (w *Writer) isFull() bool { return w.size+int64(len(w.lines.text)) >= w.options.MaxSize }

// repaint begins the next file where this one is full, and goes on after a gap.
func (w *Writer) repaint() {
	wasGap := w.isGap
	w.isGap = false
	if w.isFull() && w.full == nil {
		full := w.lines
		w.full, w.lines.text, w.size = &full, nil, 0
		w.flushes.Reset(0)
	}
	if w.size == 0 && w.lines.text == nil { // that of the first file may not have been written
		w.addHeader()
	}
	if wasGap {
		w.shown, w.typed = nil, nil
		w.add(marker, fmt.Appendf(nil, "recording was interrupted: %v", w.failed))
		w.add(resize, sizeText(w.cols, w.rows))
	}
	if w.options.Repaint != nil {
		w.add(output, w.options.Repaint())
	}
}

// Input records what was typed.
func (w *Writer) Input(p []byte) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.addText(input, &w.typed, p)
}

// Resize records the terminal's new size.
func (w *Writer) Resize(cols, rows int) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.cols, w.rows = cols, rows
	w.add(resize, sizeText(cols, rows))
}

// Marker records a note, which players show or skip.
func (w *Writer) Marker(label string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.add(marker, []byte(label))
}

// Exit records the program's exit code.
func (w *Writer) Exit(code int) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.add(exit, []byte(strconv.Itoa(code)))
}

// Err is why nothing is recorded at this moment, nil where all is well.
func (w *Writer) Err() error {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.failed
}

// Close writes what waits and ends the recording.
func (w *Writer) Close() error {
	w.lock.Lock()
	w.closed = true
	w.lock.Unlock()
	w.flushes.Stop()
	ended := make(chan error, 1)
	go func() {
		w.flush()
		w.file.Close()
		ended <- w.Err()
	}()
	err := errSlowDisk
	select {
	case err = <-ended:
	case <-time.After(closeWait):
	}
	if err != nil {
		return fmt.Errorf("record to %s: %w", w.options.Path, err)
	}
	return nil
}

// addText adds output or input, in pieces if it is long. torn is the beginning of a rune before it, and then
// the one at its end.
func (w *Writer) addText(code byte, torn *[]byte, p []byte) {
	for piece := range slices.Chunk(p, maxText) {
		piece, *torn = splitRune(append(*torn, piece...))
		w.add(code, piece)
	}
}

// add puts an event behind the lines, or leaves it out where too much waits.
func (w *Writer) add(code byte, text []byte) {
	switch {
	case len(text) == 0 || w.closed || w.isGap:
		return
	case len(w.lines.text) >= maxWaiting:
		w.fail(errSlowDisk)
		return
	}
	pause := max(0, w.options.Now().Sub(w.started).Milliseconds()-w.lines.last)
	w.lines.last += pause
	w.addLine(fmt.Appendf(nil, "[%d.%03d,%q,%s]\n", pause/1000, pause%1000, string(code), quote(string(text))))
}

// addHeader adds the first line of a file, which begins now.
func (w *Writer) addHeader() {
	w.lines.last = max(w.lines.last, w.options.Now().Sub(w.started).Milliseconds())
	began := w.started.Add(time.Duration(w.lines.last) * time.Millisecond).Unix()
	w.addLine(fmt.Appendf(nil, `{"version":3,"term":{"cols":%d,"rows":%d,"type":"xterm-256color"},"timestamp":%d,"command":%s,"title":%s}`+"\n",
		w.cols, w.rows, began, quote(w.options.Command), quote(w.options.Title)))
}

func (w *Writer) addLine(line []byte) {
	before := len(w.lines.text)
	w.lines.text = append(w.lines.text, line...)
	switch now := len(w.lines.text); {
	case before < maxBuffer && now >= maxBuffer:
		w.flushes.Reset(0)
	case before == 0 && w.full == nil:
		w.flushes.Reset(flushAfter)
	}
}

func (w *Writer) fail(err error) {
	if w.failed == nil && w.options.Failed != nil {
		w.options.Failed(err)
	}
	w.failed, w.isGap = err, true
}

// flush writes what waits into its files. After an error all of it is left out.
func (w *Writer) flush() {
	w.disk.Lock()
	defer w.disk.Unlock()
	w.lock.Lock()
	full, rest := w.full, w.lines
	w.full, w.lines.text = nil, nil
	w.lock.Unlock()
	var err error
	if full != nil {
		if err = w.write(*full); err == nil {
			err = w.next()
		}
	}
	if err == nil {
		err = w.write(rest)
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if err != nil {
		w.full, w.lines = nil, lines{last: w.written}
		w.retryAt = w.options.Now().Add(retryAfter)
		w.fail(cause(err))
	} else if !w.isGap {
		w.failed = nil
	}
	if w.full == nil {
		w.size = w.whole
	}
}

// Package record writes what an agent's terminal shows into asciicast v3 files, which asciinema plays.
//
// A recording is screen.cast and the files before it, screen.1.cast to screen.5.cast. Each can be played by
// itself:
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
//   - Intervals add up: what rounding to milliseconds takes from one is given to the
//     next.
//   - Text is UTF-8. A rune whose bytes come in two pieces is recorded whole with the
//     second; bytes that are no UTF-8 become U+FFFD.
//   - A file ends with a whole event. A new one, and what follows a gap, begins with
//     what repaints the screen.
//   - Recording never blocks the terminal. Where the disk is slow or full, events are
//     left out; Err and Failed say why, and a marker stands where events are missing.
//   - An event is in the file within a second.
package record

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	maxWaiting = 1024     // events that wait for the disk
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

	// Failed is told why recording has stopped, in the Writer's own goroutine. Nil: nobody is told.
	Failed func(error)

	Now func() time.Time // nil: time.Now
}

// A Writer records. It is for one goroutine, and has one of its own, which ends with Close.
type Writer struct {
	options     Options
	started     time.Time
	cols, rows  int
	dropped     bool // events were left out since the last repaint
	midSequence bool // the last output ended inside an escape sequence
	closed      bool

	events       chan event
	ended        chan struct{}
	needsRepaint atomic.Bool           // the file is full, or writing is to be tried again
	failed       atomic.Pointer[error] // why nothing is written
}

// The codes of events.
const (
	output  = 'o'
	input   = 'i'
	resize  = 'r'
	marker  = 'm'
	exit    = 'x'
	repaint = 0 // in no file: what was on the screen when the rest was left out, or the file full
)

// An event is what the Writer's goroutine gets.
type event struct {
	code       byte
	at         int64 // milliseconds since the recording began
	data       []byte
	cols, rows int  // of a repaint
	gap        bool // events before this repaint were left out
}

// Create begins a recording, and rotates away what is at its path.
func Create(o Options) (*Writer, error) {
	if o.MaxSize <= 0 {
		o.MaxSize = 10 << 20
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Writer{
		options: o, started: o.Now(), cols: o.Cols, rows: o.Rows,
		events: make(chan event, maxWaiting), ended: make(chan struct{}),
	}
	f := &file{options: o, started: w.started}
	if err := f.next(0, o.Cols, o.Rows); err != nil {
		return nil, fmt.Errorf("record to %s: %w", o.Path, err)
	}
	go w.run(f)
	return w, nil
}

// Output records what the program showed. It is called before the screen takes that in: see Repaint.
func (w *Writer) Output(p []byte) {
	// A file does not begin with the rest of a sequence, and a gap does not end while the disk is still
	// behind.
	if (w.dropped || w.needsRepaint.Load()) && !w.midSequence && len(w.events) < maxWaiting/2 {
		e := event{code: repaint, cols: w.cols, rows: w.rows, gap: w.dropped}
		if w.options.Repaint != nil {
			e.data = w.options.Repaint()
		}
		w.dropped = false
		w.needsRepaint.Store(false)
		w.add(e)
	}
	w.midSequence = tornSequence.Match(p[max(0, len(p)-256):])
	w.addText(output, p)
}

// Input records what was typed.
func (w *Writer) Input(p []byte) { w.addText(input, p) }

// Resize records the terminal's new size.
func (w *Writer) Resize(cols, rows int) {
	w.cols, w.rows = cols, rows
	w.addText(resize, sizeText(cols, rows))
}

// Marker records a note, which players show or skip.
func (w *Writer) Marker(label string) { w.addText(marker, []byte(label)) }

// Exit records the program's exit code.
func (w *Writer) Exit(code int) { w.addText(exit, []byte(strconv.Itoa(code))) }

// Err is why nothing is recorded at this moment, nil where all is well.
func (w *Writer) Err() error {
	if failed := w.failed.Load(); failed != nil {
		return *failed
	}
	if w.dropped {
		return errSlowDisk
	}
	return nil
}

// Close writes what waits and ends the recording.
func (w *Writer) Close() error {
	if !w.closed {
		w.closed = true
		close(w.events)
	}
	err := errSlowDisk
	select {
	case <-w.ended:
		err = w.Err()
	case <-time.After(closeWait):
	}
	if err != nil {
		return fmt.Errorf("record to %s: %w", w.options.Path, err)
	}
	return nil
}

// addText queues a copy of p, in pieces if it is long.
func (w *Writer) addText(code byte, p []byte) {
	for piece := range slices.Chunk(p, maxText) {
		w.add(event{code: code, data: bytes.Clone(piece)})
	}
}

// add queues an event, or leaves it out where too many wait.
func (w *Writer) add(e event) {
	if w.closed || w.dropped {
		return
	}
	e.at = w.options.Now().Sub(w.started).Milliseconds()
	select {
	case w.events <- e:
	default:
		w.dropped = true
	}
}

// run writes events until Close, each within a second.
func (w *Writer) run(f *file) {
	defer close(w.ended)
	defer f.close()
	w.update(f.failed, false)
	due := time.After(flushAfter) // when to flush, or to try again; nil: nothing waits
	for {
		retry := false
		select {
		case e, ok := <-w.events:
			if !ok {
				f.flush()
				w.update(f.failed, false)
				return
			}
			if e.gap && w.options.Failed != nil {
				w.options.Failed(errSlowDisk)
			}
			f.write(e)
			if due == nil {
				due = time.After(flushAfter)
			}
		case <-due:
			due = nil
			f.flush()
			if retry = f.failed != nil; retry {
				due = time.After(retryAfter)
			}
		}
		w.update(f.failed, retry || f.isFull())
	}
}

// update tells the caller how the file is.
func (w *Writer) update(failed error, needsRepaint bool) {
	if needsRepaint {
		w.needsRepaint.Store(true)
	}
	if failed == nil {
		w.failed.Store(nil)
	} else if w.failed.Swap(&failed) == nil && w.options.Failed != nil {
		w.options.Failed(failed)
	}
}

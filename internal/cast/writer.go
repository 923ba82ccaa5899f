// Package cast records a terminal in asciicast v3 files and plays them.
//
// A recording is one file and those that it was rotated into, newest first
// screen.cast, screen.1.cast, screen.2.cast and so on. Each can be played by
// itself with asciinema:
//
//	{"version":3,"term":{"cols":120,"rows":30,"type":"xterm-256color"},"timestamp":1700000000}
//	[0.512, "o", "hello\r\n"]
//
// The first line is the header. Each other line is an event: seconds since the
// event before it, what it is, and text: "o" was shown, "i" was typed, "r" is the
// terminal's new size as COLSxROWS, "m" is a marker and "x" the program's exit
// code. A line with # in front is a comment.
//
// What may be relied on:
//
//   - Intervals add up: what rounding to milliseconds takes from one is given to
//     the next, over rotations too.
//   - Text is UTF-8. A rune whose bytes come in two pieces is recorded whole with
//     the second; bytes that are no UTF-8 become U+FFFD.
//   - A file ends at an event. A new one begins with what repaints the screen, and
//     is not begun in the middle of an escape sequence.
//   - Recording does not stop the terminal. Files are written by a goroutine of the
//     Writer's own (its only one, ended by Close); the caller waits for a disk at
//     most 100 ms, after that, and when the disk is full, what is shown is not
//     recorded. That is said once, and when there is room again the recording goes
//     on with a marker and a repaint.
//   - Everything is in the file a second later, or after Flush. An idle Writer has
//     no timer running.
//   - A reader passes over lines that are none, such as a last one that was torn.
package cast

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	chunkSize  = 256 << 10              // handed to the file at once
	chunkCount = 6                      // in memory at most
	flushCount = 8                      // calls of Flush that wait at most
	eventSize  = 32 << 10               // of text in an event at most
	stallWait  = 100 * time.Millisecond // for a chunk to be written when all are in use
	flushEvery = time.Second
	flushWait  = time.Second     // Flush waits no longer
	closeWait  = 5 * time.Second // nor Close
	retryFirst = time.Second     // after trouble; doubled
	retryLast  = 30 * time.Second
	quiet      = time.Minute // after an error no other is told, and retries stay slow
)

// Options say what to record, and where.
type Options struct {
	Path       string // of the newest file; an older recording there is rotated away
	Cols, Rows int
	Type       string // the terminal's, as in TERM; "": xterm-256color
	Command    string
	Title      string

	MaxSize int64 // of a file in bytes, at which the next is begun; 0: 10 MB
	Keep    int   // how many rotated files are kept; 0: 5

	Now func() time.Time // nil: time.Now; called from two goroutines

	// Repaint returns what makes a terminal show the screen as it is after
	// everything that was given to Output before. It is called by Output, in its
	// caller's goroutine, when a new file is begun and after a gap. Nil: nothing.
	Repaint func() []byte
}

// Writer records. Its methods may be called from several goroutines.
type Writer struct {
	o     Options
	began time.Time

	mu     sync.Mutex
	buf    []byte // whole events that are not yet handed over
	have   bool   // buf is one of the chunks
	fresh  bool   // buf begins a new file
	resume bool   // buf ends a gap
	size   int64  // of the file, with buf and what is on its way
	last   int64  // when the last event was, in milliseconds since began
	shown  tail
	typed  tail
	escape sequence
	closed bool

	gap     bool // nothing is recorded just now
	slow    bool // because the disk is slow, not broken
	wentOn  time.Time
	retryAt time.Time
	pause   time.Duration // before the next retry

	free   chan []byte
	chunks chan chunk
	dirty  chan struct{}
	ended  chan struct{}
	broken atomic.Bool // by the goroutine at an error, cleared when a gap is ended

	trouble trouble
	file    *os.File // the goroutine's, as are the following
	written int64
	deaf    bool
}

// chunk is what the goroutine gets.
type chunk struct {
	data   []byte
	token  bool // data goes back to free
	fresh  bool // into a new file
	resume bool // after a gap
	last   int64
	done   chan<- struct{}
}

// trouble is what the goroutine says to the callers.
type trouble struct {
	sync.Mutex
	err      error // not yet told
	cause    error // of the gap
	told     bool  // in this gap
	toldAt   time.Time
	needFile bool
	since    time.Time // of the gap
	last     int64     // when the last event was that is in the file
	size     int64     // of the file
}

// Create begins a recording, and rotates away what is at its path.
func Create(o Options) (*Writer, error) {
	if o.MaxSize <= 0 {
		o.MaxSize = 10 << 20
	}
	if o.Keep <= 0 {
		o.Keep = 5
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Type == "" {
		o.Type = "xterm-256color"
	}
	w := &Writer{
		o: o, began: o.Now(), pause: retryFirst,
		free:   make(chan []byte, chunkCount),
		chunks: make(chan chunk, chunkCount+flushCount),
		dirty:  make(chan struct{}, 1),
		ended:  make(chan struct{}),
	}
	for range chunkCount {
		w.free <- nil
	}
	head := w.head(nil)
	if err := w.turnOver(); err != nil {
		return nil, err
	}
	if _, err := w.file.Write(head); err != nil {
		w.file.Close()
		return nil, fmt.Errorf("record to %s: %w", o.Path, bare(err))
	}
	w.size = int64(len(head))
	w.written, w.trouble.size = w.size, w.size
	go w.run()
	return w, nil
}

// head appends the header of a file that begins at the last event.
func (w *Writer) head(b []byte) []byte {
	type term struct {
		Cols int    `json:"cols"`
		Rows int    `json:"rows"`
		Type string `json:"type"`
	}
	line, _ := json.Marshal(struct { // of strings and numbers: never an error
		Version   int    `json:"version"`
		Term      term   `json:"term"`
		Timestamp int64  `json:"timestamp"`
		Command   string `json:"command,omitempty"`
		Title     string `json:"title,omitempty"`
	}{
		3, term{w.o.Cols, w.o.Rows, w.o.Type},
		w.began.Add(time.Duration(w.last) * time.Millisecond).Unix(), w.o.Command, w.o.Title,
	})
	return append(append(b, line...), '\n')
}

// Output records what the program showed. An error says that recording has
// stopped, once; the recording goes on by itself when it can, so it is only for
// telling.
func (w *Writer) Output(p []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(p) == 0 || w.closed {
		return w.Err()
	}
	at := w.clock()
	if w.ready(at, true) {
		w.text('o', p, &w.shown, at)
	} else {
		w.shown.n = 0
	}
	w.escape.feed(p)
	return w.Err()
}

// Input records what was typed.
func (w *Writer) Input(p []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := w.clock(); w.ready(at, false) {
		w.text('i', p, &w.typed, at)
	}
}

// Resize records the terminal's new size.
func (w *Writer) Resize(cols, rows int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.o.Cols, w.o.Rows = cols, rows
	w.line('r', w.sizeText())
}

// Marker records a note of the caller's, which players show or pass over.
func (w *Writer) Marker(label string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line('m', label)
}

// Exit records the program's exit code.
func (w *Writer) Exit(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.complete()
	w.line('x', strconv.Itoa(code))
}

// Err is the error that stopped the recording, if Output has not told it: each
// trouble is told once.
func (w *Writer) Err() error {
	w.trouble.Lock()
	defer w.trouble.Unlock()
	err := w.trouble.err
	w.trouble.err = nil
	return err
}

// Flush puts everything into the file, in at most a second.
func (w *Writer) Flush() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	done := make(chan struct{})
	sent := true
	if w.have && len(w.buf) > 0 {
		w.handOver(done)
	} else if sent = len(w.chunks) < flushCount; sent {
		w.chunks <- chunk{done: done}
	}
	w.mu.Unlock()
	timer := time.NewTimer(flushWait)
	defer timer.Stop()
	if sent {
		select {
		case <-done:
			return w.Err()
		case <-timer.C:
		}
	}
	return fmt.Errorf("record to %s: the disk takes longer than %v", w.o.Path, flushWait)
}

// Close ends the recording.
func (w *Writer) Close() error {
	w.mu.Lock()
	if !w.closed {
		w.complete()
		w.closed = true
		if w.have && len(w.buf) > 0 {
			w.handOver(nil)
		}
		close(w.chunks)
	}
	w.mu.Unlock()
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-w.ended:
		return w.Err()
	case <-timer.C:
		return fmt.Errorf("record to %s: the disk takes longer than %v", w.o.Path, closeWait)
	}
}

// clock is the time in milliseconds since the recording began. It does not go
// backwards.
func (w *Writer) clock() int64 {
	return max(w.last, w.o.Now().Sub(w.began).Milliseconds())
}

func (w *Writer) sizeText() string {
	return strconv.Itoa(w.o.Cols) + "x" + strconv.Itoa(w.o.Rows)
}

// text records terminal bytes, as several events if they are many.
func (w *Writer) text(code byte, p []byte, t *tail, at int64) {
	for len(p) > 0 {
		n := min(len(p), eventSize)
		head, body := t.join(p[:n])
		p = p[n:]
		if len(head)+len(body) == 0 {
			continue
		}
		if !w.event(code, head, body, at) {
			t.n = 0
			return
		}
	}
}

// complete records the bytes of runes that will not come whole any more.
func (w *Writer) complete() {
	if at := w.clock(); w.shown.n > 0 && w.ready(at, false) {
		w.event('o', w.shown.take(), nil, at)
	}
	if at := w.clock(); w.typed.n > 0 && w.ready(at, false) {
		w.event('i', w.typed.take(), nil, at)
	}
}

// line records a short text.
func (w *Writer) line(code byte, text string) {
	if at := w.clock(); w.ready(at, false) {
		w.event(code, []byte(text), nil, at)
	}
}

// event appends an event. It is false when there is nowhere to put it.
func (w *Writer) event(code byte, head, body []byte, at int64) bool {
	if !w.room() {
		return false
	}
	if len(w.buf) == 0 {
		select {
		case w.dirty <- struct{}{}:
		default:
		}
	}
	before := len(w.buf)
	b := append(w.buf, '[')
	b = strconv.AppendInt(b, (at-w.last)/1000, 10)
	ms := (at - w.last) % 1000
	b = append(b, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
	b = append(b, `, "`...)
	b = append(b, code)
	b = append(b, `", "`...)
	b = appendEscaped(b, head)
	b = appendEscaped(b, body)
	w.buf = append(b, `"]`+"\n"...)
	w.last = at
	w.size += int64(len(w.buf) - before)
	if len(w.buf) >= chunkSize {
		w.handOver(nil)
	}
	return true
}

// room sees to it that there is a chunk to write to. If all are on their way to
// a disk that is slow, a gap begins.
func (w *Writer) room() bool {
	if w.have {
		return true
	}
	select {
	case w.buf = <-w.free:
	default:
		timer := time.NewTimer(stallWait)
		defer timer.Stop()
		select {
		case w.buf = <-w.free:
		case <-timer.C:
			w.tell(errors.New("the disk is too slow"))
			w.openGap(w.o.Now())
			w.slow = true
			return false
		}
	}
	w.have = true
	return true
}

// handOver gives the chunk to the goroutine. There is always a place for it:
// there are more than there are chunks.
func (w *Writer) handOver(done chan<- struct{}) {
	w.chunks <- chunk{w.buf, true, w.fresh, w.resume, w.last, done}
	w.buf, w.have, w.fresh, w.resume = nil, false, false, false
}

// ready says whether an event can be recorded now. Before output it ends a gap,
// or begins a new file, if it is time to.
func (w *Writer) ready(at int64, output bool) bool {
	if w.closed {
		return false
	}
	if w.broken.Load() && (!w.gap || w.slow) {
		w.dropBuffer()
		w.trouble.Lock()
		since := w.trouble.since
		w.trouble.Unlock()
		w.openGap(since)
		w.slow = false
	}
	if w.gap {
		return output && w.escape.settled() && !w.o.Now().Before(w.retryAt) && w.closeGap(at)
	}
	if output && w.size >= w.o.MaxSize && (w.escape.settled() || w.size >= w.o.MaxSize+w.o.MaxSize/4) {
		return w.nextFile()
	}
	return true
}

// nextFile begins a file with its header and the screen as of the last event.
func (w *Writer) nextFile() bool {
	if w.have {
		w.handOver(nil)
	}
	if !w.room() {
		return false
	}
	w.fresh = true
	w.buf = w.head(w.buf)
	w.size = int64(len(w.buf))
	return w.repaint(w.last)
}

func (w *Writer) repaint(at int64) bool {
	if w.o.Repaint == nil {
		return true
	}
	var whole tail
	w.text('o', w.o.Repaint(), &whole, at)
	return !w.gap
}

// openGap stops recording, since a moment that may have passed unnoticed.
func (w *Writer) openGap(since time.Time) {
	if since.Sub(w.wentOn) > quiet {
		w.pause = retryFirst
	}
	w.gap = true
	w.retryAt = since.Add(w.pause)
	w.pause = min(2*w.pause, retryLast)
	w.shown.n, w.typed.n = 0, 0
}

// dropBuffer gives up what cannot be written any more.
func (w *Writer) dropBuffer() {
	if w.have {
		w.free <- w.buf[:0]
		w.buf, w.have, w.fresh, w.resume = nil, false, false, false
	}
}

// closeGap takes the recording up again, with a marker, the terminal's size and
// the screen as it is. Whether it succeeded is known when it is written.
func (w *Writer) closeGap(at int64) bool {
	select {
	case w.buf = <-w.free:
		w.have = true
	default:
		w.openGap(w.o.Now())
		return false
	}
	w.trouble.Lock()
	cause := w.trouble.cause
	if !w.slow {
		w.fresh = w.trouble.needFile
		w.last, w.size = w.trouble.last, w.trouble.size
		w.broken.Store(false)
	}
	w.trouble.Unlock()
	w.resume = true
	w.gap, w.slow = false, false
	w.wentOn = w.o.Now()
	if w.fresh {
		w.last = at
		w.buf = w.head(w.buf)
		w.size = int64(len(w.buf))
	}
	at = max(at, w.last)
	ok := w.event('m', fmt.Appendf(nil, "recording was interrupted: %v", cause), nil, at) &&
		w.event('r', []byte(w.sizeText()), nil, at) && w.repaint(at)
	if ok && w.have {
		w.handOver(nil)
	}
	return ok
}

// tell leaves an error to be told, unless one was told already in this gap, or a
// moment before it.
func (w *Writer) tell(cause error) {
	w.trouble.Lock()
	defer w.trouble.Unlock()
	now := w.o.Now()
	w.trouble.cause, w.trouble.since = cause, now
	if w.trouble.told {
		return
	}
	w.trouble.told = true
	if w.trouble.toldAt.IsZero() || now.Sub(w.trouble.toldAt) > quiet {
		w.trouble.toldAt = now
		w.trouble.err = fmt.Errorf("record to %s: %w", w.o.Path, w.trouble.cause)
	}
}

// bare takes operation and path off an error that will be given its own.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}

//go:build linux || darwin || freebsd

package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

const (
	// pieceSize is what is written to the terminal at once. A program in canonical
	// mode loses what goes over 4095 bytes, and one that does not read takes about
	// 11 KiB before the kernel makes us wait: small pieces lose less of either.
	pieceSize = 1024

	// kernelHolds is more than the kernel keeps of a program's output (8 KiB in
	// the PTY and 4 KiB in its line discipline).
	kernelHolds = 64 << 10

	// jigglePause is between the two sizes of Jiggle. A program that is told of
	// both at once finds its size unchanged and does not repaint.
	jigglePause = 60 * time.Millisecond
)

// Read reads what the program shows. The end is io.EOF, whatever the system
// calls it.
func (c *Child) Read(p []byte) (int, error) {
	c.read.Store(true)
	n, err := c.master.Read(p)
	if n > 0 {
		return n, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if n := c.readRest(p); n > 0 {
			return n, nil
		}
		err = io.EOF
	}
	if err == nil { // len(p) is 0
		return 0, nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, unix.EIO) || errors.Is(err, os.ErrClosed) {
		c.drain.Do(func() { close(c.drained) })
		return 0, io.EOF
	}
	return 0, fmt.Errorf("read the terminal: %w", bare(err))
}

// readRest reads after the grace what the kernel still held at that time, for a
// reader that has been slow. Somebody who writes on without end gets no further
// than that.
func (c *Child) readRest(p []byte) int {
	p = p[:min(len(p), c.leftover)]
	if len(p) == 0 {
		return 0
	}
	n := 0
	c.raw.Control(func(fd uintptr) { n, _ = unix.Read(int(fd), p) })
	n = max(n, 0)
	c.leftover -= n
	return n
}

// Write types p. It returns os.ErrDeadlineExceeded after d, with the number of
// bytes that the terminal has taken by then: the program does not read. The last
// rune of these may have gone in part.
func (c *Child) Write(p []byte, d time.Duration) (int, error) {
	until := time.Now().Add(d)
	c.writing.Lock()
	defer c.writing.Unlock()
	done := 0
	for done < len(p) {
		// Asked anew for each piece: a terminal that nobody has open takes
		// everything and shows it to nobody.
		if c.over() {
			return done, fmt.Errorf("write to the terminal: %w", os.ErrProcessDone)
		}
		if err := c.master.SetWriteDeadline(until); err != nil {
			return done, fmt.Errorf("write to the terminal: %w", os.ErrProcessDone)
		}
		n, err := c.master.Write(p[done : done+piece(p[done:])])
		done += n
		if err != nil && (c.over() || errors.Is(err, os.ErrClosed) || errors.Is(err, unix.EIO)) {
			err = os.ErrProcessDone
		}
		if err != nil {
			return done, fmt.Errorf("write to the terminal: %w", bare(err))
		}
	}
	return done, nil
}

// piece is how much of p to write at once: not more than pieceSize, and neither
// a rune nor an escape sequence, such as a paste mark, torn.
func piece(p []byte) int {
	if len(p) <= pieceSize {
		return len(p)
	}
	n := pieceSize
	for back := 0; back < utf8.UTFMax && !utf8.RuneStart(p[n]); back++ {
		n--
	}
	if !utf8.RuneStart(p[n]) {
		n = pieceSize // no UTF-8
	}
	const longest = 16 // of the sequences that anybody types
	for i := n - 1; i >= n-longest; i-- {
		if p[i] == 0x1b {
			if !sequenceEnds(p[i:n]) {
				return i
			}
			break
		}
	}
	return n
}

// sequenceEnds says whether the sequence that p starts with ends in p.
func sequenceEnds(p []byte) bool {
	if len(p) < 2 {
		return false
	}
	if p[1] != '[' && p[1] != 'O' {
		return true
	}
	for _, b := range p[2:] {
		if b >= 0x40 && b <= 0x7e {
			return true
		}
	}
	return false
}

// window is the terminal's size and, between the two halves of a jiggle, the
// timer that puts it back.
type window struct {
	sync.Mutex
	size   pty.Winsize
	back   *time.Timer
	closed bool
}

func winsize(cols, rows int) (*pty.Winsize, error) {
	const most = 1<<16 - 1
	if cols < 1 || rows < 1 || cols > most || rows > most {
		return nil, fmt.Errorf("a terminal of %d columns and %d rows cannot be", cols, rows)
	}
	return &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}, nil
}

// Resize tells the program its terminal's new size.
func (c *Child) Resize(cols, rows int) error {
	size, err := winsize(cols, rows)
	if err != nil {
		return err
	}
	c.window.Lock()
	defer c.window.Unlock()
	c.window.settle()
	c.window.size = *size
	return c.setSize(*size)
}

// Jiggle makes the program repaint: it takes a row away and gives it back 60 ms
// later, without being waited for. The same size again would be no news.
func (c *Child) Jiggle() error {
	c.window.Lock()
	defer c.window.Unlock()
	if c.window.closed {
		return fmt.Errorf("resize the terminal: %w", os.ErrProcessDone)
	}
	c.window.settle()
	other := c.window.size
	if other.Rows > 1 {
		other.Rows--
	} else {
		other.Rows++
	}
	if err := c.setSize(other); err != nil {
		return err
	}
	var timer *time.Timer
	timer = time.AfterFunc(jigglePause, func() {
		c.window.Lock()
		defer c.window.Unlock()
		if c.window.back == timer {
			c.window.back = nil
			c.setSize(c.window.size)
		}
	})
	c.window.back = timer
	return nil
}

// settle forgets the half of a jiggle that is yet to come.
func (w *window) settle() {
	if w.back != nil {
		w.back.Stop()
		w.back = nil
	}
}

func (c *Child) setSize(s pty.Winsize) error {
	err := c.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: s.Rows, Col: s.Cols})
	})
	if err != nil {
		return fmt.Errorf("resize the terminal: %w", err)
	}
	return nil
}

// control calls an ioctl on the master, which Fd would put into blocking mode.
func (c *Child) control(call func(fd int) error) error {
	var err error
	if e := c.raw.Control(func(fd uintptr) { err = call(int(fd)) }); e != nil {
		return os.ErrProcessDone
	}
	return err
}

// Foreground is the process group that the terminal's keys go to, and the name
// of the program in it: the shell's while it waits for a command or runs one of
// its own, else the command's. It is 0 when the program has ended.
func (c *Child) Foreground() (pgid int, name string) {
	pgid = c.foreground()
	if pgid <= 0 {
		return 0, ""
	}
	if e, ok := look(pgid); ok && !e.zombie {
		return pgid, e.name
	}
	// The first of a pipeline may have ended: the last one is what is seen.
	all, _ := census()
	var last entry
	for _, e := range all {
		if e.pgid == pgid && !e.zombie && (e.start > last.start || e.start == last.start && e.pid > last.pid) {
			last = e
		}
	}
	return pgid, last.name
}

func (c *Child) foreground() (pgid int) {
	if c.over() {
		return 0
	}
	c.control(func(fd int) (err error) {
		pgid, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	return pgid
}

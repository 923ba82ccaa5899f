//go:build linux || darwin

package process

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

const (
	// readGrace is how long reads continue after the program's exit if another process keeps the terminal open.
	readGrace = 250 * time.Millisecond

	// maxChunk is how much is written at once. Canonical mode loses what is over 4095 bytes, and the kernel takes about
	// 11 KiB for a program that does not read before it blocks us: with small chunks less is lost.
	maxChunk = 1024
)

// openTerminal opens a PTY. creack/pty puts the master into blocking mode, in which deadlines have no effect and Close
// does not end a blocked Read or Write, so it returns a non-blocking duplicate.
func openTerminal(size *unix.Winsize) (master, tty *os.File, err error) {
	first, tty, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer first.Close()
	fd, err := unix.FcntlInt(first.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size), unix.SetNonblock(fd, true))
	}
	if err != nil {
		tty.Close()
		return nil, nil, err
	}
	// Let the kernel's line editing erase characters instead of bytes, if it can.
	if t, err := unix.IoctlGetTermios(int(tty.Fd()), getTermios); err == nil {
		t.Iflag |= unix.IUTF8
		unix.IoctlSetTermios(int(tty.Fd()), setTermios, t)
	}
	return os.NewFile(uintptr(fd), first.Name()), tty, nil
}

// output is what the program writes: to its terminal or into a pipe.
type output struct {
	file       *os.File
	drained    chan struct{} // closed when Read has returned io.EOF
	drainOnce  sync.Once
	unreadLeft int // bytes that may still be read after readGrace: what the kernel buffers
}

func newOutput(f *os.File) *output {
	return &output{file: f, drained: make(chan struct{}), unreadLeft: 64 << 10}
}

// Read reads the program's output. Its end is io.EOF, whatever the system returns.
func (o *output) Read(p []byte) (int, error) {
	n, err := o.file.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) && o.unreadLeft > 0 {
		// A slow reader gets what the kernel had buffered at the deadline, but not what is written later.
		n = readBuffered(o.file, p[:min(len(p), o.unreadLeft)])
		o.unreadLeft -= n
	}
	if n > 0 || err == nil {
		return n, nil
	}
	o.drainOnce.Do(func() { close(o.drained) })
	return 0, io.EOF
}

// readBuffered reads what is there, without waiting. A read with a short deadline may come too late to try at all.
func readBuffered(f *os.File, p []byte) (n int) {
	onFile(f, func(fd int) (err error) {
		for n, err = unix.Read(fd, p); err == unix.EINTR; n, err = unix.Read(fd, p) {
		}
		return err
	})
	return max(n, 0)
}

// Read reads what the program writes to its terminal.
func (c *Child) Read(p []byte) (int, error) { return c.outputs[0].Read(p) }

// openPipes gives the program three pipes. The files here are closed at its end, theirs when it has started.
func (c *Child) openPipes() (closeTheirs func(), err error) {
	var ours, theirs [3]*os.File
	closeAll := func(files [3]*os.File) {
		for _, f := range files {
			f.Close() // nil too
		}
	}
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours)
			closeAll(theirs)
			return nil, err
		}
		if ours[i], theirs[i] = r, w; i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	out, errors := newOutput(ours[1]), newOutput(ours[2])
	c.in, c.outputs = ours[0], []*output{out, errors}
	c.Stdin, c.Stdout, c.Stderr = ours[0], out, errors
	return func() { closeAll(theirs) }, nil
}

func (c *Child) closeFiles() {
	c.in.Close()
	for _, o := range c.outputs {
		o.file.Close()
	}
}

// Write types p. If the program does not read, Write returns os.ErrDeadlineExceeded after d, with the number of bytes
// that the terminal has taken.
func (c *Child) Write(p []byte, d time.Duration) (written int, err error) {
	until := time.Now().Add(d)
	for written < len(p) && err == nil {
		// Checked before each chunk: a terminal that no process has open takes everything.
		if isClosed(c.done) || c.in.SetWriteDeadline(until) != nil {
			err = os.ErrProcessDone
			break
		}
		n := 0
		n, err = c.in.Write(p[written : written+chunkSize(p[written:])])
		written += n
		if err != nil && (isClosed(c.done) || !errors.Is(err, os.ErrDeadlineExceeded)) {
			err = os.ErrProcessDone
		}
	}
	if err != nil {
		err = fmt.Errorf("write to the terminal: %w", err)
	}
	return written, err
}

// chunkSize returns how much of p to write at once: at most maxChunk, without tearing a rune or an escape sequence.
func chunkSize(p []byte) int {
	if len(p) <= maxChunk {
		return len(p)
	}
	n := maxChunk
	for n > maxChunk-utf8.UTFMax && !utf8.RuneStart(p[n]) {
		n--
	}
	const mark = 16 // longer than any typed sequence, such as a paste mark
	if esc := bytes.LastIndexByte(p[n-mark:n], 0x1b); esc >= 0 {
		n += esc - mark
	}
	return n
}

func winsize(cols, rows int) (unix.Winsize, error) {
	if cols < 1 || rows < 1 || cols > math.MaxUint16 || rows > math.MaxUint16 {
		return unix.Winsize{}, fmt.Errorf("a terminal cannot have %d columns and %d rows", cols, rows)
	}
	return unix.Winsize{Col: uint16(cols), Row: uint16(rows)}, nil
}

// Resize sets the terminal's size.
func (c *Child) Resize(cols, rows int) error {
	size, err := winsize(cols, rows)
	if err != nil {
		return err
	}
	return c.control(func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &size) })
}

// control makes a system call on the master.
func (c *Child) control(call func(fd int) error) error { return onFile(c.in, call) }

// onFile makes a system call on a file. Fd would put it into blocking mode.
func onFile(f *os.File, call func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err == nil {
		bad := raw.Control(func(fd uintptr) { err = call(int(fd)) })
		err = cmp.Or(err, bad)
	}
	return err
}

// HidesLines reports whether the terminal reads lines without echo, as for a password.
func (c *Child) HidesLines() (hides bool) {
	c.control(func(fd int) error {
		t, err := unix.IoctlGetTermios(fd, getTermios)
		hides = err == nil && t.Lflag&unix.ICANON != 0 && t.Lflag&unix.ECHO == 0
		return err
	})
	return hides
}

// Wake resumes the program if it is in the foreground: there is no shell above it to do that when it suspends itself.
// (Claude Code waits for SIGCONT even if the kernel refused to stop it.)
func (c *Child) Wake() {
	if group, _ := c.Foreground(); group == c.PID() {
		unix.Kill(-group, unix.SIGCONT)
	}
}

// Foreground returns the terminal's foreground process group and the name of its leader; 0 if the program has exited.
func (c *Child) Foreground() (pgid int, name string) {
	if isClosed(c.done) {
		return 0, ""
	}
	c.control(func(fd int) (err error) {
		pgid, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	leader, _ := readInfo(pgid)
	return pgid, leader.Name
}

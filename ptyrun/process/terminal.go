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
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

const (
	// readGrace is how long reads go on after the program's end, in case another process keeps the terminal open.
	readGrace = 250 * time.Millisecond

	// pieceSize is what is written to the terminal at once. A program in canonical mode loses what goes
	// over 4095 bytes, and one that does not read takes about 11 KiB before the kernel makes us wait: small
	// pieces lose less of either.
	maxChunk = 1024
)

// openTerminal opens a PTY. creack/pty puts the master into blocking mode, where deadlines do nothing and
// Close does not end a blocked Read or Write: so a duplicate is used, in non-blocking mode.
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
	// So that the kernel's line editing erases characters, not bytes, if it can.
	if t, err := unix.IoctlGetTermios(int(tty.Fd()), getTermios); err == nil {
		t.Iflag |= unix.IUTF8
		unix.IoctlSetTermios(int(tty.Fd()), setTermios, t)
	}
	return os.NewFile(uintptr(fd), first.Name()), tty, nil
}

// Read reads what the program shows. The end is io.EOF, whatever the system calls it.
func (c *Child) Read(p []byte) (int, error) {
	n, err := c.master.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) && c.unreadLeft > 0 {
		// A slow reader gets what the kernel held at the deadline. A process that writes on without end
		// gets no further than that.
		c.master.SetReadDeadline(time.Now().Add(time.Millisecond))
		n, err = c.master.Read(p[:min(len(p), c.unreadLeft)])
		c.unreadLeft -= n
	}
	if n > 0 || err == nil {
		return n, nil
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, unix.EIO) && !errors.Is(err, os.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, fmt.Errorf("read the terminal: %w", err)
	}
	c.drainOnce.Do(func() { close(c.drained) })
	return 0, io.EOF
}

// Write types p. If the program does not read, it returns os.ErrDeadlineExceeded after d, with the number
// of bytes that the terminal has taken by then.
func (c *Child) Write(p []byte, d time.Duration) (written int, err error) {
	until := time.Now().Add(d)
	for written < len(p) && err == nil {
		// Asked before each piece: a terminal that no process has open takes everything.
		if c.hasEnded() || c.master.SetWriteDeadline(until) != nil {
			err = os.ErrProcessDone
			break
		}
		n := 0
		n, err = c.master.Write(p[written : written+chunkSize(p[written:])])
		written += n
		if err != nil && (c.hasEnded() || !errors.Is(err, os.ErrDeadlineExceeded)) {
			err = os.ErrProcessDone
		}
	}
	if err != nil {
		err = fmt.Errorf("write to the terminal: %w", err)
	}
	return written, err
}

// piece is how much of p to write at once: not more than pieceSize, and neither a rune nor an escape sequence torn.
func chunkSize(p []byte) int {
	if len(p) <= maxChunk {
		return len(p)
	}
	n := maxChunk
	for n > maxChunk-utf8.UTFMax && !utf8.RuneStart(p[n]) {
		n--
	}
	const mark = 16 // longer than a sequence that is typed, such as the marks of a paste
	if esc := bytes.LastIndexByte(p[n-mark:n], 0x1b); esc >= 0 {
		n += esc - mark
	}
	return n
}

func winsize(cols, rows int) (unix.Winsize, error) {
	if cols < 1 || rows < 1 || cols > math.MaxUint16 || rows > math.MaxUint16 {
		return unix.Winsize{}, fmt.Errorf("a terminal of %d columns and %d rows is not possible", cols, rows)
	}
	return unix.Winsize{Col: uint16(cols), Row: uint16(rows)}, nil
}

// Resize tells the program its terminal's new size.
func (c *Child) Resize(cols, rows int) error {
	size, err := winsize(cols, rows)
	if err != nil {
		return err
	}
	return c.control(func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &size) })
}

// control calls the kernel with the master's number. Fd would put the master into blocking mode.
func (c *Child) control(call func(fd int) error) error {
	raw, err := c.master.SyscallConn()
	if err == nil {
		bad := raw.Control(func(fd uintptr) { err = call(int(fd)) })
		err = cmp.Or(err, bad)
	}
	return err
}

// HidesLines reports whether the terminal takes whole lines and does not show them, as for a password.
func (c *Child) HidesLines() (hides bool) {
	c.control(func(fd int) error {
		t, err := unix.IoctlGetTermios(fd, getTermios)
		hides = err == nil && t.Lflag&unix.ICANON != 0 && t.Lflag&unix.ECHO == 0
		return err
	})
	return hides
}

// Wake wakes the program if it has the terminal itself: without a shell above it nobody else does, once it has
// suspended itself. (Claude Code waits for that even where the kernel has refused to stop it.)
func (c *Child) Wake() {
	if group, _ := c.Foreground(); group == c.PID() {
		unix.Kill(-group, unix.SIGCONT)
	}
}

// Foreground is the process group that the terminal's keys go to, and the name of its first process. It is
// 0 when the program has ended.
func (c *Child) Foreground() (pgid int, name string) {
	if c.hasEnded() {
		return 0, ""
	}
	c.control(func(fd int) (err error) {
		pgid, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	leader, _ := readEntry(pgid)
	return pgid, leader.Name
}

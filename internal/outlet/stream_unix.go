//go:build unix

package outlet

import (
	"bytes"
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A stream is an output while pieces are written to it.
type stream struct {
	fd       int
	gauge    gauge // nil: what is written is taken
	paced    bool  // a pipe or socket: written as there is room
	deadline time.Time

	written int  // bytes
	taken   int  // bytes, from the first on
	empty   bool // nobody's bytes wait for the reader
	late    bool // patience is over
}

// A gauge tells how far the reader is. unread is how many bytes, at most, of
// all that was written were not read yet; gone, told only when that is not 0,
// that nobody will read them.
type gauge func(fd int) (unread int, gone bool, err error)

// deliver writes the pieces and returns how many of their bytes were taken.
func deliver(ctx context.Context, f *os.File, deadline time.Time, pieces []Piece) (taken int, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	// Not f.Write: that fails when somebody has set O_NONBLOCK on a file that
	// was not so before, and does not return while a pipe is full.
	e := conn.Control(func(fd uintptr) {
		s := &stream{fd: int(fd), deadline: deadline}
		var st unix.Stat_t
		if err = unix.Fstat(s.fd, &st); err != nil {
			return
		}
		kind := uint32(st.Mode) & unix.S_IFMT
		s.paced = kind == unix.S_IFIFO || kind == unix.S_IFSOCK
		s.gauge = gaugeOf(s.fd, kind)
		err = s.show(ctx, pieces)
		taken = s.taken
	})
	if e != nil {
		return 0, os.ErrClosed // the only error there is
	}
	return taken, err
}

func (s *stream) show(ctx context.Context, pieces []Piece) error {
	err := s.settle(ctx) // of what others have written
	if s.gauge == nil && !s.paced {
		pieces = joined(pieces) // write tells how much of it was taken
	}
	for _, p := range pieces {
		for rest := p.Text; len(rest) > 0 && err == nil; {
			part := rest
			if s.gauge != nil && !s.late {
				if i := bytes.IndexByte(rest, '\n'); i >= 0 {
					part = rest[:i+1]
				}
			}
			rest = rest[len(part):]
			if err = s.write(ctx, part); err == nil {
				err = s.settle(ctx)
			}
		}
	}
	if s.gauge == nil {
		s.taken = s.written
		return err
	}
	if s.taken == s.written && err == nil {
		return nil
	}
	gone, e := s.look()
	switch {
	case err != nil:
		return err
	case e != nil:
		return e
	case s.taken == s.written:
		return nil
	case gone:
		return unix.EPIPE
	}
	s.taken = s.written
	return nil
}

// together is the text of pieces that follow each other in memory, nil when they
// do not.
func together(pieces []Piece) []byte {
	text := pieces[0].Text
	for _, p := range pieces[1:] {
		end := len(text)
		if end == 0 || len(p.Text) == 0 || cap(text)-end < len(p.Text) || &text[:end+1][end] != &p.Text[0] {
			return nil
		}
		text = text[:end+len(p.Text)]
	}
	return text
}

// joined is the same text in few pieces.
func joined(pieces []Piece) (out []Piece) {
	const enough = 64 << 10
	for len(pieces) > 0 {
		n, size := 0, 0
		for n < len(pieces) && size < enough {
			size += len(pieces[n].Text)
			n++
		}
		text := together(pieces[:n])
		if text == nil {
			text = make([]byte, 0, size)
			for _, p := range pieces[:n] {
				text = append(text, p.Text...)
			}
		}
		out, pieces = append(out, Piece{Text: text}), pieces[n:]
	}
	return out
}

// look learns how far the reader is.
func (s *stream) look() (gone bool, err error) {
	unread, gone, err := s.gauge(s.fd)
	if err != nil {
		return false, err
	}
	s.empty = unread == 0
	s.taken = max(s.taken, s.written-unread)
	return gone, nil
}

// settle waits until the reader has read everything or patience is over.
func (s *stream) settle(ctx context.Context) error {
	if s.gauge == nil {
		s.taken = s.written
		return nil
	}
	if s.late {
		return nil
	}
	for p := (pause{}); ; {
		gone, err := s.look()
		switch {
		case err != nil:
			return err
		case s.empty:
			return nil
		case gone:
			return unix.EPIPE
		case ctx.Err() != nil:
			return ctx.Err()
		}
		left := time.Until(s.deadline)
		if left <= 0 {
			s.late = true
			return nil
		}
		p.wait(s.fd, left)
	}
}

// pipeBuf is what fits where poll says that there is room, and what is written
// in one piece beside other writers.
const pipeBuf = 4096

// write writes all of b, waiting for room without blocking in write.
func (s *stream) write(ctx context.Context, b []byte) error {
	for len(b) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := b
		if s.paced {
			part = b[:min(len(b), pipeBuf)]
			if !s.empty {
				if err := s.room(ctx); err != nil {
					return err
				}
			}
		}
		n, err := unix.Write(s.fd, part)
		if n > 0 {
			s.written += n
			s.empty = false
			b = b[n:]
		}
		switch {
		case err == unix.EAGAIN:
			if err := s.room(ctx); err != nil {
				return err
			}
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return io.ErrShortWrite
		}
	}
	return nil
}

// room waits until something can be written, or writing would say why not.
func (s *stream) room(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		// 50 ms: so soon is the end of ctx seen.
		fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(fds, 50)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n > 0 && fds[0].Revents&unix.POLLNVAL != 0:
			// macOS cannot poll some devices.
			time.Sleep(time.Millisecond)
			return nil
		case n > 0:
			return nil
		}
	}
}

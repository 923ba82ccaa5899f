package durable

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// regular returns a file that was opened with NoWait, unless it is not a regular one: then it is closed, and the error
// is ErrNotRegular (wrapped).
func regular(f *os.File, err error) (*os.File, error) {
	isSpecial := errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.EISDIR) // a socket, a FIFO to write to, a directory
	if failed, ok := errors.AsType[*fs.PathError](err); ok && isSpecial {
		failed.Err = ErrNotRegular
	}
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, cmp.Or(err, error(&fs.PathError{Op: "open", Path: f.Name(), Err: ErrNotRegular}))
	}
	return f, nil
}

// OpenIn opens a regular file as dir.OpenFile does, and never waits for what has taken its place.
func OpenIn(dir *os.Root, name string, flag int, perm fs.FileMode) (*os.File, error) {
	return regular(dir.OpenFile(name, flag|NoWait, perm))
}

// ReadIn reads a regular file of at most max bytes as OpenIn opens it.
func ReadIn(dir *os.Root, name string, max int64) ([]byte, error) {
	f, err := OpenIn(dir, name, os.O_RDONLY, 0)
	return readAll(f, err, max)
}

// OpenRegular opens a regular file anywhere, through links too, and never waits for what has taken its place.
func OpenRegular(path string, flag int) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	return regular(os.OpenFile(path, flag|NoWait, 0o600))
}

// ReadRegular reads a regular file anywhere, through links too, of at most max bytes.
func ReadRegular(path string, max int64) ([]byte, error) {
	f, err := OpenRegular(path, os.O_RDONLY)
	return readAll(f, err, max)
}

// readAll reads and closes a file of at most max bytes.
func readAll(f *os.File, err error, max int64) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	buf := bytes.NewBuffer(make([]byte, 0, min(info.Size(), max)+bytes.MinRead)) // it is read at once
	if _, err = buf.ReadFrom(io.LimitReader(f, max+1)); int64(buf.Len()) > max {
		return nil, &fs.PathError{Op: "read", Path: f.Name(), Err: ErrTooLarge}
	}
	return buf.Bytes(), err
}

// ReadUntil returns a reader of r that fails once the context has ended.
func ReadUntil(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

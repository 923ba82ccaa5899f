package ptyrun

import (
	"io"
	"sync"
)

// feed carries a program's output from the goroutine that reads it to the loop.
// Nothing is dropped: when the loop is behind by maxFeed, the program waits, as
// it would for a slow terminal.
type feed struct {
	mu    sync.Mutex
	room  sync.Cond
	buf   []byte
	spare []byte
	ended bool
	more  chan struct{} // there is something, or the end
}

const maxFeed = 1 << 20

func newFeed() *feed {
	f := &feed{more: make(chan struct{}, 1)}
	f.room.L = &f.mu
	return f
}

// read reads until the end. It is the only reader.
func (f *feed) read(r io.Reader) {
	p := make([]byte, 32<<10)
	for {
		n, err := r.Read(p)
		f.mu.Lock()
		for len(f.buf)+n > maxFeed && len(f.buf) > 0 {
			f.room.Wait()
		}
		f.buf = append(f.buf, p[:n]...)
		f.ended = err != nil
		f.mu.Unlock()
		select {
		case f.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// take is what came since. It is the caller's until the next take. ended: that
// was all.
func (f *feed) take() (p []byte, ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p = f.buf
	f.buf, f.spare = f.spare[:0], p
	f.room.Signal()
	return p, f.ended
}

// peek reports whether anything lies there, and whether nothing more will come.
func (f *feed) peek() (some, ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.buf) > 0, f.ended
}

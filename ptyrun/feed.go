package ptyrun

import (
	"io"
	"sync"
	"time"
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
	much  chan struct{} // there is so much that it should not wait, or the end
}

const (
	maxFeed  = 4 << 20
	muchFeed = 2 << 20
)

// A program that floods its terminal is heard less often. Each piece that the
// kernel gives, 4 KiB, would cost a change of goroutines; and of a large one the
// screen draws only what can still be seen.
const (
	flooding = 4 << 10               // so much at once is a flood
	pace     = 20 * time.Millisecond // from one look to the next
)

func newFeed() *feed {
	f := &feed{more: make(chan struct{}, 1), much: make(chan struct{}, 1)}
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
		much := len(f.buf) >= muchFeed || f.ended
		f.mu.Unlock()
		raise(f.more)
		if much {
			raise(f.much)
		}
		if err != nil {
			return
		}
	}
}

// raise signals on a channel that holds one signal.
func raise(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
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

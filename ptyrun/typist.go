package ptyrun

import (
	"os"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/child"
)

// typist writes to the program, in order, apart from the loop: a program that
// does not read blocks the writer, and nobody else.
type typist struct {
	child *child.Child

	mu     sync.Mutex
	queue  []write
	size   int
	closed bool
	more   chan struct{}
}

// write is something to be written. done hears how much was.
type write struct {
	data []byte
	done func(n int, err error)
}

const (
	maxQueued = 1 << 20         // of keys that wait for a program that does not read
	writeWait = 2 * time.Second // for it to read
)

func newTypist(c *child.Child) *typist {
	return &typist{child: c, more: make(chan struct{}, 1)}
}

// put queues keys. What a program leaves unread for too long is lost, as on any
// terminal.
func (t *typist) put(p []byte) { t.send(write{data: append([]byte(nil), p...)}) }

func (t *typist) send(w write) {
	t.mu.Lock()
	full := t.closed || t.size+len(w.data) > maxQueued
	if !full {
		t.queue = append(t.queue, w)
		t.size += len(w.data)
	}
	t.mu.Unlock()
	if full {
		if w.done != nil {
			go w.done(0, os.ErrDeadlineExceeded)
		}
		return
	}
	select {
	case t.more <- struct{}{}:
	default:
	}
}

func (t *typist) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	select {
	case t.more <- struct{}{}:
	default:
	}
}

func (t *typist) run() {
	for range t.more {
		for {
			t.mu.Lock()
			if len(t.queue) == 0 {
				closed := t.closed
				t.mu.Unlock()
				if closed {
					return
				}
				break
			}
			w := t.queue[0]
			t.queue = t.queue[1:]
			t.size -= len(w.data)
			t.mu.Unlock()
			n, err := t.child.Write(w.data, writeWait)
			if w.done != nil {
				w.done(n, err)
			}
		}
	}
}

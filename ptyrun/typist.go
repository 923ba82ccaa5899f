package ptyrun

import (
	"os"
	"time"

	"github.com/agentteammail/atm/ptyrun/process"
)

// typist writes to the program, in order, apart from the loop: a program that
// does not read blocks the writer, and nobody else.
type typist struct {
	queue[write]
	child *process.Child
	size  int // of what is queued; under the queue's lock
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

func newTypist(c *process.Child) *typist { return &typist{queue: newQueue[write](0), child: c} }

// put queues keys. What a program leaves unread for too long is lost, as on any
// terminal.
func (t *typist) put(p []byte) { t.send(write{data: append([]byte(nil), p...)}) }

func (t *typist) send(w write) {
	t.mu.Lock()
	full := t.closed || t.size+len(w.data) > maxQueued
	if !full {
		t.size += len(w.data)
	}
	t.mu.Unlock()
	switch {
	case !full:
		t.queue.put(w)
	case w.done != nil:
		go w.done(0, os.ErrDeadlineExceeded)
	}
}

func (t *typist) close() { t.shut() }

func (t *typist) run() {
	for w, ok := t.next(); ok; w, ok = t.next() {
		t.mu.Lock()
		t.size -= len(w.data)
		t.mu.Unlock()
		n, err := t.child.Write(w.data, writeWait)
		if w.done != nil {
			w.done(n, err)
		}
	}
}

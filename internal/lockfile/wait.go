package lockfile

import (
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A waiter is one blocking flock call, in a goroutine of its own. The call
// cannot be taken back: a waiter that is given up stays in the kernel's queue
// until its turn, unless the next wait for the same file carries it on. So a
// process that tries again and again for a lock that is held for days keeps one
// thread waiting, not thousands.
type waiter struct {
	file *file
	path string
	mode Mode
	at   entry // the file at the path just before it was opened

	done chan struct{} // closed when the call returned
	err  error         // the call's, once done is closed

	abandoned bool // under waiters
	returned  bool // under waiters
}

// waiters are those that were given up and still wait.
var waiters struct {
	sync.Mutex
	abandoned []*waiter
}

// wait waits in the kernel: errHeld when expired fires, ctx's error when it
// ends.
func (d *Dir) wait(ctx context.Context, expired <-chan time.Time, name string, m Mode) (*file, error) {
	at, err := d.look(name)
	if err != nil {
		return nil, err
	}
	if !at.regular() {
		return nil, d.irregular(name)
	}
	w := adopt(d.filePath(name), m, &at)
	if w == nil {
		f, err := d.openNew(name)
		if err != nil {
			return nil, err
		}
		w = &waiter{file: f, path: d.filePath(name), mode: m, at: at, done: make(chan struct{})}
		go w.run()
	}
	select {
	case <-w.done:
	case <-expired:
		if w.abandon() {
			return nil, errHeld
		}
	case <-ctx.Done():
		if !w.abandon() {
			w.file.drop()
		}
		return nil, ctx.Err()
	}
	if w.err != nil {
		w.file.drop()
		return nil, w.err
	}
	return w.file, nil
}

// adopt returns a waiter that was given up and waits for this very file.
func adopt(path string, m Mode, at *entry) *waiter {
	waiters.Lock()
	defer waiters.Unlock()
	for i, w := range waiters.abandoned {
		if w.mode == m && w.path == path && w.at.same(at) {
			w.abandoned = false
			waiters.abandoned = slices.Delete(waiters.abandoned, i, i+1)
			return w
		}
	}
	return nil
}

func (w *waiter) run() {
	var err error
	for {
		if err = w.file.wait(w.mode); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	waiters.Lock()
	w.err, w.returned = err, true
	late := w.abandoned
	if late {
		waiters.abandoned = slices.DeleteFunc(waiters.abandoned, func(o *waiter) bool { return o == w })
	}
	waiters.Unlock()
	if late {
		w.file.drop()
	}
	close(w.done)
}

// abandon gives the waiter up; false when the call had returned already.
func (w *waiter) abandon() bool {
	waiters.Lock()
	defer waiters.Unlock()
	if w.returned {
		return false
	}
	w.abandoned = true
	waiters.abandoned = append(waiters.abandoned, w)
	return true
}

package lockfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// A waiter is one blocking flock call, in a goroutine of its own. The call
// cannot be taken back: a waiter that is given up stays in the kernel's queue
// until its turn, unless the next wait for the same file carries it on. So a
// process that tries again and again for a lock that is held for days keeps one
// thread waiting, not thousands.
type waiter struct {
	file *flock.Flock
	mode Mode
	info fs.FileInfo // of the file at the path just before it was opened

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
func (d *Dir) wait(ctx context.Context, expired <-chan time.Time, name string, m Mode) (*flock.Flock, error) {
	info, err := d.locks.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, d.irregular(name)
	}
	w := adopt(d.filePath(name), m, info)
	if w == nil {
		w = &waiter{file: d.file(name), mode: m, info: info, done: make(chan struct{})}
		go w.run()
	}
	select {
	case <-w.done:
	case <-expired:
		if w.abandon() {
			return nil, errHeld
		}
	case <-ctx.Done():
		if !w.abandon() && w.err == nil {
			unlock(w.file)
		}
		return nil, ctx.Err()
	}
	if w.err != nil {
		return nil, w.err
	}
	return w.file, nil
}

// adopt returns a waiter that was given up and waits for this very file.
func adopt(path string, m Mode, info fs.FileInfo) *waiter {
	waiters.Lock()
	defer waiters.Unlock()
	for i, w := range waiters.abandoned {
		if w.mode == m && w.file.Path() == path && os.SameFile(w.info, info) {
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
		if w.mode == Exclusive {
			err = w.file.Lock()
		} else {
			err = w.file.RLock()
		}
		if !errors.Is(err, syscall.EINTR) {
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
	if late && err == nil {
		unlock(w.file)
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

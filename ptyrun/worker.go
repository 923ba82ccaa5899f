package ptyrun

import (
	"sync"
	"time"
)

// How other goroutines work with the loop: they have it call functions, and it gives them jobs.

// post makes the loop call f. It returns false if the loop has ended.
func (r *runner) post(f func()) bool {
	select {
	case r.calls <- f:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// call makes the loop call f, and returns when it has. It returns false if the loop has ended.
func (r *runner) call(f func()) bool {
	done := make(chan struct{})
	if !r.post(func() { f(); close(done) }) {
		return false
	}
	<-done
	return true
}

// inLoop makes the loop call f and returns its results.
func inLoop[T any](r *runner, f func() (T, error)) (out T, err error) {
	if !r.call(func() { out, err = f() }) {
		return out, errOver
	}
	return out, err
}

// poll asks the loop every readDelay whether a condition holds. It returns false after within, and when the loop has
// ended.
func (r *runner) poll(within time.Duration, holds func() bool) (isSo bool) {
	for until := time.Now().Add(within); time.Now().Before(until); time.Sleep(readDelay) {
		if !r.call(func() { isSo = holds() }) || isSo {
			return isSo
		}
	}
	return false
}

// worker runs jobs in order, beside the loop, because they wait for locks and disks.
type worker struct {
	lock sync.Mutex
	last chan struct{} // closed when the last job is done
}

func (w *worker) do(job func()) {
	w.lock.Lock()
	defer w.lock.Unlock()
	before, done := w.last, make(chan struct{})
	w.last = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		job()
	}()
}

// wait waits for all jobs so far.
func (w *worker) wait() {
	w.lock.Lock()
	last := w.last
	w.lock.Unlock()
	if last != nil {
		<-last
	}
}

// retry calls try until it succeeds. When the loop has ended it calls it once.
func (r *runner) retry(what string, try func() error) {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		isLast := r.ctx.Err() != nil
		err := try()
		if err == nil {
			return
		}
		r.Log.Error(what, "err", err)
		if isLast {
			return
		}
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
		}
	}
}

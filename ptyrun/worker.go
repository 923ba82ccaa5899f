package ptyrun

import (
	"slices"
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

// worker runs jobs in order, beside the loop, because they wait for locks and disks. While it has any it is one goroutine.
type worker struct {
	lock sync.Mutex
	jobs []*job // the first one is running
}

type job struct{ run func() }

func (w *worker) do(run func()) *job {
	w.lock.Lock()
	defer w.lock.Unlock()
	j := &job{run}
	if w.jobs = append(w.jobs, j); len(w.jobs) == 1 {
		go w.run()
	}
	return j
}

// undo takes a job back, unless it has begun.
func (w *worker) undo(j *job) (isUndone bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	i := slices.Index(w.jobs, j)
	if i > 0 {
		w.jobs = slices.Delete(w.jobs, i, i+1)
	}
	return i > 0
}

func (w *worker) run() {
	w.lock.Lock()
	defer w.lock.Unlock()
	for len(w.jobs) > 0 {
		job := w.jobs[0]
		w.lock.Unlock()
		job.run()
		w.lock.Lock()
		w.jobs = slices.Delete(w.jobs, 0, 1)
	}
}

// wait waits for all jobs so far.
func (w *worker) wait() {
	done := make(chan struct{})
	w.do(func() { close(done) })
	<-done
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

// feed brings the loop what another goroutine has for it, in order. It holds a limited number of things: while it is full
// the other goroutine waits.
type feed[T any] struct {
	things chan T
	signal chan struct{} // there may be something to take
	isOver bool          // all was taken; the loop's
}

func newFeed[T any](size int) *feed[T] {
	return &feed[T]{things: make(chan T, size), signal: make(chan struct{}, 1)}
}

func (f *feed[T]) send(thing T) {
	f.things <- thing
	f.ring()
}

func (f *feed[T]) end() {
	close(f.things)
	f.ring()
}

func (f *feed[T]) ring() {
	select {
	case f.signal <- struct{}{}:
	default: // the loop has not heard the last ring yet
	}
}

// woken receives when there may be something to take. It is nil when all was taken.
func (f *feed[T]) woken() <-chan struct{} {
	if f.isOver {
		return nil
	}
	return f.signal
}

// take takes what is there, at most as much as the feed holds.
func (f *feed[T]) take(use func(T)) {
	for range cap(f.things) {
		select {
		case thing, isOpen := <-f.things:
			if !isOpen {
				f.isOver = true
				return
			}
			use(thing)
		default:
			return
		}
	}
	f.ring() // there may be more, if only the end
}

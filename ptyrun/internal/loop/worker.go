package loop

import (
	"slices"
	"sync"
)

// A Worker runs jobs in order, beside the loop, because they wait for locks and disks. While it has any it is one goroutine.
type Worker struct {
	lock sync.Mutex
	jobs []*Job // the first one is running
}

// A Job is what a Worker has to do.
type Job struct{ run func() }

// Do has the worker run a function behind those before.
func (w *Worker) Do(run func()) *Job {
	w.lock.Lock()
	defer w.lock.Unlock()
	j := &Job{run}
	if w.jobs = append(w.jobs, j); len(w.jobs) == 1 {
		go w.run()
	}
	return j
}

// Undo takes a job back, unless it has begun.
func (w *Worker) Undo(j *Job) (isUndone bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	i := slices.Index(w.jobs, j)
	if i > 0 {
		w.jobs = slices.Delete(w.jobs, i, i+1)
	}
	return i > 0
}

func (w *Worker) run() {
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

// Wait waits for all jobs so far.
func (w *Worker) Wait() {
	done := make(chan struct{})
	w.Do(func() { close(done) })
	<-done
}

// A Feed brings the loop what another goroutine has for it, in order. It holds a limited number of things: while it is full
// the other goroutine waits.
type Feed[T any] struct {
	things chan T
	signal chan struct{} // there may be something to take
	isOver bool          // all was taken; the loop's
}

// NewFeed returns a feed that holds so many things.
func NewFeed[T any](size int) *Feed[T] {
	return &Feed[T]{things: make(chan T, size), signal: make(chan struct{}, 1)}
}

// Send is called by the other goroutine, as is End after the last thing.
func (f *Feed[T]) Send(thing T) {
	f.things <- thing
	f.ring()
}

// End says that nothing more comes.
func (f *Feed[T]) End() {
	close(f.things)
	f.ring()
}

func (f *Feed[T]) ring() {
	select {
	case f.signal <- struct{}{}:
	default: // the loop has not heard the last ring yet
	}
}

// Woken receives when there may be something to take. It is nil when all was taken.
func (f *Feed[T]) Woken() <-chan struct{} {
	if f.isOver {
		return nil
	}
	return f.signal
}

// Take takes what is there, at most as much as the feed holds.
func (f *Feed[T]) Take(use func(T)) {
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

package ptyrun

import "sync"

// queue carries things to the one goroutine that takes them, in order. Who puts
// something in never waits.
type queue[T any] struct {
	most int // kept: the newest; 0: all
	more chan struct{}

	mu     sync.Mutex
	list   []T
	closed bool
}

func newQueue[T any](most int) queue[T] { return queue[T]{most: most, more: make(chan struct{}, 1)} }

func (q *queue[T]) put(x T) {
	q.mu.Lock()
	q.keep(append(q.list, x))
	q.mu.Unlock()
	raise(q.more)
}

// back puts things in before all others.
func (q *queue[T]) back(list []T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.keep(append(list, q.list...))
}

func (q *queue[T]) keep(list []T) {
	if q.most > 0 {
		list = list[max(0, len(list)-q.most):]
	}
	q.list = list
}

// shut says that nothing more comes.
func (q *queue[T]) shut() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	raise(q.more)
}

// all takes everything that lies there. closed: nothing more comes.
func (q *queue[T]) all() (list []T, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list, q.list = q.list, nil
	return list, q.closed
}

// next waits for the next thing; ok is false when nothing more comes.
func (q *queue[T]) next() (x T, ok bool) {
	for {
		q.mu.Lock()
		if len(q.list) > 0 {
			x, q.list = q.list[0], q.list[1:]
			q.mu.Unlock()
			return x, true
		}
		closed := q.closed
		q.mu.Unlock()
		if closed {
			return x, false
		}
		<-q.more
	}
}

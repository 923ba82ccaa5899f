package ptyrun

import "sync"

// clerk does what waits for locks and disks, one thing after the other, apart
// from the loop.
type clerk struct {
	mu     sync.Mutex
	queue  []func()
	closed bool
	more   chan struct{}
	done   chan struct{}
}

func openClerk() *clerk {
	c := &clerk{more: make(chan struct{}, 1), done: make(chan struct{})}
	go c.run()
	return c
}

func (c *clerk) do(f func()) {
	c.mu.Lock()
	c.queue = append(c.queue, f)
	c.mu.Unlock()
	c.wake()
}

func (c *clerk) wake() {
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// close waits until all is done.
func (c *clerk) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wake()
	<-c.done
}

func (c *clerk) run() {
	defer close(c.done)
	for range c.more {
		for {
			c.mu.Lock()
			if len(c.queue) == 0 {
				closed := c.closed
				c.mu.Unlock()
				if closed {
					return
				}
				break
			}
			f := c.queue[0]
			c.queue = c.queue[1:]
			c.mu.Unlock()
			f()
		}
	}
}

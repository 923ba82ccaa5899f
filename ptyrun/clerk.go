package ptyrun

// clerk does what waits for locks and disks, one thing after the other, apart
// from the loop.
type clerk struct {
	queue[func()]
	done chan struct{}
}

func openClerk() *clerk {
	c := &clerk{queue: newQueue[func()](0), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		for f, ok := c.next(); ok; f, ok = c.next() {
			f()
		}
	}()
	return c
}

func (c *clerk) do(f func()) { c.put(f) }

// close waits until all is done.
func (c *clerk) close() {
	c.shut()
	<-c.done
}

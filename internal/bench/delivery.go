package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// deliveries are the cases of the library: messages of 1 KiB, durable.
func (b *bench) deliveries() []*Case {
	const against = "write, fsync, rename, fsync directory"
	cases := []*Case{
		{Name: "one delivery", Against: against, Goal: Goal{Speed: 1.05}, Open: openOne},
	}
	for _, n := range []int{16, 64} {
		cases = append(cases, &Case{
			Name: fmt.Sprintf("%d senders, one inbox", n), Against: fmt.Sprintf("the same by %d writers", n), Goal: Goal{Speed: 1.2},
			Open: func(b *bench) (cell, error) { return openCrowd(b, n) },
		})
	}
	return append(cases,
		&Case{Name: "a batch of 100, a message", Against: "100 deliveries", Goal: Goal{Speed: 2.5}, Open: openBatch},
		&Case{Name: "a fan-out to 8", Against: "8 deliveries", Goal: Goal{Speed: 2.5}, Open: openFanOut},
		&Case{Name: "a fan-out to 8, raw", Against: "8 × " + against, Open: openFanOutRaw},
	)
}

// send delivers a message of its own to one mailbox.
func (b *bench) send(to *mailbox.Box) op {
	return func() (int, error) { return b.deliver(&mailbox.Post{Message: message(to), To: []*mailbox.Box{to}}) }
}

// deliver delivers posts in one call.
func (b *bench) deliver(posts ...*mailbox.Post) (int, error) {
	mailbox.Deliver(b.ctx, posts...)
	for _, p := range posts {
		for _, o := range p.Outcomes {
			if o.Err != nil {
				return 0, o.Err
			}
		}
	}
	return len(posts), nil
}

// rawBeside is a raw mailbox in a directory of its own.
func (b *bench) rawBeside() (*raw, error) {
	dir, err := b.ground.dir("raw")
	if err != nil {
		return nil, err
	}
	return b.raw(dir)
}

func openOne(b *bench) (cell, error) {
	root, err := b.newRoot("one", "bob")
	if err != nil {
		return nil, err
	}
	r, err := b.rawBeside()
	if err != nil {
		return nil, err
	}
	return b.loops(alone(b.send(root.Box("bob"))), alone(r.deliver)), nil
}

func openCrowd(b *bench, n int) (cell, error) {
	root, err := b.newRoot("crowd", "bob")
	if err != nil {
		return nil, err
	}
	r, err := b.rawBeside()
	if err != nil {
		return nil, err
	}
	return b.loops(crowd(n, b.send(root.Box("bob"))), crowd(n, r.deliver)), nil
}

// crowd runs an op again and again in n goroutines at once.
func crowd(n int, do op) loop {
	return func(d time.Duration) (times int, took time.Duration, err error) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		began := time.Now()
		for range n {
			wg.Go(func() {
				t, _, e := alone(do)(d)
				mu.Lock()
				defer mu.Unlock()
				if times += t; err == nil {
					err = e
				}
			})
		}
		wg.Wait()
		return times, time.Since(began), err
	}
}

func openBatch(b *bench) (cell, error) {
	root, err := b.newRoot("batch", "bob", "carol")
	if err != nil {
		return nil, err
	}
	batch := func() (int, error) {
		posts := make([]*mailbox.Post, 100)
		for i := range posts {
			to := root.Box("bob")
			posts[i] = &mailbox.Post{Message: message(to), To: []*mailbox.Box{to}}
		}
		return b.deliver(posts...)
	}
	return b.loops(alone(batch), alone(b.send(root.Box("carol")))), nil
}

// eight are the members of a fan-out.
var eight = []wire.Name{"ada", "ben", "cyd", "dan", "eve", "fay", "gus", "hal"}

// fanOut is a root and one message to eight of its members.
func (b *bench) fanOut() (*root, op, error) {
	root, err := b.newRoot("fan-out", eight...)
	if err != nil {
		return nil, nil, err
	}
	var to []*mailbox.Box
	for _, n := range eight {
		to = append(to, root.Box(n))
	}
	return root, func() (int, error) { return b.deliver(&mailbox.Post{Message: message(to...), To: to}) }, nil
}

func openFanOut(b *bench) (cell, error) {
	_, ours, err := b.fanOut()
	if err != nil {
		return nil, err
	}
	root, _, err := b.fanOut()
	if err != nil {
		return nil, err
	}
	each := func() (int, error) {
		for _, n := range eight {
			if _, err := b.send(root.Box(n))(); err != nil {
				return 0, err
			}
		}
		return 1, nil
	}
	return b.loops(alone(ours), alone(each)), nil
}

func openFanOutRaw(b *bench) (cell, error) {
	_, ours, err := b.fanOut()
	if err != nil {
		return nil, err
	}
	var boxes []*raw
	for range eight {
		r, err := b.rawBeside()
		if err != nil {
			return nil, err
		}
		boxes = append(boxes, r)
	}
	each := func() (int, error) {
		for _, r := range boxes {
			if _, err := r.deliver(); err != nil {
				return 0, err
			}
		}
		return 1, nil
	}
	return b.loops(alone(ours), alone(each)), nil
}

// growth is a delivery into a large inbox against one into a small one.
func (b *bench) growth() []*Case {
	small, large := b.Sizes[0], b.Sizes[2]
	return []*Case{{
		Name: fmt.Sprintf("one delivery, %s unread", count(large)), Against: fmt.Sprintf("one delivery, %s unread", count(small)),
		Goal: Goal{Time: 1.2},
		Open: func(b *bench) (cell, error) { return openGrowth(b, small, large) },
	}}
}

func openGrowth(b *bench, small, large int) (cell, error) {
	root, err := b.newRoot("growth", "large")
	if err != nil {
		return nil, err
	}
	if err := root.fill("large", large, true); err != nil {
		return nil, err
	}
	n := 0
	return func(d time.Duration) (time.Duration, time.Duration, error) {
		// The small one grows as well: another each time.
		n++
		name := wire.Name(fmt.Sprintf("small%d", n))
		if err := root.Create(b.ctx, name); err != nil {
			return 0, 0, err
		}
		if err := root.fill(name, small, true); err != nil {
			return 0, 0, err
		}
		return b.loops(alone(b.send(root.Box("large"))), alone(b.send(root.Box(name))))(d)
	}, nil
}

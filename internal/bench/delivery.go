package main

import (
	"errors"
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
	return func() (int, error) {
		return b.deliver(&mailbox.Post{Message: message(to), To: []*mailbox.Box{to}})
	}
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

func openOne(b *bench) (cell, error) {
	return b.fresh("one", 1, []wire.Name{"bob"}, func(r *root) cell {
		return b.loops(alone(b.send(r.Box("bob"))), alone(r.raws[0].deliver))
	}), nil
}

func openCrowd(b *bench, n int) (cell, error) {
	return b.fresh("crowd", 1, []wire.Name{"bob"}, func(r *root) cell {
		return b.loops(crowd(n, b.send(r.Box("bob"))), crowd(n, r.raws[0].deliver))
	}), nil
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
	return b.fresh("batch", 0, []wire.Name{"bob", "carol"}, func(r *root) cell {
		bob := r.Box("bob")
		batch := func() (int, error) {
			posts := make([]*mailbox.Post, 100)
			for i := range posts {
				posts[i] = &mailbox.Post{Message: message(bob), To: []*mailbox.Box{bob}}
			}
			return b.deliver(posts...)
		}
		return b.loops(alone(batch), alone(b.send(r.Box("carol"))))
	}), nil
}

// members are n names that begin with name.
func members(name string, n int) []wire.Name {
	out := make([]wire.Name, n)
	for i := range out {
		out[i] = wire.Name(fmt.Sprint(name, i))
	}
	return out
}

// fanOut is one message to several members.
func (b *bench) fanOut(r *root, names []wire.Name) op {
	to := make([]*mailbox.Box, len(names))
	for i, n := range names {
		to[i] = r.Box(n)
	}
	return func() (int, error) { return b.deliver(&mailbox.Post{Message: message(to...), To: to}) }
}

// all does several things, and counts as one.
func all(ops []op) op {
	return func() (int, error) {
		for _, do := range ops {
			if _, err := do(); err != nil {
				return 0, err
			}
		}
		return 1, nil
	}
}

func openFanOut(b *bench) (cell, error) {
	ours, theirs := members("bob", 8), members("carol", 8)
	return b.fresh("fan-out", 0, append(ours, theirs...), func(r *root) cell {
		var each []op
		for _, n := range theirs {
			each = append(each, b.send(r.Box(n)))
		}
		return b.loops(alone(b.fanOut(r, ours)), alone(all(each)))
	}), nil
}

func openFanOutRaw(b *bench) (cell, error) {
	ours := members("bob", 8)
	return b.fresh("fan-out", 8, ours, func(r *root) cell {
		var each []op
		for _, w := range r.raws {
			each = append(each, w.deliver)
		}
		return b.loops(alone(b.fanOut(r, ours)), alone(all(each)))
	}), nil
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
	r, err := b.newRoot("growth", 0, "large")
	if err != nil {
		return nil, err
	}
	b.later(r.close)
	if err := r.crowdNames("large", large); err != nil {
		return nil, err
	}
	n := 0
	return func(d time.Duration) (time.Duration, time.Duration, error) {
		// The small one grows as well: another each round.
		n++
		other := wire.Name(fmt.Sprint("small", n))
		if err := errors.Join(r.Create(b.ctx, other), r.crowdNames(other, small)); err != nil {
			return 0, 0, err
		}
		return b.loops(alone(b.send(r.Box("large"))), alone(b.send(r.Box(other))))(d)
	}, nil
}

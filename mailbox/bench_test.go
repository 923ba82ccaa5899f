package mailbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// What these say are ratios, taken in one run, turn by turn: the speed of a machine, and
// who else uses it, cancels out.

// turns does two things by turns and reports how often the second is done in the time of
// the first.
func turns(b *testing.B, what string, first, second func()) {
	var t1, t2 time.Duration
	for range b.N {
		begin := time.Now()
		first()
		middle := time.Now()
		second()
		t1, t2 = t1+middle.Sub(begin), t2+time.Since(middle)
	}
	b.ReportMetric(float64(t1)/float64(t2), what)
	b.ReportMetric(float64(t2.Microseconds())/float64(b.N), "µs")
	b.ReportMetric(0, "ns/op")
}

// rawWriter writes messages as durably with nothing but system calls: write, fsync, link,
// fsync of the directory.
func rawWriter(b *testing.B, dir string) func() {
	tmp, to := filepath.Join(dir, "tmp"), filepath.Join(dir, "new")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		b.Fatal(err)
	}
	return func() {
		m := message("a message")
		data, _ := m.Encode()
		temp := filepath.Join(tmp, string(m.ID))
		f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			b.Fatal(err)
		}
		f.Write(data)
		f.Sync()
		f.Close()
		os.Link(temp, filepath.Join(to, fileOf(m.ID)))
		d, _ := os.Open(to)
		if err := d.Sync(); err != nil {
			b.Fatal(err)
		}
		d.Close()
	}
}

// side does something several times side by side.
func side(n int, f func()) func() {
	return func() {
		var all sync.WaitGroup
		for range n {
			all.Go(f)
		}
		all.Wait()
	}
}

// Goal: one delivery at 0.85 of the speed of the raw loop, 16 at once at 0.9 of it.
func BenchmarkDeliver(b *testing.B) {
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := b.TempDir() // on a disk
			bob := openStore(b, dir, nil, "bob").Box("bob")
			raw := rawWriter(b, b.TempDir())
			turns(b, "of-raw", side(n, raw), side(n, func() { deliver(b, bob, message("a message")) }))
		})
	}
}

// Goal: a message of a batch of 100 twice as fast as one alone.
func BenchmarkDeliverBatch(b *testing.B) {
	bob := openStore(b, b.TempDir(), nil, "bob").Box("bob")
	posts := func() (posts []*Post) {
		for range 100 {
			posts = append(posts, &Post{Message: message("a message"), To: []*Box{bob}})
		}
		return posts
	}
	turns(b, "times-as-fast", func() {
		for _, p := range posts() {
			Deliver(ctx, p)
		}
	}, func() { Deliver(ctx, posts()...) })
}

// Goal: of 100,000 unread messages the oldest ten in twice the time of a listing.
func Benchmark100000(b *testing.B) {
	bob := openStore(b, scratch(b), nil, "bob").Box("bob")
	m := message("a message")
	for range 100_000 {
		m.ID = wire.NewID()
		put(b, bob, "inbox/new", m)
	}
	list := func() {
		if list, err := os.ReadDir(filepath.Join(bob.Path(), "inbox/new")); err != nil || len(list) < 90_000 {
			b.Fatal(len(list), err)
		}
	}
	for name, show := range map[string]func(ReadOptions) (Batch, error){
		"Peek": func(opt ReadOptions) (Batch, error) { return bob.Peek(ctx, opt) },
		"Read": func(opt ReadOptions) (Batch, error) { return bob.Read(ctx, opt, receiveAll) },
	} {
		b.Run(name, func(b *testing.B) {
			turns(b, "listings", func() {
				if batch, err := show(ReadOptions{Limit: 10}); err != nil || len(batch.Items) != 10 || !slices.IsSorted(idsOf(batch.Items)) {
					b.Fatal(batch, err)
				}
			}, list)
		})
	}
}

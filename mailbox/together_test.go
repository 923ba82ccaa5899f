package mailbox

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// joined is how many deliveries wait for the next sync.
func joined(b *Box) int {
	s := b.stand()
	defer s.leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.joined
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came: %s", what)
		}
	}
}

// Who comes while a sync goes on is not served by that one, but shares the next
// with all who came meanwhile; an error is everybody's who waited for it.
func TestSyncTogether(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan int), make(chan error)
	var armed atomic.Bool
	syncs := 0
	s := openStore(t, t.TempDir(), func(op atomicfile.Op, _ string) error {
		if op != atomicfile.OpSyncDir || !armed.Load() {
			return nil
		}
		syncs++ // one at a time
		begun <- syncs
		return <-goOn
	}, "alice", "bob")
	bob := s.Box("bob")
	armed.Store(true)
	var all sync.WaitGroup
	send := func() *Outcome {
		p := &Post{Message: message("alice", "x"), To: []*Box{bob}, Outcomes: make([]Outcome, 1)}
		out := &Outcome{}
		all.Go(func() {
			Deliver(ctx, p)
			*out = p.Outcomes[0]
		})
		return out
	}
	first := send()
	<-begun
	var second []*Outcome
	for range 3 {
		second = append(second, send())
	}
	await(t, "three that wait", func() bool { return joined(bob) == 3 })
	goOn <- nil
	if n := <-begun; n != 2 {
		t.Errorf("sync %d", n)
	}
	if ids, _, err := bob.UnreadIDs(0); len(ids) != 4 || err != nil {
		t.Errorf("%d messages in new, %v", len(ids), err)
	}
	third := send() // while the second goes on
	await(t, "one that waits", func() bool { return joined(bob) == 1 })
	goOn <- syscall.EIO
	if n := <-begun; n != 3 {
		t.Errorf("sync %d", n)
	}
	goOn <- nil
	all.Wait()
	for _, o := range []*Outcome{first, third} {
		if o.Err != nil || !o.Stored {
			t.Errorf("%+v", o)
		}
	}
	for _, o := range second {
		var nd *NotDurableError
		if !errors.As(o.Err, &nd) || !errors.Is(o.Err, syscall.EIO) || !o.Stored {
			t.Errorf("%+v", o)
		}
	}
	if syncs != 3 {
		t.Errorf("%d syncs", syncs)
	}
}

// Several posts in one call for one mailbox appear in their order.
func TestOrderOfPosts(t *testing.T) {
	t.Parallel()
	s := openStore(t, t.TempDir(), nil, "alice", "bob")
	var posts []*Post
	for range 50 {
		posts = append(posts, &Post{Message: message("alice", "x"), To: []*Box{s.Box("bob")}})
	}
	Deliver(ctx, posts...)
	ids, _, err := s.Box("bob").UnreadIDs(0)
	if err != nil || !slices.EqualFunc(ids, posts, func(id wire.ID, p *Post) bool { return id == p.Message.ID }) {
		t.Errorf("%d messages, %v", len(ids), err)
	}
}

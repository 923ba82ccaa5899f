package mailbox

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// The same id, sent by several at once while readers move it on and gc carries
// whole days away, is one message, and is shown once.
func TestSameIDAtOnce(t *testing.T) {
	t.Parallel()
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	stop := make(chan struct{})
	var readers sync.WaitGroup
	var mu sync.Mutex
	shown := map[wire.ID]int{}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				b, err := bob.Read(ctx, ReadOptions{}, takeAll)
				if err != nil || b.Unmarked != nil {
					t.Error(err, b.Unmarked)
					return
				}
				mu.Lock()
				for _, it := range b.Items {
					shown[it.ID]++
				}
				mu.Unlock()
				if _, err := bob.GC(ctx, GCOptions{Before: time.Now().AddDate(0, 0, 2)}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	const n = 150
	for range n {
		m := plain(oldID(1))
		var senders sync.WaitGroup
		var known sync.Map
		for i := range 3 {
			senders.Go(func() {
				// A batch of the same id and another one.
				p := &Post{Message: m, To: []*Box{bob}, Given: true}
				q := &Post{Message: plain(wire.NewID()), To: []*Box{bob}, Given: true}
				Deliver(ctx, q, p)
				if o := p.Outcomes[0]; o.Err != nil || !o.Stored {
					t.Error(o)
				} else {
					known.Store(i, o.Known)
				}
			})
		}
		senders.Wait()
		first := 0
		known.Range(func(_, k any) bool {
			if k == false {
				first++
			}
			return true
		})
		if first != 1 {
			t.Fatalf("%d senders were the first", first)
		}
	}
	close(stop)
	readers.Wait()
	for {
		b, err := bob.Read(ctx, ReadOptions{}, takeAll)
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Items) == 0 {
			break
		}
		for _, it := range b.Items {
			shown[it.ID]++
		}
	}
	c := takeCensus(t, teamPath(s), "bob")
	c.sound(t)
	if len(c.places) != 4*n || len(shown) != 4*n {
		t.Errorf("%d messages, %d shown, want %d", len(c.places), len(shown), 4*n)
	}
	for id, times := range shown {
		if times != 1 {
			t.Errorf("%s was shown %d times", id, times)
		}
	}
}

func plain(id wire.ID) *wire.Message {
	m := message("alice", "a body")
	m.ID = id
	return m
}

// Between a sender's look and its link nobody else may deliver the same id: a
// reader would move that one out of the way of the link.
func TestSameIDBetweenLookAndLink(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	quick := openStore(t, path, nil, "bob")
	m := plain(oldID(1))
	other := make(chan error, 1)
	var once sync.Once
	slow := openStore(t, path, func(op atomicfile.Op, name string) error {
		if op == atomicfile.OpLink {
			once.Do(func() {
				go func() {
					p := &Post{Message: m, To: []*Box{quick.Box("bob")}, Given: true}
					Deliver(ctx, p)
					_, err := quick.Box("bob").Read(ctx, ReadOptions{}, takeAll)
					other <- errors.Join(p.Outcomes[0].Err, err)
				}()
				// The other cannot end before this delivery does. How long is
				// waited for it decides only whether a mistake is seen.
				select {
				case err := <-other:
					t.Errorf("delivered and read (%v) while another delivery of the id held the lock", err)
					other <- err
				case <-time.After(100 * time.Millisecond):
				}
			})
		}
		return nil
	})
	p := &Post{Message: m, To: []*Box{slow.Box("bob")}, Given: true}
	Deliver(ctx, p)
	if err := errors.Join(p.Outcomes[0].Err, <-other); err != nil {
		t.Fatal(err)
	}
	takeCensus(t, path, "bob").sound(t)
}

// gc may carry a day away, and a reader begin it anew, between two posts of one
// job: the second is looked for where it is by then.
func TestSameIDAfterTheDayWasArchived(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	quick := openStore(t, path, nil, "bob").Box("bob")
	known, filler := plain(oldID(1)), plain(oldID(1))
	known.RequiresAck = true
	deliver(t, quick, known)
	deliver(t, quick, filler)
	for _, m := range []*wire.Message{known, filler} { // known: owed; the day has filler
		if _, err := quick.Take(ctx, m.ID); err != nil {
			t.Fatal(err)
		}
	}
	var once sync.Once
	slow := openStore(t, path, func(op atomicfile.Op, name string) error {
		if op == atomicfile.OpLink {
			once.Do(func() {
				if _, err := quick.GC(ctx, GCOptions{Before: time.Now()}); err != nil {
					t.Error(err)
				}
				if err := quick.Settle(ctx, known.ID, true); err != nil {
					t.Error(err)
				}
			})
		}
		return nil
	})
	first := &Post{Message: plain(oldID(1)), To: []*Box{slow.Box("bob")}, Given: true}
	second := &Post{Message: known, To: []*Box{slow.Box("bob")}, Given: true}
	Deliver(ctx, first, second)
	if o := second.Outcomes[0]; o.Err != nil || !o.Known {
		t.Error(o)
	}
	takeCensus(t, path, "bob").sound(t)
}

// A delivery and a retirement at the same time: what was reported as delivered
// is in the mailbox, wherever that went, and what was refused is not.
func TestDeliverWhileRetired(t *testing.T) {
	t.Parallel()
	path := scratch(t)
	s := openStore(t, path, nil, "bob")
	bob := s.Box("bob")
	var mu sync.Mutex
	delivered, refused := map[wire.ID]bool{}, map[wire.ID]bool{}
	count := func(ids map[wire.ID]bool) int {
		mu.Lock()
		defer mu.Unlock()
		return len(ids)
	}
	stop := make(chan struct{})
	var senders sync.WaitGroup
	for i := range 3 {
		senders.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				m := plain(wire.NewID())
				p := &Post{Message: m, To: []*Box{bob}, Given: i == 0}
				Deliver(ctx, p)
				mu.Lock()
				switch o := p.Outcomes[0]; {
				case o.Err == nil:
					delivered[m.ID] = true
				case errors.Is(o.Err, ErrNoAgent):
					refused[m.ID] = true
				default:
					t.Error(o.Err)
				}
				mu.Unlock()
			}
		})
	}
	// As long as it takes that many were refused and many delivered.
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		where, err := s.Retire(ctx, "bob")
		if err != nil {
			t.Fatal(err)
		}
		for before := count(refused); count(refused) == before && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // until somebody met the empty place
		}
		if bob.Exists() {
			t.Fatalf("%s is retired to %s, and there", bob.Address(), where)
		}
		if err := s.Restore(ctx, "bob"); err != nil {
			t.Fatal(err)
		}
		if count(refused) > 100 && count(delivered) > 300 {
			break
		}
	}
	close(stop)
	senders.Wait()
	c := takeCensus(t, path, "bob")
	c.sound(t)
	for id := range delivered {
		if c.place(id) != placeNew {
			t.Errorf("%s was delivered and is not there", id)
		}
	}
	for id := range refused {
		if c.place(id) != "" {
			t.Errorf("%s was refused and is there", id)
		}
	}
	t.Logf("%d delivered, %d refused", len(delivered), len(refused))
}

package mailbox

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
	"pgregory.net/rapid"
)

// errCrash is what every file operation returns from a crash on: the process is
// no more.
var errCrash = errors.New("crashed")

// gang is a shared inbox beside a model of it. Its takers crash in the middle of
// what they do; what a crash leaves is either what was before or what was meant.
type gang struct {
	s    *Store
	jobs *Box
	path string
	now  time.Time

	in   int // file operations until the crash; 0: none
	dead bool

	place map[wire.ID]string
	held  map[wire.ID]*stint // as the model has it; nil: nobody
	tries map[wire.ID]int
}

// stint is a taking as the model has it.
type stint struct {
	by      wire.Address
	key     wire.ID
	until   time.Time
	showing bool
	ended   bool
}

var gangNames = []wire.Name{"bob", "carol", "dave"}

func newGang(t *rapid.T, path string) *gang {
	c := &gang{path: path, now: time.Now(), place: map[wire.ID]string{}, held: map[wire.ID]*stint{}, tries: map[wire.ID]int{}}
	d, err := openDir(path)
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	if d, err = atomicfile.Open(path, c.fault); err != nil {
		t.Fatal(err)
	}
	if c.s, err = OpenStore(d, "main"); err == nil {
		err = c.s.Create(ctx, "jobs")
	}
	if err != nil {
		t.Fatal(err)
	}
	c.s.clock = func() time.Time { return c.now }
	c.jobs = c.s.Box("jobs")
	return c
}

func (c *gang) fault(atomicfile.Op, string) error {
	if c.dead {
		return errCrash
	}
	if c.in > 0 {
		if c.in--; c.in == 0 {
			c.dead = true
			return errCrash
		}
	}
	return nil
}

// perhaps does something that may crash, and reports whether it did.
func (c *gang) perhaps(t *rapid.T, f func() error) (crashed bool, err error) {
	if rapid.IntRange(0, 2).Draw(t, "crash") == 0 {
		c.in = rapid.IntRange(1, 30).Draw(t, "at")
	}
	err = f()
	crashed = c.dead
	c.in, c.dead = 0, false
	return crashed, err
}

func (c *gang) some(t *rapid.T, what string) wire.ID {
	var all []wire.ID
	for id := range c.place {
		all = append(all, id)
	}
	slices.Sort(all)
	if len(all) == 0 {
		t.Skip("no message")
	}
	return rapid.SampledFrom(all).Draw(t, what)
}

func (c *gang) who(t *rapid.T) wire.Address {
	return wire.Address{Agent: rapid.SampledFrom(gangNames).Draw(t, "who"), Team: "main"}
}

// holder is who holds a message, by the model.
func (c *gang) holder(id wire.ID) *stint {
	if h := c.held[id]; h != nil && !h.ended && c.now.Before(h.until) {
		return h
	}
	return nil
}

// free is the oldest message that is in nobody's hands, by the model, when those
// taken too often have gone aside.
func (c *gang) free() wire.ID {
	c.tidied()
	var all []wire.ID
	for id, p := range c.place {
		if p == placeNew && c.holder(id) == nil {
			all = append(all, id)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return slices.Min(all)
}

func (c *gang) tidied() {
	for id, p := range c.place {
		if p == placeNew && c.holder(id) == nil && c.tries[id] >= MaxTries {
			c.place[id] = placeAside
			delete(c.held, id)
		}
	}
}

func (c *gang) Deliver(t *rapid.T) {
	m := &wire.Message{ID: wire.NewID(), From: wire.Address{Agent: "alice", Team: "main"}, Body: "work"}
	p := &Post{Message: m, To: []*Box{c.jobs}}
	Deliver(ctx, p)
	if err := p.Outcomes[0].Err; err != nil {
		t.Fatal(err)
	}
	c.place[m.ID] = placeNew
}

// Clock lets time pass.
func (c *gang) Clock(t *rapid.T) {
	c.now = c.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "s")) * time.Second)
}

func (c *gang) Hold(t *rapid.T) {
	by, long := c.who(t), time.Duration(rapid.IntRange(1, 60).Draw(t, "s"))*time.Second
	show := rapid.SampledFrom([]string{"not shown", "taken", "not taken", "killed", "slow"}).Draw(t, "show")
	want := c.free()
	var h *Hold
	var shown wire.ID
	crashed, err := c.perhaps(t, func() (err error) {
		defer func() { recover() }() // killed while showing: not even the undoing is done
		opt := HoldOptions{By: by, For: long}
		if show == "not shown" {
			h, err = c.jobs.Hold(ctx, opt, nil)
			return err
		}
		h, err = c.jobs.Hold(ctx, opt, func(h *Hold) (bool, error) {
			shown = h.ID
			switch show {
			case "killed":
				panic("killed")
			case "slow":
				c.now = c.now.Add(showHolds + time.Second)
			}
			return show != "not taken", nil
		})
		return err
	})
	if crashed || show == "killed" {
		c.adopt(t)
		return
	}
	switch {
	case err != nil:
		t.Fatal(err)
	case want == "":
		if h != nil || shown != "" {
			t.Fatalf("took %v, and there is nothing to take", h)
		}
	case show == "not taken":
		if h != nil || shown != want {
			t.Fatalf("%v, shown %s, want %s", h, shown, want)
		}
		if k := c.held[want]; k != nil && k.showing {
			delete(c.held, want) // that trace went with the next taking
		}
	case h == nil || h.ID != want:
		t.Fatalf("took %v, want %s", h, want)
	default:
		if n := h.Takings.Tries(); n != c.tries[want] {
			t.Fatalf("%d tries before, want %d", n, c.tries[want])
		}
		c.held[want] = &stint{by: by, key: h.Key, until: c.now.Add(long)}
		c.tries[want]++
	}
}

// mine reports whether a taking is somebody's to end, by the model.
func (c *gang) mine(id wire.ID, by wire.Address) bool {
	h := c.held[id]
	return c.place[id] == placeNew && h != nil && !h.ended && h.by == by
}

// refused checks the error of one who does not hold a message.
func (c *gang) refused(t *rapid.T, id wire.ID, err error) {
	var leased *LeasedError
	if h := c.holder(id); c.place[id] == placeNew && h != nil {
		if !errors.As(err, &leased) || leased.By != h.by {
			t.Fatalf("it is held by %s: %v", h.by, err)
		}
	} else if !errors.Is(err, ErrNotHeld) {
		t.Fatal("nobody holds it: ", err)
	}
}

func (c *gang) Renew(t *rapid.T) {
	id, by, long := c.some(t, "message"), c.who(t), time.Duration(rapid.IntRange(1, 60).Draw(t, "s"))*time.Second
	crashed, err := c.perhaps(t, func() error { _, err := c.jobs.Renew(ctx, id, by, "", long); return err })
	switch {
	case crashed:
		c.adopt(t)
	case !c.mine(id, by):
		c.refused(t, id, err)
	case err != nil:
		t.Fatal(err)
	default:
		h := c.held[id]
		if until := c.now.Add(long); until.After(h.until) || c.holder(id) == nil {
			h.until = until
			if h.showing { // as long as it is shown, it holds for a moment only
				h.until = c.now.Add(min(long, showHolds))
			}
		}
	}
}

func (c *gang) GiveBack(t *rapid.T) {
	id, by := c.some(t, "message"), c.who(t)
	crashed, err := c.perhaps(t, func() error { return c.jobs.GiveBack(ctx, id, by, "", "") })
	switch {
	case crashed:
		c.adopt(t)
	case !c.mine(id, by):
		c.refused(t, id, err)
	case err != nil:
		t.Fatal(err)
	default:
		c.held[id].ended = true
		c.tidied()
	}
}

func (c *gang) Finish(t *rapid.T) {
	id, by := c.some(t, "message"), c.who(t)
	crashed, err := c.perhaps(t, func() error { return c.jobs.Finish(ctx, id, by, "", true) })
	switch {
	case crashed:
		c.adopt(t)
	case !c.mine(id, by):
		c.refused(t, id, err)
	default:
		var unlogged *UnloggedError
		if err != nil && !errors.As(err, &unlogged) {
			t.Fatal(err)
		}
		c.place[id] = placeDone
		delete(c.held, id)
	}
}

func (c *gang) Unread(t *rapid.T) {
	id := c.some(t, "message")
	was := c.place[id]
	crashed, err := c.perhaps(t, func() error { _, err := c.jobs.Unread(ctx, id); return err })
	switch {
	case crashed:
		c.adopt(t)
	case err != nil:
		t.Fatal(err)
	case was != placeNew:
		c.place[id], c.tries[id] = placeNew, 0
		delete(c.held, id)
	}
}

// Read is the owner's: it shows what nobody holds.
func (c *gang) Read(t *rapid.T) {
	var want []wire.ID
	for id, p := range c.place {
		if p == placeNew && c.holder(id) == nil {
			want = append(want, id)
		}
	}
	slices.Sort(want)
	take := rapid.IntRange(0, 1).Draw(t, "take")
	b, err := c.jobs.Read(ctx, ReadOptions{}, func(b Batch) (int, error) { return min(take, len(b.Items)), nil })
	if err != nil || b.Unmarked != nil || b.More != 0 {
		t.Fatal(err, b)
	}
	var got []wire.ID
	for _, it := range b.Items {
		got = append(got, it.ID)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("read %v, want %v", got, want)
	}
	for _, id := range got[:min(take, len(got))] {
		c.place[id] = placeDone
		delete(c.held, id)
		c.tries[id] = 0
	}
}

// adopt takes over what a crash left: one of the states that it may leave.
func (c *gang) adopt(t *rapid.T) {
	now := takeCensus(t, c.path, "jobs")
	for id, was := range c.place {
		is := now.place(id)
		switch {
		case is == was:
		case was == placeNew && (is == placeDone || is == placeAside):
		case (was == placeAside || was == placeDone) && (is == placeNew || is == placeDone):
		default:
			t.Fatalf("a crash moved %s from %q to %q", id, was, is)
		}
		if is == placeAside && was != is && c.tries[id] < MaxTries-1 {
			t.Fatalf("a crash set %s aside after %d tries", id, c.tries[id])
		}
		c.place[id] = is
		if is != placeNew {
			delete(c.held, id)
			continue
		}
		it, err := c.jobs.Get(id)
		if err != nil {
			t.Fatal(err)
		}
		n := it.Takings.Tries()
		if was == placeNew && (n < c.tries[id] || n > c.tries[id]+1) {
			t.Fatalf("a crash made %d tries of %d", n, c.tries[id])
		}
		before := c.holder(id)
		c.tries[id] = n
		delete(c.held, id)
		if k := it.Takings.Last(); k != nil {
			c.held[id] = &stint{by: k.By, key: k.Key, until: k.Until(), showing: k.Showing, ended: !k.Ended.IsZero()}
		}
		if before != nil && c.held[id] != nil && before.key != "" && c.held[id].key != before.key {
			t.Fatalf("%s held %s, and a crash gave it to %s", before.by, id, c.held[id].by)
		}
	}
}

func (c *gang) Check(t *rapid.T) {
	now := takeCensus(t, c.path, "jobs")
	now.sound(t)
	if len(now.bad) > 0 {
		t.Fatal("bad: ", now.bad)
	}
	count := Counts{}
	for id, p := range c.place {
		is := now.place(id)
		if is != p {
			t.Fatalf("%s is in %q, want %q", id, is, p)
		}
		it, err := c.jobs.Get(id)
		if err != nil {
			t.Fatal(err)
		}
		switch p {
		case placeNew:
			want, got := c.holder(id), it.Takings.Holder(c.now)
			if (want == nil) != (got == nil) || want != nil && (got.By != want.by || got.Key != want.key) {
				t.Fatalf("%s is held by %+v, want %+v", id, got, want)
			}
			if n := it.Takings.Tries(); n != c.tries[id] {
				t.Fatalf("%s was tried %d times, want %d", id, n, c.tries[id])
			}
			if want != nil {
				count.Held++
			} else {
				count.Unread++
			}
		case placeAside:
			count.Aside++
		}
	}
	if n, err := c.jobs.Count(ctx); err != nil || n != count {
		t.Fatalf("counted %+v, want %+v: %v", n, count, err)
	}
}

// Whoever takes, renews, gives back, finishes, reads and crashes in the middle of
// it: a message is held by one at most, tried no more often than it is set aside
// for, and never lost.
func TestHoldMachine(t *testing.T) {
	top := scratch(t)
	rapid.Check(t, func(t *rapid.T) {
		path, err := os.MkdirTemp(top, "gang-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(path)
		c := newGang(t, path)
		defer c.s.Close()
		t.Repeat(rapid.StateMachineActions(c))
	})
}

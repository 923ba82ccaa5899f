package mailbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// shelf is an inbox that several take from, with a clock of its own.
type shelf struct {
	*testing.T
	*Store
	jobs *Box
	at   time.Time
}

func newShelf(t *testing.T, bodies ...string) *shelf {
	s := &shelf{T: t, Store: testStore(t, "alice", "bob", "carol", "jobs"), at: time.Now()}
	s.jobs = s.Box("jobs")
	s.clock = func() time.Time { return s.at }
	for _, b := range bodies {
		deliver(t, s.jobs, message("alice", b))
	}
	return s
}

func (s *shelf) who(name wire.Name) wire.Address { return s.Box(name).Address() }

// take has somebody take for a minute; "" where there is nothing.
func (s *shelf) take(by wire.Name) *Hold {
	s.Helper()
	h, err := s.jobs.Hold(ctx, HoldOptions{By: s.who(by), For: time.Minute}, nil)
	if err != nil {
		s.Fatal(err)
	}
	return h
}

func (s *shelf) body(h *Hold, want string) {
	s.Helper()
	if h == nil || h.Body != want {
		s.Fatalf("taken: %+v, want %q", h, want)
	}
}

func (s *shelf) read() (bodies string) {
	s.Helper()
	b, err := s.jobs.Read(ctx, ReadOptions{}, takeAll)
	if err != nil || b.Unmarked != nil {
		s.Fatal(err, b.Unmarked)
	}
	for _, it := range b.Items {
		bodies += it.Body
	}
	return bodies
}

// What somebody holds nobody else takes, reads, is handed or types; given back
// or run out it is unread as it always was, and says who had it.
func TestHold(t *testing.T) {
	s := newShelf(t, "a", "b")
	a := s.take("bob")
	s.body(a, "a")
	s.body(s.take("carol"), "b")
	if h := s.take("alice"); h != nil {
		t.Fatal("taken twice: ", h)
	}
	if c, err := s.jobs.Count(ctx); err != nil || c != (Counts{Held: 2}) {
		t.Fatal(c, err)
	}
	if b, err := s.jobs.Peek(ctx, ReadOptions{}); err != nil || len(b.Items)+b.More != 0 {
		t.Fatal(b, err)
	}
	if got := s.read(); got != "" {
		t.Fatal("read: ", got)
	}
	h, err := s.jobs.HandOver(ctx, HookCall{Session: "s", Name: "n", Want: true, Now: time.Now()}, ReadOptions{})
	if err != nil || len(h.Items)+h.More != 0 {
		t.Fatal("handed over: ", h, err)
	}
	run, err := s.HoldRunner(ctx, "jobs")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := s.jobs.Claim(ctx, []wire.ID{a.ID}); err != nil || len(c.Items) != 0 {
		t.Fatal("typed: ", c, err)
	}
	run.Release()

	if err := a.GiveBack(ctx, "no"); err != nil {
		t.Fatal(err)
	}
	if err := a.GiveBack(ctx, ""); !errors.Is(err, ErrNotHeld) {
		t.Fatal("given back twice: ", err)
	}
	it, err := s.jobs.Get(a.ID)
	if err != nil || it.State != Unread || it.Takings.Holder(s.at) != nil || it.Takings.Last().By != s.who("bob") || it.Takings.Last().End() != "no" {
		t.Fatal(it, err, it.Takings)
	}
	s.at = s.at.Add(61 * time.Second)
	if got := s.read(); got != "ab" {
		t.Fatalf("read %q", got)
	}
}

// Only the holder ends and renews a lease; one that ran out is still the last
// holder's until somebody takes over.
func TestHolderAlone(t *testing.T) {
	s := newShelf(t, "a")
	h := s.take("bob")
	var leased *LeasedError
	if err := s.jobs.Finish(ctx, h.ID, s.who("carol"), "", true); !errors.As(err, &leased) || leased.By != s.who("bob") {
		t.Fatal(err)
	}
	if err := s.jobs.Settle(ctx, h.ID, true); !errors.As(err, &leased) {
		t.Fatal("its owner settled it: ", err)
	}
	if moved, err := s.jobs.Take(ctx, h.ID); moved || err != nil {
		t.Fatal("its owner took it: ", moved, err)
	}
	s.at = s.at.Add(50 * time.Second)
	if err := h.Renew(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	s.at = s.at.Add(59 * time.Second)
	if h := s.take("carol"); h != nil {
		t.Fatal("renewed, and taken")
	}
	s.at = s.at.Add(2 * time.Second)
	if err := h.Renew(ctx, time.Minute); err != nil {
		t.Fatal("ran out, nobody took over: ", err)
	}
	s.at = s.at.Add(61 * time.Second)
	second := s.take("carol")
	s.body(second, "a")
	if k := second.Takings.Last(); k.By != s.who("bob") || k.End() != "lease ran out" {
		t.Fatal(k)
	}
	if err := h.Renew(ctx, time.Minute); !errors.As(err, &leased) {
		t.Fatal("renewed what another has: ", err)
	}
	if err := second.Renew(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := s.jobs.Finish(ctx, h.ID, s.who("carol"), h.Key, true); !errors.As(err, &leased) {
		t.Fatal("finished by another key: ", err)
	}
	if err := s.jobs.Finish(ctx, h.ID, s.who("carol"), second.Key, true); err != nil {
		t.Fatal(err)
	}
	if it, err := s.jobs.Get(h.ID); err != nil || it.State != Done {
		t.Fatal(it, err)
	}
	if err := s.jobs.Finish(ctx, h.ID, s.who("bob"), h.Key, true); !errors.Is(err, ErrNotHeld) {
		t.Fatal("finished by two: ", err)
	}
	e, err := s.jobs.Tail(1)
	if err != nil || e[len(e)-1].Field("by") != "carol@main" {
		t.Fatal(e, err)
	}
	if ids, _ := filepath.Glob(filepath.Join(s.jobs.Path(), "inbox/leases/*.lease")); len(ids) != 0 {
		t.Fatal("left: ", ids)
	}
}

// A taker whose output was not taken has not got the message, and it is no try;
// nor has one who was killed showing, ten seconds later.
func TestHoldShowsFirst(t *testing.T) {
	s := newShelf(t, "a")
	opt := HoldOptions{By: s.who("bob"), For: time.Hour}
	h, err := s.jobs.Hold(ctx, opt, func(h *Hold) (bool, error) {
		if s.take("carol") != nil || s.read() != "" {
			t.Error("taken while it was shown")
		}
		return false, nil
	})
	if h != nil || err != nil {
		t.Fatal(h, err)
	}
	it, err := s.jobs.Get(s.mustTake("carol").ID)
	if err != nil || it.Takings.Tries() != 1 {
		t.Fatal(it.Takings, err)
	}
	s.at = s.at.Add(time.Minute)

	// Killed while it was shown.
	func() {
		defer func() { recover() }()
		s.jobs.Hold(ctx, opt, func(*Hold) (bool, error) { panic("killed") })
	}()
	s.at = s.at.Add(showHolds - time.Second)
	if h := s.take("carol"); h != nil {
		t.Fatal("taken")
	}
	s.at = s.at.Add(time.Second)
	s.body(s.take("carol"), "a")
	s.at = s.at.Add(time.Minute)

	// Shown for so long that another took it.
	h, err = s.jobs.Hold(ctx, opt, func(*Hold) (bool, error) {
		s.at = s.at.Add(showHolds)
		s.body(s.take("carol"), "a")
		return true, nil
	})
	var leased *LeasedError
	if !errors.As(err, &leased) || leased.By != s.who("carol") {
		t.Fatal(h, err)
	}
}

func (s *shelf) mustTake(by wire.Name) *Hold {
	s.Helper()
	h := s.take(by)
	if h == nil {
		s.Fatal("nothing to take")
	}
	return h
}

// Taken five times and never finished, a message goes aside, with its history;
// put back it begins anew. It is never in the way of others.
func TestSetAside(t *testing.T) {
	s := newShelf(t, "bad", "good")
	for i := range MaxTries {
		h := s.mustTake("bob")
		s.body(h, "bad")
		if n := h.Takings.Tries(); n != i {
			t.Fatal(n, " tries before")
		}
		if i%2 == 0 {
			if err := h.GiveBack(ctx, "exit status 1"); err != nil {
				t.Fatal(err)
			}
		} else {
			s.at = s.at.Add(time.Minute)
		}
	}
	h := s.mustTake("carol")
	s.body(h, "good")
	untold, err := s.jobs.Tidy(ctx)
	if err != nil || len(untold) != 1 || untold[0].Body != "bad" || untold[0].Takings.Tries() != MaxTries {
		t.Fatal(untold, err)
	}
	bad := untold[0].ID
	if err := s.jobs.Told(ctx, bad); err != nil {
		t.Fatal(err)
	}
	if untold, err = s.jobs.Tidy(ctx); err != nil || len(untold) != 0 {
		t.Fatal(untold, err)
	}
	if c, err := s.jobs.Count(ctx); err != nil || c != (Counts{Held: 1, Aside: 1}) {
		t.Fatal(c, err)
	}
	if _, err := s.jobs.GC(ctx, GCOptions{Before: time.Now().Add(99 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	it, err := s.jobs.Get(bad)
	if err != nil || it.State != Aside || it.Takings.Tries() != MaxTries {
		t.Fatal(it, err)
	}
	if moved, err := s.jobs.Unread(ctx, bad); !moved || err != nil {
		t.Fatal(moved, err)
	}
	h = s.mustTake("bob")
	if h.ID != bad || h.Takings.Tries() != 0 {
		t.Fatal(h.Takings)
	}
}

// A lease file that is torn, foreign or in the way hides no message.
func TestTornLease(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"empty":    func(p string) error { return os.Truncate(p, 0) },
		"torn":     func(p string) error { return os.Truncate(p, 40) },
		"nonsense": func(p string) error { return os.WriteFile(p, []byte(`{"takes":[{"by":7}]}`), 0o600) },
		"gone":     os.Remove,
		"a link":   func(p string) error { os.Remove(p); return os.Symlink("/dev/zero", p) },
		"a directory": func(p string) error {
			os.Remove(p)
			return os.MkdirAll(filepath.Join(p, "x"), 0o700)
		},
		"for good": func(p string) error {
			return os.WriteFile(p, []byte(`{"takes":[{"by":"bob@main","key":"0190163d-8694-739b-aea5-966c26f8ad91","at":"2126-01-01T00:00:00Z","renewed":"2126-01-01T00:00:00Z","for":"999999h"}]}`), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t, "a")
			h := s.mustTake("bob")
			if err := spoil(filepath.Join(s.jobs.Path(), "inbox", "leases", string(h.ID)+leaseEnd)); err != nil {
				t.Skip(err)
			}
			if c, err := s.jobs.Count(ctx); err != nil || c.Unread != 1 {
				t.Fatal(c, err)
			}
			again := s.mustTake("carol")
			s.body(again, "a")
			if err := s.jobs.Finish(ctx, again.ID, s.who("carol"), "", true); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// What is owed, put back, withdrawn, retired or restored is no longer held.
func TestLeaseEndsWithTheMessage(t *testing.T) {
	s := newShelf(t, "a")
	h := s.mustTake("bob")
	if err := s.jobs.Finish(ctx, h.ID, s.who("bob"), "", true); err != nil {
		t.Fatal(err)
	}
	if moved, err := s.jobs.Unread(ctx, h.ID); !moved || err != nil {
		t.Fatal(moved, err)
	}
	h = s.mustTake("carol")
	if n := h.Takings.Tries(); n != 0 {
		t.Fatal(n)
	}
	// The lease of a mailbox goes with it, and comes back.
	if _, err := s.Retire(ctx, "jobs"); err != nil {
		t.Fatal(err)
	}
	if err := h.Renew(ctx, time.Hour); !errors.Is(err, ErrNoAgent) {
		t.Fatal(err)
	}
	if err := s.Restore(ctx, "jobs"); err != nil {
		t.Fatal(err)
	}
	if s.take("bob") != nil {
		t.Fatal("restored, and free")
	}
	if state, err := s.jobs.Withdraw(ctx, h.ID, s.who("alice")); state != Owed || err != nil {
		t.Fatal(state, err)
	}
	if err := s.jobs.Finish(ctx, h.ID, s.who("carol"), "", true); !errors.Is(err, ErrNotHeld) {
		t.Fatal("a withdrawn message: ", err)
	}
	if it, err := s.jobs.Get(h.ID); err != nil || it.State != Withdrawn {
		t.Fatal(it, err)
	}
	if h := s.take("bob"); h != nil {
		t.Fatal(h)
	}
	if left, _ := filepath.Glob(filepath.Join(s.jobs.Path(), "inbox/leases/*")); len(left) != 0 {
		t.Fatal(left)
	}
	health, err := s.jobs.Examine(false)
	if err != nil || len(health.NotFiles)+len(health.OddLeases) != 0 {
		t.Fatal(health, err)
	}
}

func FuzzTakings(f *testing.F) {
	f.Add([]byte(`{"takes":[{"by":"bob@main","key":"0190163d-8694-739b-aea5-966c26f8ad91","at":"2026-01-01T00:00:00Z","renewed":"2026-01-01T00:00:00Z","for":"10m0s","how":"exit \u001b[1m"}],"told":true}`))
	f.Add([]byte(`{"takes":[{"by":"a@b","key":"0190163d-8694-739b-aea5-966c26f8ad91","at":"9999-12-31T00:00:00Z","renewed":"0001-01-02T00:00:00Z","for":"2562047h47m16.854775807s","showing":true}]}`))
	f.Add([]byte(`{"takes":null}`))
	now := time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC)
	f.Fuzz(func(t *testing.T, data []byte) {
		k := decodeTakings(data)
		if k == nil {
			if k.Holder(now) != nil || k.Tries() != 0 || k.spent(now) {
				t.Fatal("of nothing")
			}
			return
		}
		// Whatever stands there, it holds for two days at most.
		held := 0
		for h := range 200 {
			if k.Holder(now.Add(time.Duration(h)*time.Hour)) != nil {
				held++
			}
		}
		if held > 48 {
			t.Fatalf("held for %d hours: %s", held, data)
		}
		again, err := k.encode()
		if err != nil {
			t.Fatal(err)
		}
		if len(again) <= maxTakings {
			twice := decodeTakings(again)
			if twice.Tries() != k.Tries() || (twice.Holder(now) == nil) != (k.Holder(now) == nil) {
				t.Fatalf("%s became %s", data, again)
			}
		}
	})
}

// One message taken and finished, with as many others waiting or held.
func BenchmarkHold(b *testing.B) {
	for name, n := range map[string]struct{ waiting, held int }{"alone": {}, "1000 waiting": {1000, 0}, "50 held": {50, 50}} {
		b.Run(name, func(b *testing.B) {
			s := openStore(b, scratch(b), nil, "jobs")
			jobs, by := s.Box("jobs"), wire.Address{Agent: "bob", Team: "main"}
			posts := make([]*Post, b.N+n.waiting+n.held)
			for i := range posts {
				posts[i] = &Post{Message: message("alice", "work"), To: []*Box{jobs}}
			}
			Deliver(ctx, posts...)
			opt := HoldOptions{By: by, For: time.Hour}
			for range n.held {
				if _, err := jobs.Hold(ctx, opt, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			for range b.N {
				h, err := jobs.Hold(ctx, opt, nil)
				if err == nil {
					err = jobs.Finish(ctx, h.ID, by, h.Key, true)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

//go:build unix

package mailbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// trip fails the k-th file operation, or all from the k-th on, while it is
// armed.
type trip struct {
	mu     sync.Mutex
	armed  bool
	k      int // 0: none fails
	onward bool
	err    error

	n      int             // operations so far
	syncs  int             // fsyncs of files so far
	failed []atomicfile.Op // those that failed
	dead   map[string]bool // names whose fsync failed
	again  []string        // fsyncs of those, repeated
}

func (f *trip) fault(op atomicfile.Op, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.armed {
		return nil
	}
	f.n++
	isSync := op == atomicfile.OpSync || op == atomicfile.OpSyncDir
	if op == atomicfile.OpSync {
		f.syncs++
	}
	if isSync && f.dead[name] {
		f.again = append(f.again, name)
	}
	if f.k == 0 || f.n < f.k || f.n > f.k && !f.onward {
		return nil
	}
	f.failed = append(f.failed, op)
	if isSync && !strings.Contains(name, "(unnamed)") { // one name for all of them
		if f.dead == nil {
			f.dead = map[string]bool{}
		}
		f.dead[name] = true
	}
	return f.err
}

// faultRun is one run of a scene.
type faultRun struct {
	t    tb
	trip *trip
	path string
	*Store
	alice, bob, carol *Box
	ids               []wire.ID // of messages that setup put into bob's mailbox
	posts             []*Post
	shown             map[wire.ID]int
	showing           func(wire.ID) // nil, or told of each message shown
	torn              []byte
}

// faultScene is an operation, what comes before it and what must hold after.
type faultScene struct {
	setup func(*faultRun)
	act   func(*faultRun) error // under faults
	after func(*faultRun)       // without
}

func (r *faultRun) given(n int, ack bool) {
	for range n {
		m := sealed(oldID(3), fmt.Sprintf("message %d", len(r.ids)), ack)
		deliver(r.t, r.bob, m)
		r.ids = append(r.ids, m.ID)
	}
}

// post delivers, and checks what every outcome promises.
func (r *faultRun) post(posts ...*Post) error {
	r.posts = posts
	Deliver(ctx, posts...)
	var all []error
	for _, p := range posts {
		for _, o := range p.Outcomes {
			all = append(all, o.Err)
			var nd *NotDurableError
			if o.Stored && o.Err != nil && !errors.As(o.Err, &nd) {
				r.t.Errorf("stored, and the error does not say so: %v", o.Err)
			}
			if !o.Stored && o.Err == nil {
				r.t.Error("not stored, and no error")
			}
			there := len(takeCensus(r.t, r.path, o.Box.agent).places[p.Message.ID]) == 1
			if there != o.Stored {
				r.t.Errorf("stored is %v, the message is there: %v", o.Stored, there)
			}
		}
	}
	return errors.Join(all...)
}

// again sends what was sent once more, under the same ids.
func (r *faultRun) again() {
	for _, p := range r.posts {
		p.Given = true
	}
	if err := r.post(r.posts...); err != nil {
		r.t.Errorf("again, under the same id: %v", err)
	}
}

func (r *faultRun) message(to ...*Box) *Post {
	return &Post{Message: sealed(wire.NewID(), "a body", false), To: to, Sender: r.alice}
}

func (r *faultRun) read() error {
	batch, err := r.bob.Read(ctx, ReadOptions{}, func(b Batch) (int, error) {
		for _, it := range b.Items {
			r.shown[it.ID]++
			if r.showing != nil {
				r.showing(it.ID)
			}
		}
		return len(b.Items), nil
	})
	return errors.Join(err, batch.Unmarked, batch.Unlogged)
}

// in fails unless a message of bob's is in one of these places.
func (r *faultRun) in(id wire.ID, places ...string) {
	r.t.Helper()
	at := takeCensus(r.t, r.path, "bob").place(id)
	for _, p := range places {
		if p == at {
			return
		}
	}
	r.t.Errorf("the message is in %q, and should be in %s", at, strings.Join(places, " or "))
}

// must fails the test on an error without faults.
func (r *faultRun) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Errorf("without faults: %v", err)
	}
}

// dropScene is a scene in which something was dropped. Taken in at last, it is
// one of these and nothing else is left of it.
func dropScene(name string, content []byte, messages, events, bad int) faultScene {
	return faultScene{
		setup: func(r *faultRun) { drop(r.t, r.bob, "inbox", name, content) },
		act: func(r *faultRun) error {
			_, err := r.bob.TakeIn(ctx)
			return err
		},
		after: func(r *faultRun) {
			for range 2 {
				takeIn(r.t, r.bob)
			}
			c := takeCensus(r.t, r.path, "bob")
			if len(c.places) != messages || len(c.bad) != bad || len(c.tmp)+len(c.inbox) != 0 {
				r.t.Errorf("%d messages, bad %q, tmp %q, inbox %q", len(c.places), c.bad, c.tmp, c.inbox)
			}
			n := 0
			for _, e := range eventsOf(r.t, r.bob) {
				if e.Source == "drop" && string(e.Wire) == string(content) {
					n++
				}
			}
			if n != events {
				r.t.Errorf("%d events in the log", n)
			}
			for _, m := range c.texts {
				got := []byte(m.Body)
				if len(m.Attachments) > 0 {
					f, err := r.Attachment(m.Attachments[0])
					if err != nil {
						r.t.Error(err)
						return
					}
					got, _ = io.ReadAll(f)
					f.Close()
				}
				if string(got) != string(content) && m.Body != "the body" {
					r.t.Errorf("%d bytes came of %d", len(got), len(content))
				}
			}
			for _, b := range c.bad {
				got, _ := os.ReadFile(filepath.Join(r.bob.Path(), "inbox", "bad", b))
				if string(got) != string(content) {
					r.t.Errorf("bad has %q", got)
				}
			}
		},
	}
}

const gone = "01900000-0000-7000-8000-0000000000aa"

var faultScenes = map[string]faultScene{
	"deliver one": {
		act:   func(r *faultRun) error { return r.post(r.message(r.bob)) },
		after: (*faultRun).again,
	},
	"deliver to two": {
		act:   func(r *faultRun) error { return r.post(r.message(r.bob, r.carol)) },
		after: (*faultRun).again,
	},
	"deliver a batch": {
		act: func(r *faultRun) error {
			return r.post(r.message(r.bob), r.message(r.carol, r.bob), r.message(r.bob))
		},
		after: (*faultRun).again,
	},
	"deliver a given id": {
		act: func(r *faultRun) error {
			p := r.message(r.bob)
			p.Given = true
			return r.post(p)
		},
		after: (*faultRun).again,
	},
	"deliver what was read": {
		setup: func(r *faultRun) { r.given(1, false); r.must(r.read()) },
		act: func(r *faultRun) error {
			p := &Post{Message: sealed(r.ids[0], "message 0", false), To: []*Box{r.bob}, Given: true}
			Deliver(ctx, p)
			return p.Outcomes[0].Err
		},
		after: func(r *faultRun) { r.in(r.ids[0], placeDone) },
	},
	"read": {
		setup: func(r *faultRun) { r.given(2, false); r.given(1, true) },
		act:   (*faultRun).read,
		after: func(r *faultRun) {
			for i, id := range r.ids {
				switch {
				case r.shown[id] == 0:
					r.in(id, placeNew)
				case i == 2:
					r.in(id, placeNew, placeCur)
				default:
					r.in(id, placeNew, placeDone)
				}
			}
			r.must(r.read())
			r.in(r.ids[0], placeDone)
			r.in(r.ids[1], placeDone)
			r.in(r.ids[2], placeCur)
		},
	},
	"take": {
		setup: func(r *faultRun) { r.given(1, true) },
		act:   func(r *faultRun) error { _, err := r.bob.Take(ctx, r.ids[0]); return err },
		after: func(r *faultRun) {
			r.in(r.ids[0], placeNew, placeCur)
			_, err := r.bob.Take(ctx, r.ids[0])
			r.must(err)
			r.in(r.ids[0], placeCur)
		},
	},
	"settle": {
		setup: func(r *faultRun) { r.given(1, true); r.must(r.read()) },
		act:   func(r *faultRun) error { return r.bob.Settle(ctx, r.ids[0], true) },
		after: func(r *faultRun) {
			r.in(r.ids[0], placeCur, placeDone)
			r.must(r.bob.Settle(ctx, r.ids[0], true))
			r.in(r.ids[0], placeDone)
		},
	},
	"unread": {
		setup: func(r *faultRun) { r.given(1, false); r.must(r.read()) },
		act:   func(r *faultRun) error { _, err := r.bob.Unread(ctx, r.ids[0]); return err },
		after: func(r *faultRun) {
			r.in(r.ids[0], placeDone, placeNew)
			_, err := r.bob.Unread(ctx, r.ids[0])
			r.must(err)
			r.in(r.ids[0], placeNew)
		},
	},
	"withdraw": {
		setup: func(r *faultRun) { r.given(1, false) },
		act: func(r *faultRun) error {
			_, err := r.bob.Withdraw(ctx, r.ids[0], r.alice.Address())
			return err
		},
		after: func(r *faultRun) {
			r.in(r.ids[0], placeNew, placeWithdrawn)
			_, err := r.bob.Withdraw(ctx, r.ids[0], r.alice.Address())
			r.must(err)
			r.in(r.ids[0], placeWithdrawn)
		},
	},
	"drop text":       dropScene("a note", []byte("hello\n"), 1, 0, 0),
	"drop a message":  dropScene("m.json", []byte(`{"body":"the body"}`), 1, 0, 0),
	"drop with an id": dropScene("m.json", []byte(`{"id":"`+gone+`","body":"the body"}`), 1, 0, 0),
	"drop an event":   dropScene("e.json", []byte(`{"kind":"turn_started","n":18446744073709551615}`), 0, 1, 0),
	"drop binary":     dropScene("b.bin", []byte("\x00\xff\x00"), 1, 0, 0),
	"drop too much":   dropScene("long", []byte(strings.Repeat("x", wire.MaxBody+1)), 1, 0, 0),
	"drop torn JSON":  dropScene("t.json", []byte(`{"body":"the`), 0, 0, 1),
	"append": {
		act: func(r *faultRun) error {
			return r.bob.Append(ctx, AppendOptions{Sync: true},
				wire.Event{Kind: "a", EventID: "1"}, wire.Event{Kind: "b", EventID: "2"})
		},
		after: func(r *faultRun) {
			r.must(r.bob.Append(ctx, AppendOptions{}, wire.Event{Kind: "a", EventID: "1"}, wire.Event{Kind: "b", EventID: "2"}))
			if n := len(eventsOf(r.t, r.bob)); n != 2 {
				r.t.Errorf("%d events", n)
			}
		},
	},
	"append after a torn line": {
		setup: func(r *faultRun) {
			r.must(r.bob.Append(ctx, AppendOptions{}, wire.Event{Kind: "a", EventID: "1"}))
			r.torn = []byte(`{"seq":2,"at":"2026`)
			log := filepath.Join(r.bob.Path(), "events", segmentName(1))
			f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND, 0)
			r.must(err)
			f.Write(r.torn)
			f.Close()
		},
		act: func(r *faultRun) error {
			return r.bob.Append(ctx, AppendOptions{}, wire.Event{Kind: "b", EventID: "2"})
		},
		after: func(r *faultRun) {
			r.must(r.bob.Append(ctx, AppendOptions{}, wire.Event{Kind: "b", EventID: "2"}))
			if n := len(eventsOf(r.t, r.bob)); n != 2 {
				r.t.Errorf("%d events", n)
			}
			kept := false
			for _, b := range takeCensus(r.t, r.path, "bob").bad {
				got, _ := os.ReadFile(filepath.Join(r.bob.Path(), "inbox", "bad", b))
				kept = kept || string(got) == string(r.torn)
			}
			if !kept {
				r.t.Error("the torn line is not in bad")
			}
		},
	},
	"attach": {
		act: func(r *faultRun) error { _, err := r.Attach("x", strings.NewReader("content")); return err },
		after: func(r *faultRun) {
			a, err := r.Attach("x", strings.NewReader("content"))
			r.must(err)
			f, err := r.Attachment(a)
			r.must(err)
			if err == nil {
				f.Close()
			}
		},
	},
	"gc": {
		setup: func(r *faultRun) { r.given(3, false); r.must(r.read()) },
		act: func(r *faultRun) error {
			_, err := r.bob.GC(ctx, GCOptions{Before: time.Now()})
			return err
		},
		after: func(r *faultRun) {
			_, err := r.bob.GC(ctx, GCOptions{Before: time.Now()})
			r.must(err)
			for _, id := range r.ids {
				r.in(id, placeArchive)
			}
		},
	},
	"gc into a day that is there": {
		setup: func(r *faultRun) {
			for range 2 {
				r.given(2, false)
				r.must(r.read())
				if len(r.ids) == 2 {
					_, err := r.bob.GC(ctx, GCOptions{Before: time.Now()})
					r.must(err)
				}
			}
		},
		act: func(r *faultRun) error {
			_, err := r.bob.GC(ctx, GCOptions{Before: time.Now()})
			return err
		},
		after: func(r *faultRun) {
			_, err := r.bob.GC(ctx, GCOptions{Before: time.Now()})
			r.must(err)
			for _, id := range r.ids {
				r.in(id, placeArchive)
			}
		},
	},
	"retire": {
		setup: func(r *faultRun) { r.given(1, false) },
		act:   func(r *faultRun) error { _, err := r.Retire(ctx, "bob"); return err },
		after: func(r *faultRun) {
			if !r.bob.Exists() {
				r.must(r.Restore(ctx, "bob"))
			}
			r.in(r.ids[0], placeNew)
		},
	},
	"create": {
		act: func(r *faultRun) error { return r.Create(ctx, "dave") },
		after: func(r *faultRun) {
			if err := r.Create(ctx, "dave"); err != nil && !errors.Is(err, ErrExists) {
				r.t.Error(err)
			}
			deliver(r.t, r.Box("dave"), sealed(wire.NewID(), "x", false))
		},
	},
}

// scene begins a run of a scene: the mailboxes and what was before.
func (scene faultScene) begin(t *testing.T, at *trip) *faultRun {
	path, err := os.MkdirTemp(scratchTop, "fault-")
	if err != nil {
		t.Fatal(err)
	}
	r := newFaultRun(t, path, openStore(t, path, at.fault, "alice", "bob", "carol"))
	r.trip = at
	if scene.setup != nil {
		scene.setup(r)
	}
	return r
}

func newFaultRun(t tb, path string, s *Store) *faultRun {
	return &faultRun{t: t, path: path, Store: s, alice: s.Box("alice"), bob: s.Box("bob"), carol: s.Box("carol"), shown: map[wire.ID]int{}}
}

// sound looks at all mailboxes of the run.
func (r *faultRun) sound() {
	for _, agent := range []wire.Name{"bob", "carol"} {
		takeCensus(r.t, r.path, agent).sound(r.t)
	}
}

// end is what must hold at last.
func (scene faultScene) end(r *faultRun) {
	r.sound()
	scene.after(r)
	r.sound()
	for _, agent := range []wire.Name{"bob", "carol"} {
		if r.Box(agent).Exists() {
			eventsOf(r.t, r.Box(agent))
		}
	}
	r.Store.Close()
	os.RemoveAll(r.path)
}

func (scene faultScene) run(t *testing.T, at *trip) {
	r := scene.begin(t, at)
	at.armed = true
	err := scene.act(r)
	at.armed = false
	if err != nil {
		r.names(err)
	}
	if len(at.again) > 0 {
		t.Errorf("fsync again after it failed: %s", at.again)
	}
	scene.end(r)
}

// names fails unless an error says which operation it was, and why.
func (r *faultRun) names(err error) {
	if r.trip.k == 0 {
		r.t.Fatal(fmt.Errorf("without a fault: %w", err))
	}
	if !errors.Is(err, r.trip.err) {
		r.t.Errorf("the error is not the one of the system: %v", err)
	}
	for _, op := range r.trip.failed {
		if strings.Contains(err.Error(), string(op)) {
			return
		}
	}
	r.t.Errorf("the error names no operation that failed (%s): %v", r.trip.failed, err)
}

var scratchTop string

// stressed runs leave nothing out.
var stressed = os.Getenv("ATM_STRESS") != ""

// Every file operation of what a mailbox does fails once, and every one from
// each moment on. Nothing that was acknowledged is lost, nothing is torn or
// doubled, and the same again succeeds.
func TestFaults(t *testing.T) {
	scratchTop = scratch(t)
	t.Run("scenes", func(t *testing.T) {
		for name, scene := range faultScenes {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				clean := &trip{}
				scene.run(t, clean)
				errnos := []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EROFS, syscall.EDQUOT}
				step := 1
				if name == "drop too much" && !stressed { // a megabyte each time
					errnos, step = errnos[:1], 8
				}
				runs := 0
				for k := 1; k <= clean.n; k += step {
					for i, errno := range errnos {
						for _, onward := range []bool{false, true} {
							if onward && i != k%len(errnos) && !stressed {
								continue // one of them each
							}
							at := &trip{k: k, err: errno, onward: onward}
							scene.run(t, at)
							runs++
							if at.syncs > clean.syncs {
								t.Errorf("%d fsyncs, and %d without faults", at.syncs, clean.syncs)
							}
							if t.Failed() {
								t.Fatalf("operation %d of %d (%s), %v, from there on: %v", k, clean.n, at.failed, errno, onward)
							}
						}
					}
				}
				t.Logf("%d operations, %d runs", clean.n, runs)
			})
		}
	})
}

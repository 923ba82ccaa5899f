//go:build unix

package maildir_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/drop"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/internal/maildir/holder"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/maildir/keep"
	"github.com/agentteammail/atm/internal/maildir/once"
	"github.com/agentteammail/atm/internal/testround"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/wire"
)

// failing makes the k-th file operation fail, or all from the k-th on, while it is armed.
type failing struct {
	mu     sync.Mutex
	armed  bool
	k      int // 0: none
	onward bool
	err    error

	n      int             // operations so far
	kinds  []string        // what each of them did, and in which directory
	syncs  int             // fsyncs of files so far
	failed []string        // operations that failed, with names
	dead   map[string]bool // names whose fsync failed
	again  []string        // fsyncs of those, repeated
}

func (f *failing) fault(op, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.armed {
		return nil
	}
	f.n++
	f.kinds = append(f.kinds, op+" "+filepath.Dir(name))
	f.syncs += count(op == "fsync")
	isSync := op == "fsync" || op == "fsync directory"
	if isSync && f.dead[name] {
		f.again = append(f.again, name)
	}
	if f.k == 0 || f.n < f.k || f.n > f.k && !f.onward {
		return nil
	}
	f.failed = append(f.failed, op+" "+name)
	if isSync {
		if f.dead == nil {
			f.dead = map[string]bool{}
		}
		f.dead[name] = true
	}
	return f.err
}

// scene is an operation on bob's mailbox, its setup, and a check of what must hold afterwards, wherever the operation
// failed or was killed.
type scene struct {
	setup func(*run)
	act   func(*run) error // under faults
	after func(*run)       // without
}

// run is one run of a scene.
type run struct {
	t                 tb
	at                *failing
	s                 *maildir.Store
	alice, bob, carol *maildir.Box
	ids               []wire.ID // of messages that setup put into bob's mailbox
	posts             []*maildir.Post
	shown, unmarked   map[wire.ID]int          // how often in all, and how often not as a possible repeat
	showing           func(id wire.ID, b bool) // called with each message shown and whether it is marked as a repeat
	calls             int                      // of hooks
}

func newRun(t tb, s *maildir.Store, at *failing) *run {
	return &run{t: t, at: at, s: s, alice: s.Box("alice"), bob: s.Box("bob"), carol: s.Box("carol"), shown: map[wire.ID]int{}, unmarked: map[wire.ID]int{}}
}

// must fails the test on an error without faults.
func (r *run) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Errorf("without faults: %v", err)
	}
}

// has delivers n messages from a past day to bob.
func (r *run) has(n int, ack bool) {
	for range n {
		m := withID(daysAgo(3), message(fmt.Sprint("message ", len(r.ids))))
		m.RequiresAck = ack
		r.ids = append(r.ids, deliver(r.t, r.bob, m)...)
	}
}

func (r *run) message(to ...*maildir.Box) *maildir.Post {
	return &maildir.Post{Message: message("x"), To: to, Sender: r.alice}
}

// post delivers, and checks what every outcome promises.
func (r *run) post(posts ...*maildir.Post) (err error) {
	r.posts = posts
	maildir.Deliver(ctx, posts...)
	for _, p := range posts {
		for _, o := range p.Outcomes {
			err = errors.Join(err, o.Err)
			var nd *maildir.NotDurableError
			if o.IsStored && o.Err != nil && !errors.As(o.Err, &nd) || !o.IsStored && o.Err == nil {
				r.t.Errorf("stored is %v: %v", o.IsStored, o.Err)
			}
			if there := len(takeCensus(r.t, o.Box).places[p.Message.ID]) == 1; there != o.IsStored {
				r.t.Errorf("stored is %v, the message is there: %v", o.IsStored, there)
			}
		}
	}
	return err
}

// postAgain sends the messages again, under the same ids.
func (r *run) postAgain() {
	for _, p := range r.posts {
		p.Given = true
	}
	r.must(r.post(r.posts...))
}

func (r *run) show(id wire.ID, marked bool) {
	r.shown[id]++
	r.unmarked[id] += count(!marked)
	if r.showing != nil {
		r.showing(id, marked)
	}
}

func (r *run) read() error {
	_, err := inbox.Read(ctx, r.bob, inbox.ReadOptions{}, func(b inbox.Batch) (int, error) {
		for _, it := range b.Items {
			r.show(it.ID, true) // a person who reads again knows that it is a repeat
		}
		return len(b.Items), nil
	})
	return err
}

// types claims and types bob's mail, as a runner does.
func (r *run) types() error {
	runner, err := claim.HoldRunner(ctx, r.s, "bob")
	if err != nil {
		return err
	}
	defer runner.Release()
	c, err := runner.Claim(ctx, r.ids)
	if err != nil {
		return err
	}
	for _, it := range c.Items {
		r.show(it.ID, c.Repeat[it.ID])
	}
	return c.Typed(ctx)
}

// handsOver makes two calls of a session's hook. The second proves that the messages of the first were received.
func (r *run) handsOver() (err error) {
	for range 2 {
		r.calls++
		to := holder.New(holder.Session, "s1", strconv.Itoa(r.calls), time.Now().Add(time.Duration(r.calls)*time.Minute))
		_, e := claim.Settle(ctx, r.bob, false, readBy("s1"))
		h, handErr := claim.HandOver(ctx, r.bob, to, false, inbox.ReadOptions{})
		if e = errors.Join(e, handErr); e != nil {
			return errors.Join(e, h.Release(ctx))
		}
		for _, it := range h.Items {
			r.show(it.ID, h.Repeat[it.ID])
		}
		_, e = h.Sent(ctx)
		err = errors.Join(err, e)
	}
	return err
}

func (r *run) lease(by wire.Name) error {
	it, err := claim.Lease(ctx, r.bob, addr(by), time.Minute, inbox.ReadOptions{}, func(it *wire.Item, _ wire.Lease) (bool, error) {
		r.show(it.ID, true)
		return true, nil
	})
	if err == nil && it == nil {
		return errNothing
	}
	return err
}

var errNothing = errors.New("there is nothing to take")

// in fails the test unless a message of bob's is in one of these places.
func (r *run) in(id wire.ID, places ...string) {
	r.t.Helper()
	if at := takeCensus(r.t, r.bob).place(id); !slices.Contains(places, at) {
		r.t.Errorf("the message is in %q, and should be in %q", at, places)
	}
}

// consumed checks where three messages are, of which the last wants an ack, after an operation that may have shown
// them, and after the operation is repeated.
func (r *run) consumed(show func(*run) error) {
	for i, id := range r.ids {
		switch {
		case r.shown[id] == 0:
			r.in(id, "new")
		case i == 2:
			r.in(id, "new", "cur")
		default:
			r.in(id, "new", "done")
		}
	}
	r.calls += 10
	r.must(show(r))
	r.in(r.ids[0], "done")
	r.in(r.ids[1], "done")
	r.in(r.ids[2], "cur")
	for _, id := range r.ids {
		if r.unmarked[id] > 1 {
			r.t.Errorf("%s was given out %d times, %d of them unmarked", id, r.shown[id], r.unmarked[id])
		}
	}
}

// moveScene is a scene in which the first message moves from one place to another. If it has moved, repeating the
// operation may do nothing.
func moveScene(ack bool, from, to string, setup, act func(*run) error) scene {
	return scene{
		setup: func(r *run) {
			r.has(1, ack)
			if setup != nil {
				r.must(setup(r))
			}
		},
		act: act,
		after: func(r *run) {
			r.in(r.ids[0], from, to)
			r.must(act(r))
			r.in(r.ids[0], to)
		},
	}
}

// dropScene is a scene in which a file was dropped. In the end it is ingested as one of these, and nothing else is left
// of it.
func dropScene(name, content string, messages, events, bad int) scene {
	return scene{
		setup: func(r *run) { dropFile(r.t, r.bob, "inbox", name, content) },
		act: func(r *run) error {
			_, err := drop.Ingest(ctx, r.bob, 0)
			return err
		},
		after: func(r *run) {
			for range 2 {
				takeIn(r.t, r.bob)
			}
			c := takeCensus(r.t, r.bob)
			// Temp files are removed later.
			c.tmp = slices.DeleteFunc(c.tmp, func(n string) bool { return !strings.HasSuffix(n, ".drop") })
			if len(c.places) != messages || len(c.bad) != bad || len(c.tmp)+len(c.inbox) != 0 {
				r.t.Errorf("%d messages, bad %q, tmp %q, inbox %q", len(c.places), c.bad, c.tmp, c.inbox)
			}
			if got := dropEvents(r.t, r.bob); len(got) != events || events > 0 && string(got[0].Wire) != content {
				r.t.Errorf("events %v", got)
			}
			for _, m := range c.texts {
				got := []byte(m.Body)
				if len(m.Attachments) > 0 {
					f, err := filestore.Open(r.s.Dir(), m.Attachments[0])
					r.must(err)
					got, _ = io.ReadAll(f)
					f.Close()
				}
				if string(got) != content && m.Body != "the body" {
					r.t.Errorf("%d bytes came of %d", len(got), len(content))
				}
			}
			for _, b := range c.bad {
				if got, _ := os.ReadFile(filepath.Join(r.bob.Path(), "inbox/bad", b)); string(got) != content {
					r.t.Errorf("bad has %q", got)
				}
			}
		},
	}
}

func (r *run) gc() error {
	_, err := keep.GC(ctx, r.bob, keep.GCOptions{Before: time.Now()})
	return err
}

func (r *run) archived() {
	r.must(r.gc())
	for _, id := range r.ids {
		r.in(id, "archive")
	}
}

func (r *run) restore() error { err := keep.Restore(ctx, r.s, "bob"); return err }

func (r *run) back() {
	if !r.bob.Exists() {
		r.must(r.restore())
	}
	r.in(r.ids[0], "new")
}

var scenes = map[string]scene{
	"deliver one":      {act: func(r *run) error { return r.post(r.message(r.bob)) }, after: (*run).postAgain},
	"deliver to two":   {act: func(r *run) error { return r.post(r.message(r.bob, r.carol)) }, after: (*run).postAgain},
	"deliver a batch":  {act: func(r *run) error { return r.post(r.message(r.bob), r.message(r.carol, r.bob), r.message(r.bob)) }, after: (*run).postAgain},
	"deliver given id": {act: func(r *run) error { p := r.message(r.bob); p.Given = true; return r.post(p) }, after: (*run).postAgain},
	"deliver what was read": {
		setup: func(r *run) { r.has(1, false); r.must(r.read()) },
		act:   func(r *run) error { return post(r.bob, withID(r.ids[0], message("message 0")), true).Err },
		after: func(r *run) { r.in(r.ids[0], "done") },
	},
	"read": {
		setup: func(r *run) { r.has(2, false); r.has(1, true) },
		act:   (*run).read,
		after: func(r *run) { r.consumed((*run).read) },
	},
	"type": {
		setup: func(r *run) { r.has(2, false); r.has(1, true) },
		act:   (*run).types,
		after: func(r *run) { r.consumed((*run).types) },
	},
	"hand over": {
		setup: func(r *run) { r.has(2, false); r.has(1, true) },
		act:   (*run).handsOver,
		after: func(r *run) { r.consumed((*run).handsOver) },
	},
	"mark read": moveScene(true, "new", "cur", nil, func(r *run) error { err := r.bob.MarkRead(ctx, r.ids[0]); return err }),
	"mark acked": moveScene(true, "cur", "done", (*run).read, func(r *run) error {
		return r.bob.MarkAcked(ctx, r.ids[0], r.bob.Address())
	}),
	"mark unread": moveScene(false, "done", "new", (*run).read, func(r *run) error { err := r.bob.MarkUnread(ctx, r.ids[0]); return err }),
	"withdraw":    moveScene(false, "new", "withdrawn", nil, func(r *run) error { _, err := r.bob.WithdrawRead(ctx, r.ids[0], addr("alice"), nil); return err }),
	"lease": {
		setup: func(r *run) { r.has(2, false) },
		act:   func(r *run) error { return r.lease("carol") },
		after: func(r *run) {
			by := r.bob.Address()
			if l := leaseOf(r.t, r.bob, r.ids[0]); l.By != (wire.Address{}) {
				by = l.By
				r.must(r.lease("alice")) // the other
			}
			r.must(r.bob.MarkAcked(ctx, r.ids[0], by))
			r.in(r.ids[0], "done")
			r.in(r.ids[1], "new")
		},
	},
	"finish a lease": moveScene(true, "new", "done", func(r *run) error { return r.lease("carol") }, func(r *run) error {
		return r.bob.MarkAcked(ctx, r.ids[0], addr("carol"))
	}),
	"end a lease": {
		setup: func(r *run) { r.has(1, false); r.must(r.lease("carol")) },
		act:   func(r *run) error { return claim.EndLease(ctx, r.bob, r.ids[0], addr("carol")) },
		after: func(r *run) {
			if err := claim.EndLease(ctx, r.bob, r.ids[0], addr("carol")); !errors.Is(err, maildir.ErrNotHeld) {
				r.must(err)
			}
			r.must(r.lease("alice"))
		},
	},
	"drop text":       dropScene("a note", "hello\n", 1, 0, 0),
	"drop a message":  dropScene("m.json", `{"body":"the body"}`, 1, 0, 0),
	"drop with an id": dropScene("m.json", `{"id":"`+string(past)+`","body":"the body"}`, 1, 0, 0),
	"drop with the id of another": func() scene {
		s := dropScene("m.json", `{"id":"`+string(past)+`","body":"the body"}`, 2, 0, 0)
		dropIt := s.setup
		s.setup = func(r *run) {
			put(r.t, r.bob, "inbox/new", withID(past, message("the body")))
			dropIt(r)
		}
		return s
	}(),
	"drop an event":  dropScene("e.json", `{"kind":"turn_started","turn_id":"t","n":18446744073709551615}`, 0, 1, 0),
	"drop binary":    dropScene("b.bin", "\x00\xff\x00", 1, 0, 0),
	"drop torn JSON": dropScene("t.json", `{"body":"the`, 0, 0, 1),
	"attach": {
		act: func(r *run) error { _, err := filestore.Add(r.s.Dir(), "x", strings.NewReader("content")); return err },
		after: func(r *run) {
			a, err := filestore.Add(r.s.Dir(), "x", strings.NewReader("content"))
			r.must(err)
			f, err := filestore.Open(r.s.Dir(), a)
			r.must(err)
			f.Close()
		},
	},
	"note an idempotency key": {
		act: func(r *run) error {
			key := once.Key{Name: "x"}
			_, err := once.SetID(r.alice, &key)
			if err == nil {
				r.ids = []wire.ID{key.ID}
			}
			return err
		},
		after: func(r *run) {
			key := once.Key{Name: "x"}
			_, err := once.SetID(r.alice, &key)
			r.must(err)
			if len(r.ids) > 0 && key.ID != r.ids[0] {
				r.t.Errorf("another id")
			}
		},
	},
	"gc": {setup: func(r *run) { r.has(3, false); r.must(r.read()) }, act: (*run).gc, after: (*run).archived},
	"gc into a day that is there": {
		setup: func(r *run) {
			r.has(2, false)
			r.must(errors.Join(r.read(), r.gc()))
			r.has(2, false)
			r.must(r.read())
		},
		act: (*run).gc, after: (*run).archived,
	},
	"retire":  {setup: func(r *run) { r.has(1, false) }, act: func(r *run) error { _, err := keep.Retire(ctx, r.s, "bob"); return err }, after: (*run).back},
	"restore": {setup: func(r *run) { r.has(1, false); _, err := keep.Retire(ctx, r.s, "bob"); r.must(err) }, act: (*run).restore, after: (*run).back},
	"create": {
		act: func(r *run) error { return r.s.Create(ctx, "dave") },
		after: func(r *run) {
			if err := r.s.Create(ctx, "dave"); !errors.Is(err, maildir.ErrExists) {
				r.must(err)
			}
			deliver(r.t, r.s.Box("dave"), message("x"))
		},
	},
}

// begin makes the mailboxes of a run and runs the setup.
func (sc scene) begin(t *testing.T, top string, at *failing) *run {
	path, err := os.MkdirTemp(top, "run-")
	must(t, err)
	r := newRun(t, openStore(t, path, at.fault, "alice", "bob", "carol"), at)
	if sc.setup != nil {
		sc.setup(r)
	}
	return r
}

// end checks what must hold in the end.
func (sc scene) end(r *run) {
	for range 2 {
		for _, b := range []*maildir.Box{r.bob, r.carol} {
			takeCensus(r.t, b).sound(r.t)
			eventsOf(r.t, b)
		}
		if sc.after != nil {
			sc.after(r)
		}
		sc.after = nil
	}
	r.s.Close()
	os.RemoveAll(r.s.Dir().Path())
}

func (sc scene) run(t *testing.T, top string, at *failing) {
	r := sc.begin(t, top, at)
	at.armed = true
	err := sc.act(r)
	at.armed = false
	switch {
	case err == nil:
	case at.k == 0:
		t.Fatal("without a fault: ", err)
	case err == errNothing && at.onward: // no message could be read
	case !errors.Is(err, at.err):
		t.Errorf("the error is not the system's: %v", err)
	case !slices.ContainsFunc(at.failed, func(f string) bool { op, _, _ := strings.Cut(f, " "); return strings.Contains(err.Error(), op) }):
		t.Errorf("the error names no operation that failed (%s): %v", at.failed, err)
	}
	if len(at.again) > 0 {
		t.Errorf("fsync again after it failed: %s", at.again)
	}
	sc.end(r)
}

// isFull: each operation fails, and is killed at, and not only some of each kind.
var isFull = testround.IsLong || os.Getenv("ATM_FAULTS") != ""

// Each file operation of each scene fails once, and all operations fail from each point on; without ATM_FAULTS the first
// of each kind, and all from the last of each kind on. No acknowledged message is lost, none is torn or doubled, no fsync
// is repeated, and repeating the operation succeeds.
func TestFaults(t *testing.T) {
	top := testtree.Memory(t)
	t.Run("scenes", func(t *testing.T) {
		for name, sc := range scenes {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				clean := &failing{}
				sc.run(t, top, clean)
				errnos := []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EROFS, syscall.EDQUOT}
				for k := 1; k <= clean.n; k++ {
					for i, errno := range errnos {
						onward := i > 0 // EIO once, one of the other errors from there on
						same := clean.kinds[k:]
						if !onward {
							same = clean.kinds[:k-1]
						}
						if !isFull && (onward && i != 1+k%3 || slices.Contains(same, clean.kinds[k-1])) {
							continue
						}
						at := &failing{k: k, err: errno, onward: onward}
						sc.run(t, top, at)
						if at.syncs > clean.syncs {
							t.Errorf("%d fsyncs, and %d without faults", at.syncs, clean.syncs)
						}
						if t.Failed() {
							t.Fatalf("operation %d of %d (%s), %v, from there on: %v", k, clean.n, at.failed, errno, onward)
						}
					}
				}
				t.Logf("%d operations", clean.n)
			})
		}
	})
}

// playScene runs one scene and kills its own process in place of the k-th file operation.
func playScene(p *process) {
	k, _ := strconv.Atoi(os.Getenv("ATM_TEST_KILL"))
	var n atomic.Int64
	var armed atomic.Bool
	s, err := open(p.store.Dir().Path(), func(op, name string) error {
		if armed.Load() && n.Add(1) == int64(k) {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	r := newRun(teller{p}, s, &failing{})
	for _, id := range strings.Fields(os.Getenv("ATM_TEST_IDS")) {
		r.ids = append(r.ids, wire.ID(id))
	}
	r.showing = func(id wire.ID, marked bool) { p.say("show %s %v", id, marked) }
	armed.Store(true)
	if err := scenes[os.Getenv("ATM_TEST_SCENE")].act(r); err != nil {
		p.say("error %s", err)
	}
	p.say("whole")
	os.Exit(0)
}

// teller reports failures to the process that started this one.
type teller struct{ p *process }

func (t teller) Helper()                        {}
func (t teller) Error(a ...any)                 { t.p.say("error %s", fmt.Sprint(a...)) }
func (t teller) Errorf(format string, a ...any) { t.p.say("error "+format, a...) }
func (t teller) Fatal(a ...any)                 { t.p.say("error %s", fmt.Sprint(a...)); os.Exit(1) }

// If a process is killed before any of its file operations, of which ATM_FAULTS tries each, others can go on: no message is
// torn or in two places, and a dropped file is ingested once.
func TestKilledAtEachStep(t *testing.T) {
	top := testtree.Memory(t)
	t.Run("scenes", func(t *testing.T) {
		for name, sc := range scenes {
			step := 12 // only some, since starting a process is slow
			if strings.HasPrefix(name, "drop") {
				step = 5
			}
			if isFull {
				step = 1
			}
			first := 1 + testround.Rand.IntN(step)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for k := first; ; k += step {
					r := sc.begin(t, top, &failing{})
					c, out := start(t, "scene", r.s.Dir().Path(), "ATM_TEST_SCENE="+name, "ATM_TEST_KILL="+strconv.Itoa(k), "ATM_TEST_IDS="+strings.Trim(fmt.Sprint(r.ids), "[]"))
					whole := false
					for out.Scan() {
						word, rest, _ := strings.Cut(out.Text(), " ")
						switch word {
						case "whole":
							whole = true
						case "error":
							t.Error(rest)
						case "show":
							id, marked, _ := strings.Cut(rest, " ")
							r.show(wire.ID(id), marked == "true")
						}
					}
					c.Wait()
					if !whole && !c.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
						t.Errorf("it ended by itself: %v", c.ProcessState)
					}
					sc.end(r)
					if t.Failed() {
						t.Fatalf("killed at operation %d", k)
					}
					if whole {
						return
					}
				}
			})
		}
	})
}

//go:build unix

package mailbox

import (
	"errors"
	"fmt"
	"os"
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

// hold takes a message of bob's under a lease, and is shown it.
func (r *faultRun) hold(by wire.Name) error {
	h, err := r.bob.Hold(ctx, HoldOptions{By: r.Box(by).Address(), For: time.Minute}, func(h *Hold) (bool, error) {
		r.shown[h.ID]++
		if r.showing != nil {
			r.showing(h.ID)
		}
		return true, nil
	})
	if err == nil && h == nil {
		return errors.New("there is nothing to take")
	}
	return err
}

// free lets every lease run out.
func (r *faultRun) free() {
	r.clock = func() time.Time { return time.Now().Add(time.Hour) }
}

// types does what a runner does with bob's mail.
func (r *faultRun) types() error {
	runner, err := r.HoldRunner(ctx, "bob")
	if err != nil {
		return err
	}
	defer runner.Release()
	if _, err := r.bob.Unfinished(ctx); err != nil {
		return err
	}
	c, err := r.bob.Claim(ctx, r.ids)
	if err != nil {
		return err
	}
	for _, it := range c.Items {
		r.shown[it.ID]++
		if r.showing != nil {
			r.showing(it.ID)
		}
	}
	return c.Taken(ctx)
}

// consumed says where the first three messages are after they were shown, the
// third of which wants an ack, and after the same again.
func (r *faultRun) consumed(show func(*faultRun) error) {
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
	r.must(show(r))
	r.in(r.ids[0], placeDone)
	r.in(r.ids[1], placeDone)
	r.in(r.ids[2], placeCur)
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

// begin begins a run of a scene: the mailboxes and what was before.
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

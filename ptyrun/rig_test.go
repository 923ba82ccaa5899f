package ptyrun

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/runhost"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/internal/testprogram"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	liveOn()
	flag.Set("test.parallel", "6") // tests mostly wait, except floods, which run alone
	// Neither bash nor less keeps what is typed here.
	os.Setenv("HISTFILE", "")
	os.Setenv("LESSHISTFILE", "-")
	testprogram.Main(m)
}

// quick is the timing for a program that draws at once.
var quick = run.Timing{
	FirstIdle: 150 * time.Millisecond, Idle: 100 * time.Millisecond, PersonQuiet: 400 * time.Millisecond,
	Render: 2 * time.Second, Quiet: 40 * time.Millisecond,
	Accept:    3 * time.Second,
	Unstarted: 2 * time.Second, Settle: 60 * time.Millisecond, Stale: 500 * time.Millisecond, Backoff: 30 * time.Millisecond,
	Leftovers: 250 * time.Millisecond, Logged: 15 * time.Second, Remind: 1500 * time.Millisecond,
	Retry: 500 * time.Millisecond, Check: 500 * time.Millisecond,
}

// rig is a team: alice writes, bob is run, carol leads.
type rig struct {
	t     *testing.T
	store *maildir.Store
	bob   *maildir.Box
	log   string // the fake agent's
	opt   Options
	hold  *claim.Runner
	state reducer.State

	mu    sync.Mutex
	asked []ask.Question
	done  chan struct{}
	exit  Exit
	err   error
	stop  context.CancelFunc

	runner *runner // guarded by mu; nil: it is starting
}

func newRig(t *testing.T) *rig {
	t.Helper()
	path := testtree.Short(t)
	dir, err := durable.Open(path)
	must(t, err)
	must(t, dir.Mkdir(".locks"))
	s := maildir.NewStore(dir, "main")
	t.Cleanup(func() { s.Close() })
	for _, n := range []wire.Name{"alice", "bob", "carol"} {
		must(t, s.Create(t.Context(), n))
	}
	r := &rig{t: t, store: s, bob: s.Box("bob"), log: filepath.Join(path, "fake.log"), done: make(chan struct{})}
	r.opt = Options{
		Run: string(wire.NewID()), Dir: path, Cols: 100, Rows: 30, Inject: Body, Restart: Never, timing: &quick,
		Host: runhost.Host{NotifyLead: func(_ context.Context, q ask.Question) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.asked = append(r.asked, q)
			return nil
		}},
	}
	if testing.Verbose() {
		r.opt.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return r
}

// fake runs the fake agent.
func (r *rig) fake(o testagent.Options) *rig {
	r.t.Helper()
	o.Log = r.log
	if o.Profile == "" {
		o.Profile = "claude"
	}
	argv, env, err := testagent.Command(o)
	must(r.t, err)
	r.opt.Command, r.opt.Env = argv, append(os.Environ(), env...)
	r.opt.Driver, _ = driver.Named(o.Profile)
	return r
}

// program runs a real program.
func (r *rig) program(d string, argv ...string) *rig {
	r.opt.Command, r.opt.Env = argv, os.Environ()
	r.opt.Driver, _ = driver.Named(d)
	return r
}

// lowScreen is for a flood of lines: each of them moves all cells, which the race detector looks at one by one.
func (r *rig) lowScreen() *rig {
	r.opt.Rows = 4
	return r
}

// shell runs bash, in which atm says "would" and its arguments.
func (r *rig) shell() *rig {
	r.program("plain", "bash", "--norc", "--noprofile")
	must(r.t, os.WriteFile(filepath.Join(r.opt.Dir, "atm"), []byte("#!/bin/sh\necho would $*\n"), 0o755))
	r.opt.Env = append(r.opt.Env, "PATH="+r.opt.Dir+":"+os.Getenv("PATH"))
	return r
}

// prompt gives bob a text as his person would, and returns when his program has accepted it.
func (r *rig) prompt(text string) {
	r.t.Helper()
	must(r.t, r.give(text))
}

// give is prompt, from any goroutine.
func (r *rig) give(text string) error {
	r.mu.Lock()
	runner := r.runner
	r.mu.Unlock()
	return runner.inbox.Give(r.t.Context(), text, false)
}

// run starts the runner, until the test ends or stops it.
func (r *rig) run() *rig {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	hold, err := claim.HoldRunner(ctx, r.store, "bob")
	must(r.t, err)
	r.hold = hold
	logged, err := r.bob.Log().Newest(1 << 20)
	must(r.t, err)
	for i := range logged { // as Mail.Hold does
		r.state.Apply(&logged[i])
	}
	r.opt.Mail = &Mail{Mailbox: (*mailbox.Mailbox)(r.bob), hold: hold, state: r.state}
	go func() {
		defer close(r.done)
		h, err := Start(ctx, r.opt)
		if r.err = err; err != nil {
			return
		}
		r.mu.Lock()
		r.runner = h.r
		r.mu.Unlock()
		r.exit, r.err = h.Wait()
	}()
	r.t.Cleanup(func() {
		cancel()
		<-r.done
		hold.Release()
		if r.t.Failed() {
			r.t.Logf("events:\n%s", strings.Join(r.events(), "\n"))
			if es, err := testagent.ReadLog(r.log); err == nil {
				for _, e := range es {
					r.t.Logf("fake: %s %s %s %.200q", e.At.Format("05.000"), e.Event, e.Kind, e.Text)
				}
			}
		}
	})
	return r
}

// runOnce runs an agent until it has ended.
func runOnce(ctx context.Context, o Options) (exit Exit, err error) {
	h, err := Start(ctx, o)
	if err == nil {
		exit, err = h.Wait()
	}
	return exit, err
}

// wait waits until a condition holds.
func (r *rig) wait(what string, so func() bool) {
	r.t.Helper()
	end := time.Now().Add(10 * time.Minute) // needed only for a failure, or a flood on a busy machine
	for !so() {
		if time.Now().After(end) {
			r.t.Fatalf("waited in vain for %s\nscreen:\n%s", what, strings.Join(r.screen(), "\n"))
		}
		select {
		case <-r.done:
			if !so() {
				r.t.Fatalf("the run ended (%+v, %v) before %s", r.exit, r.err, what)
			}
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (r *rig) client() *control.Client {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		c, err := control.Dial(ctx, filepath.Join(r.bob.Path(), "run"))
		if err == nil {
			r.t.Cleanup(func() { c.Close() })
			c.Patience = time.Minute // on a busy machine
			return c
		}
		if ctx.Err() != nil {
			r.t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// status asks the runner, which serves a limited number of clients at once.
func (r *rig) status() (control.Status, error) {
	c := r.client()
	defer c.Close()
	return c.Status(r.t.Context())
}

func (r *rig) screen() []string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := control.Dial(ctx, filepath.Join(r.bob.Path(), "run"))
	if err != nil {
		return nil
	}
	defer c.Close()
	s, _ := c.Screen(ctx, control.ScreenRequest{})
	return s.Lines
}

// send delivers a message to bob.
func (r *rig) send(body string, with ...func(*wire.Message)) wire.ID {
	r.t.Helper()
	m := &wire.Message{ID: wire.NewID(), From: wire.Address{Agent: "alice", Team: "main"}, To: []wire.Address{r.bob.Address()}, Body: body, SentAt: time.Now().UTC()}
	for _, f := range with {
		f(m)
	}
	p := &maildir.Post{Message: m, Sender: r.store.Box("alice"), To: []*maildir.Box{r.bob}}
	maildir.Deliver(r.t.Context(), p)
	must(r.t, p.Outcomes[0].Err)
	return m.ID
}

func urgent(m *wire.Message) { m.Priority = "urgent" }

// events returns bob's events in short form.
func (r *rig) events() (out []string) {
	all, _ := r.bob.Log().Newest(1 << 20)
	for i := range all {
		e := &all[i]
		s := e.Kind
		for _, k := range []string{"new", "outcome", "reason", "status", "prompt", "tool", "code", "signal", "attempt"} {
			if v := e.Text(k); v != "" {
				s += fmt.Sprintf(" %s=%.200q", k, v)
			} else if n, ok := e.Uint(k); ok {
				s += fmt.Sprintf(" %s=%d", k, n)
			}
		}
		out = append(out, s)
	}
	return out
}

func (r *rig) has(prefix string) func() bool {
	return func() bool {
		return slices.ContainsFunc(r.events(), func(s string) bool { return strings.HasPrefix(s, prefix) })
	}
}

func (r *rig) read(id wire.ID) func() bool {
	return func() bool {
		it, err := r.bob.Get(id)
		return err == nil && it.State != wire.Unread
	}
}

func (r *rig) unread(id wire.ID) bool {
	it, err := r.bob.Get(id)
	return err == nil && it.State == wire.Unread
}

// fakes returns the entries of one kind in the fake agent's log.
func (r *rig) fakes(event string) []string {
	es, err := testagent.ReadLog(r.log)
	must(r.t, err)
	return es.Texts(event)
}

// idle waits until bob is at his prompt.
func (r *rig) idle() *rig {
	r.t.Helper()
	r.wait("the prompt", r.has(`state_change new="idle"`))
	return r
}

// states returns the states reported of bob, in order.
func (r *rig) states() []string {
	return slices.DeleteFunc(r.events(), func(s string) bool { return !strings.HasPrefix(s, "state_change") })
}

func (r *rig) questions() []ask.Question {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}

func (r *rig) noClaim() {
	r.t.Helper()
	r.wait("the claim to go, right after its messages", func() bool {
		_, err := os.Stat(filepath.Join(r.bob.Path(), "run", "claims.json"))
		return errors.Is(err, fs.ErrNotExist)
	})
}

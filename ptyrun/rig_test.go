package ptyrun

import (
	"cmp"
	"context"
	"errors"
	"flag"
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
	"github.com/agentteammail/atm/internal/testrig"
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

// rig is a team in which carol leads.
type rig struct {
	*testrig.Rig[Exit]
	opt   Options
	hold  *claim.Runner
	state reducer.State

	mu    sync.Mutex
	asked []ask.Question

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
	r := &rig{Rig: testrig.New[Exit](t, s.Box("bob"))}
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
	r.T.Helper()
	o.Profile = cmp.Or(o.Profile, "claude")
	r.opt.Command, r.opt.Env, r.opt.Driver = r.Command(o)
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
	must(r.T, os.WriteFile(filepath.Join(r.opt.Dir, "atm"), []byte("#!/bin/sh\necho would $*\n"), 0o755))
	r.opt.Env = append(r.opt.Env, "PATH="+r.opt.Dir+":"+os.Getenv("PATH"))
	return r
}

// prompt gives bob a text as his person would, and returns when his program has accepted it.
func (r *rig) prompt(text string) {
	r.T.Helper()
	must(r.T, r.give(text))
}

// give is prompt, from any goroutine.
func (r *rig) give(text string) error {
	r.mu.Lock()
	runner := r.runner
	r.mu.Unlock()
	return runner.inbox.Give(r.T.Context(), text, false)
}

// run starts the runner, until the test ends or stops it.
func (r *rig) run() *rig {
	r.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	hold, err := claim.HoldRunner(ctx, r.Store, "bob")
	must(r.T, err)
	r.hold = hold
	logged, err := r.Bob.Log().Newest(1 << 20)
	must(r.T, err)
	for i := range logged { // as Mail.Hold does
		r.state.Apply(&logged[i])
	}
	r.opt.Mail = &Mail{Mailbox: (*mailbox.Mailbox)(r.Bob), hold: hold, state: r.state}
	r.Runs(cancel, func() (Exit, error) {
		h, err := Start(ctx, r.opt)
		if err != nil {
			return Exit{}, err
		}
		r.mu.Lock()
		r.runner = h.r
		r.mu.Unlock()
		return h.Wait()
	}, func() { hold.Release() })
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

// status asks the runner, which serves a limited number of clients at once.
func (r *rig) status() (control.Status, error) {
	c := r.Client()
	defer c.Close()
	return c.Status(r.T.Context())
}

func urgent(m *wire.Message) { m.Priority = "urgent" }

// idle waits until bob is at his prompt.
func (r *rig) idle() *rig {
	r.T.Helper()
	r.Wait("the prompt", r.Has(`state_change new="idle"`))
	return r
}

// states returns the states reported of bob, in order.
func (r *rig) states() []string {
	return slices.DeleteFunc(r.Events(), func(s string) bool { return !strings.HasPrefix(s, "state_change") })
}

func (r *rig) questions() []ask.Question {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}

func (r *rig) noClaim() {
	r.T.Helper()
	r.Wait("the claim to go, right after its messages", func() bool {
		_, err := os.Stat(filepath.Join(r.Bob.Path(), "run", "claims.json"))
		return errors.Is(err, fs.ErrNotExist)
	})
}

// Package testrig is for tests in which a runner runs the fake agent: a team in which alice writes, and bob's run.
package testrig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/driver"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/wire"
)

// Rig is such a team.
type Rig[Exit any] struct {
	T     *testing.T
	Store *maildir.Store
	Bob   *maildir.Box
	Dir   string // the team's
	Log   string // the fake agent's
	Stop  context.CancelFunc
	Done  chan struct{}
	Exit  Exit // and Err: how the run has ended, once it is Done
	Err   error
}

// New makes one of a team's mailbox.
func New[Exit any](t *testing.T, bob *maildir.Box) *Rig[Exit] {
	dir := filepath.Dir(bob.Path())
	return &Rig[Exit]{T: t, Store: bob.Store(), Bob: bob, Dir: dir, Log: filepath.Join(dir, "fake.log"), Done: make(chan struct{})}
}

func (r *Rig[Exit]) must(err error) {
	r.T.Helper()
	if err != nil {
		r.T.Fatal(err)
	}
}

// Command returns what runs the fake agent with a profile.
func (r *Rig[Exit]) Command(o testagent.Options) (argv, env []string, d *driver.Driver) {
	r.T.Helper()
	o.Log = r.Log
	argv, env, err := testagent.Command(o)
	r.must(err)
	d, _ = driver.Named(o.Profile)
	return argv, append(os.Environ(), env...), d
}

// Runs waits for the run to end, beside the test. The end of the test stops it, and releases what it has held.
func (r *Rig[Exit]) Runs(stop context.CancelFunc, wait func() (Exit, error), release func()) {
	r.Stop = stop
	go func() {
		defer close(r.Done)
		r.Exit, r.Err = wait()
	}()
	r.T.Cleanup(func() {
		stop()
		<-r.Done
		release()
		if r.T.Failed() {
			r.T.Logf("events:\n%s", strings.Join(r.Events(), "\n"))
			es, _ := testagent.ReadLog(r.Log)
			for _, e := range es {
				r.T.Logf("fake: %s %s %s %.200q", e.At.Format("05.000"), e.Event, e.Kind, e.Text)
			}
		}
	})
}

// Wait waits until a condition holds.
func (r *Rig[Exit]) Wait(what string, so func() bool) {
	r.T.Helper()
	end := time.Now().Add(10 * time.Minute) // needed only for a failure, or a flood on a busy machine
	for !so() {
		if time.Now().After(end) {
			r.T.Fatalf("waited in vain for %s\nscreen:\n%s", what, strings.Join(r.Screen(), "\n"))
		}
		select {
		case <-r.Done:
			if !so() {
				r.T.Fatalf("the run ended (%+v, %v) before %s", r.Exit, r.Err, what)
			}
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Client connects to the runner as soon as it listens.
func (r *Rig[Exit]) Client() (c *control.Client) {
	r.Wait("the runner's socket", func() (so bool) {
		var err error
		c, err = control.Dial(r.T.Context(), filepath.Join(r.Bob.Path(), "run"))
		return err == nil
	})
	r.T.Cleanup(func() { c.Close() })
	c.Patience = time.Minute // on a busy machine
	return c
}

// Screen returns the lines of bob's terminal.
func (r *Rig[Exit]) Screen() []string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := control.Dial(ctx, filepath.Join(r.Bob.Path(), "run"))
	if err != nil {
		return nil
	}
	defer c.Close()
	s, _ := c.Screen(ctx, control.ScreenRequest{})
	return s.Lines
}

// Send delivers a text of alice's to bob.
func (r *Rig[Exit]) Send(body string, with ...func(*wire.Message)) wire.ID {
	r.T.Helper()
	m := &wire.Message{ID: wire.NewID(), From: wire.Address{Agent: "alice", Team: "main"}, Body: body}
	for _, f := range with {
		f(m)
	}
	return r.Deliver(m)
}

// Deliver delivers a message, which says whose it is, to bob.
func (r *Rig[Exit]) Deliver(m *wire.Message) wire.ID {
	r.T.Helper()
	m.To, m.SentAt = []wire.Address{r.Bob.Address()}, time.Now().UTC()
	p := &maildir.Post{Message: m, Sender: r.Store.Box("alice"), To: []*maildir.Box{r.Bob}}
	maildir.Deliver(r.T.Context(), p)
	r.must(p.Outcomes[0].Err)
	return m.ID
}

// Read reports whether bob has read a message.
func (r *Rig[Exit]) Read(id wire.ID) func() bool {
	return func() bool {
		it, err := r.Bob.Get(id)
		return err == nil && it.State != wire.Unread
	}
}

// Unread reports whether a message is there and not read.
func (r *Rig[Exit]) Unread(id wire.ID) bool {
	it, err := r.Bob.Get(id)
	return err == nil && it.State == wire.Unread
}

// Events returns bob's events in short form.
func (r *Rig[Exit]) Events() (out []string) {
	all, _ := r.Bob.Log().Newest(1 << 20)
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

// Has reports whether one of the Events begins so.
func (r *Rig[Exit]) Has(prefix string) func() bool {
	return func() bool {
		return slices.ContainsFunc(r.Events(), func(s string) bool { return strings.HasPrefix(s, prefix) })
	}
}

// Fakes returns the entries of one kind in the fake agent's log.
func (r *Rig[Exit]) Fakes(event string) []string {
	es, err := testagent.ReadLog(r.Log)
	r.must(err)
	return es.Texts(event)
}

// Lock holds one of the team's locks, like another process, until it is released.
func (r *Rig[Exit]) Lock(name string) (release func()) {
	r.T.Helper()
	lock := flock.New(filepath.Join(r.Dir, ".locks", name))
	r.must(lock.Lock())
	release = func() { lock.Unlock() }
	r.T.Cleanup(release)
	return release
}

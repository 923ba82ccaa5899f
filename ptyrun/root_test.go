//go:build linux || darwin

package ptyrun

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/reducer/ask"
)

// strangers has the rig's root be a stranger's as long as it is true.
func strangers(r *rig) *atomic.Bool {
	is := &atomic.Bool{}
	mayAct := func(context.Context) error {
		if is.Load() {
			return errors.New("a stranger was here")
		}
		return nil
	}
	r.Store.MayAct = mayAct
	return is
}

func (r *rig) gate() control.Gate {
	s, _ := r.status()
	return s.Gate
}

// While the store may not act, no mail is typed; the runner says so once, and goes on by itself.
func TestStranger(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	is := strangers(r)
	began := r.opt.Dir + "/began"
	r.fake(testagent.Options{Model: "touch " + began + "; until [ -e " + began + ".on ]; do sleep 0.02; done; echo 'CONFIRM [git status]'"})
	r.run().idle()
	first := r.Send("the first")
	r.Wait("the first to be read", r.Read(first))
	r.Wait("the turn", func() bool { _, err := os.Stat(began); return err == nil })
	is.Store(true)
	must(t, os.WriteFile(began+".on", nil, 0o600))
	r.Wait("the question for a person", func() bool { return len(r.questions()) == 1 })
	if _, err := r.Client().Answer(t.Context(), ask.Answer{}); err != nil { // its client has asked
		t.Fatal(err)
	}
	r.Wait("the end of the turn", r.Has("turn_completed"))
	second := r.Send("the second")
	r.Wait("the runner to say so", r.Has("stream_error"))
	r.Wait("the gate to be shut", func() bool { return r.gate() == control.GateStranger })
	if !r.Unread(second) || len(r.Fakes(testagent.Submitted)) != 1 {
		t.Errorf("typed: %q", r.Fakes(testagent.Submitted))
	}
	is.Store(false)
	r.Wait("the second to be read", r.Read(second))
	if n := strings.Count(strings.Join(r.Events(), "\n"), "stream_error"); n != 1 {
		t.Errorf("said %d times", n)
	}
}

// The first prompt waits as well.
func TestStrangersPrompt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	is := strangers(r)
	is.Store(true)
	r.opt.Prompt = "Begin."
	r.fake(testagent.Options{}).run().idle()
	r.Wait("the gate to be shut", func() bool { return r.gate() == control.GateStranger })
	if typed := r.Fakes(testagent.Submitted); len(typed) != 0 {
		t.Errorf("typed: %q", typed)
	}
	is.Store(false)
	r.Wait("the prompt", func() bool { return len(r.Fakes(testagent.Submitted)) == 1 })
}

// In a root that was moved nothing is typed, since others look for it elsewhere. Moved back, the runner goes on. One
// that is gone ends the run.
func TestRootMoved(t *testing.T) {
	t.Parallel()
	r, timing := newRig(t), quick
	timing.Check, timing.Logged = 2*time.Second, 100*time.Millisecond // what comes at once comes before a look
	r.opt.timing = &timing
	r.fake(testagent.Options{}).run().idle()
	path := r.Store.Dir().Path()
	client := r.Client()
	must(t, os.Rename(path, path+".moved"))
	t.Cleanup(func() { os.RemoveAll(path + ".moved") })
	if s, err := client.Status(t.Context()); err != nil || s.Gate != control.GateMoved { // at once: a sender is told so
		t.Errorf("gate %q, %v", s.Gate, err)
	}
	must(t, os.Rename(path+".moved", path))
	id := r.Send("hello")
	r.Wait("it to be read", r.Read(id))
	must(t, os.Rename(path, path+".moved"))                                               // or the lock may go before the root
	r.Wait("it to be removed", func() bool { return os.RemoveAll(path+".moved") == nil }) // the runner may be writing there
	<-r.Done
	if !errors.Is(r.Err, ErrRootGone) || !strings.Contains(r.Err.Error(), path) {
		t.Error(r.Err)
	}
}

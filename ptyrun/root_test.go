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
	r.store.MayAct = mayAct
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
	first := r.send("the first")
	r.wait("the first to be read", r.read(first))
	r.wait("the turn", func() bool { _, err := os.Stat(began); return err == nil })
	is.Store(true)
	must(t, os.WriteFile(began+".on", nil, 0o600))
	r.wait("the question for a person", func() bool { return len(r.questions()) == 1 })
	if _, err := r.client().Answer(t.Context(), ask.Answer{}); err != nil { // its client has asked
		t.Fatal(err)
	}
	r.wait("the end of the turn", r.has("turn_completed"))
	second := r.send("the second")
	r.wait("the runner to say so", r.has("stream_error"))
	r.wait("the gate to be shut", func() bool { return r.gate() == control.GateStranger })
	if !r.unread(second) || len(r.fakes(testagent.Submitted)) != 1 {
		t.Errorf("typed: %q", r.fakes(testagent.Submitted))
	}
	is.Store(false)
	r.wait("the second to be read", r.read(second))
	if n := strings.Count(strings.Join(r.events(), "\n"), "stream_error"); n != 1 {
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
	r.wait("the gate to be shut", func() bool { return r.gate() == control.GateStranger })
	if typed := r.fakes(testagent.Submitted); len(typed) != 0 {
		t.Errorf("typed: %q", typed)
	}
	is.Store(false)
	r.wait("the prompt", func() bool { return len(r.fakes(testagent.Submitted)) == 1 })
}

// In a root that was moved nothing is typed, since others look for it elsewhere. Moved back, the runner goes on. One
// that is gone ends the run.
func TestRootMoved(t *testing.T) {
	t.Parallel()
	r, timing := newRig(t), quick
	timing.Check, timing.Logged = 2*time.Second, 100*time.Millisecond // what comes at once comes before a look
	r.opt.timing = &timing
	r.fake(testagent.Options{}).run().idle()
	path := r.store.Dir().Path()
	client := r.client()
	must(t, os.Rename(path, path+".moved"))
	t.Cleanup(func() { os.RemoveAll(path + ".moved") })
	if s, err := client.Status(t.Context()); err != nil || s.Gate != control.GateMoved { // at once: a sender is told so
		t.Errorf("gate %q, %v", s.Gate, err)
	}
	must(t, os.Rename(path+".moved", path))
	id := r.send("hello")
	r.wait("it to be read", r.read(id))
	must(t, os.Rename(path, path+".moved"))                                               // or the lock may go before the root
	r.wait("it to be removed", func() bool { return os.RemoveAll(path+".moved") == nil }) // the runner may be writing there
	<-r.done
	if !errors.Is(r.err, ErrRootGone) || !strings.Contains(r.err.Error(), path) {
		t.Error(r.err)
	}
}

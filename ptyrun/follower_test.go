package ptyrun

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/wire"
)

// fakeFollower withholds the messages that say wait, and types something else than what mail says.
type fakeFollower struct {
	noFollower
	run Followed

	mu       sync.Mutex // guards run and withheld
	withheld []wire.ID
	mayPass  bool // in the loop
	isOver   bool
}

func (f *fakeFollower) follow(run Followed) Follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.run = run
	return f
}

func (f *fakeFollower) followed() Followed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.run
}

func (f *fakeFollower) WhyWithheld(m *wire.Message) string {
	if m.Body != "wait" || f.mayPass {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.withheld = append(f.withheld, m.ID)
	return "it waits"
}

func (f *fakeFollower) Body(m *wire.Message) string { return "he said " + m.Body }
func (f *fakeFollower) Detach(Exit, error)          { f.isOver = true }
func (f *fakeFollower) IsReady() bool               { return true }

// What a follower withholds is not typed until it says so, then with the body that it gives, and it may stop the agent.
func TestFollowerWithholds(t *testing.T) {
	t.Parallel()
	r, f := newRig(t).fake(testagent.Options{}), &fakeFollower{}
	r.opt.Follow = f.follow
	r.run().idle()
	id := r.send("wait")
	r.wait("other mail to be read", r.read(r.send("hello")))
	if !r.unread(id) {
		t.Fatal("it was typed")
	}
	run := f.followed()
	run.Do(func() {
		f.mayPass = true
		run.Reread(id)
	})
	r.wait("the message to be read", r.read(id))
	if got := r.fakes(testagent.Submitted); !strings.Contains(got[len(got)-1], "he said wait") {
		t.Errorf("submitted %q", got)
	}
	run.Stop("enough", 0)
	<-r.done
	if !r.exit.Stopped || !f.isOver || !slices.Contains(f.withheld, id) {
		t.Errorf("%+v; detached: %v, withheld: %v", r.exit, f.isOver, f.withheld)
	}
}

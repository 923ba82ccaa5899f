package ptyrun

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/runhost"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/wire"
)

// fakeFollower withholds the messages that say wait, those that say late not at first, and types something else than what
// mail says.
type fakeFollower struct {
	lock     sync.Mutex // guards the following
	run      runhost.Followed
	withheld []wire.ID
	mayPass  bool
	isOver   bool
}

func (f *fakeFollower) follow(run runhost.Followed) runhost.Follower {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.run = run
	return runhost.Follower{
		Withhold: f.withhold, Body: func(m *wire.Message) string { return "he said " + m.Body }, Detach: func(runhost.Ended) { f.isOver = true },
	}
}

func (f *fakeFollower) withhold(m *wire.Message) string {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.mayPass || m.Body != "wait" && m.Body != "late" {
		return ""
	}
	isFirst := !slices.Contains(f.withheld, m.ID)
	f.withheld = append(f.withheld, m.ID)
	if m.Body == "late" && isFirst {
		return ""
	}
	return "it waits"
}

// What a follower withholds is not typed until it says so, then with the body that it gives, and it may stop the agent.
func TestFollowerWithholds(t *testing.T) {
	t.Parallel()
	r, f := newRig(t).fake(testagent.Options{}), &fakeFollower{}
	r.opt.Follow = f.follow
	r.run().idle()
	id := r.Send("wait")
	r.Wait("other mail to be read", r.Read(r.Send("hello")))
	if !r.Unread(id) {
		t.Fatal("it was typed")
	}
	r.Wait("the end of the turn", r.Has("turn_completed"))
	late := r.Send("late")
	times := func() (n int) {
		f.lock.Lock()
		defer f.lock.Unlock()
		for _, id := range f.withheld {
			if id == late {
				n++
			}
		}
		return n
	}
	r.Wait("it to be withheld when it was about to be given", func() bool { return times() > 1 })
	if !r.Unread(late) {
		t.Fatal("it was typed")
	}
	f.lock.Lock()
	f.mayPass = true
	run := f.run
	f.lock.Unlock()
	run.Reread(late)
	r.Wait("the late one to be read", r.Read(late))
	run.Reread(id)
	r.Wait("the message to be read", r.Read(id))
	if got := r.Fakes(testagent.Submitted); !strings.Contains(got[len(got)-1], "he said wait") {
		t.Errorf("submitted %q", got)
	}
	run.Stop("enough", 0)
	<-r.Done
	if !r.Exit.Stopped || !f.isOver || !slices.Contains(f.withheld, id) {
		t.Errorf("%+v; detached: %v, withheld: %v", r.Exit, f.isOver, f.withheld)
	}
}

// What may be given again while it is asked whether it is withheld is given, though that answer is the last to come.
func TestRereadMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRig(t).fake(testagent.Options{})
	var asked atomic.Int64
	again := make(chan struct{})
	r.opt.Follow = func(run runhost.Followed) runhost.Follower {
		return runhost.Follower{Withhold: func(m *wire.Message) string {
			switch asked.Add(1) {
			case 1:
				run.Reread(m.ID)
				<-again
				time.Sleep(100 * time.Millisecond) // long enough to tell that it may be given
				return "it waits"
			case 2:
				close(again)
			}
			return ""
		}}
	}
	r.run().idle()
	r.Wait("the message to be read", r.Read(r.Send("hello")))
}

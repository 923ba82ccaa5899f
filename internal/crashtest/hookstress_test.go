//go:build unix

package crashtest

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// hookJobs are what agents' programs, people and scripts do beside each other.
func hookJobs(segments int) []job {
	return []job{
		{"session", 3, []func(*world){(*world).live}},
		{"send", 1, []func(*world){(*world).send, (*world).send, (*world).say, (*world).sendAll, (*world).attach}},
		{"read", 1, []func(*world){(*world).read, (*world).cutRead, (*world).jsonRead}},
		{"answer", 1, []func(*world){(*world).answer, (*world).answer, (*world).withdraw}},
		{"event", 2, []func(*world){(*world).event, (*world).stream, (*world).stream, (*world).eventTwice}},
		{"tear", 1, []func(*world){(*world).tear}},
		{"fill", 1, []func(*world){func(w *world) { w.fill(segments) }}},
		{"see", 1, []func(*world){(*world).see}},
		{"drop", 1, []func(*world){(*world).dropIn, func(*world) { time.Sleep(100 * time.Millisecond) }}},
		{"gc", 1, []func(*world){(*world).gc}},
	}
}

// Sessions of agents whose hooks call atm, senders, readers, writers of events
// and gc work on one team, and one process in three is killed. Every event that
// was acknowledged is in the log, once; every message was handed over or read,
// or is unread; none goes out twice without saying so, no claim stays, and what
// is said of an agent stands in its events.
func TestStressHooks(t *testing.T) {
	d := duration(t, 2*time.Second)
	if os.Getenv("ATM_STRESS") == "" {
		stressHooks(t, quick(t), d)
		return
	}
	t.Run("memory", func(t *testing.T) { stressHooks(t, quick(t), d/2) })
	t.Run("disk", func(t *testing.T) { stressHooks(t, t.TempDir(), d/2) })
}

func stressHooks(t *testing.T, dir string, d time.Duration) {
	w := newWorld(t, dir, takers...)
	// A log that is full: a new segment is begun while all are at work, and what
	// is counted here goes to the archive.
	for range 3 {
		w.must("event", "counted", "--as", "bob")
	}
	w.fillLog("bob", never)
	end := time.Now().Add(d)
	over := func() bool { return time.Now().After(end) }
	var ended atomic.Bool
	var watching sync.WaitGroup
	var followers []*follower
	for _, agent := range []string{"alice", "bob"} {
		f := &follower{world: w, agent: agent}
		followers = append(followers, f)
		watching.Go(func() { f.follow(ended.Load) })
	}
	w.work(hookJobs(int(d/(4*time.Second))), over)
	ended.Store(true)
	watching.Wait()
	c := w.settle()
	v := w.judge(t, c)
	w.judgeStatus(t, takers...)
	w.judgeArchive(t, takers...)
	for _, f := range followers {
		f.end(c)
	}
	for i, agent := range hooked {
		left := v.claims
		w.handOut(t, agent, i%2 == 0)
		v.claims = left + len(w.claims(agent))
	}
	claims := v.claims
	v = w.drained(t)
	v.claims = claims
	report := fmt.Sprintf("%s, %s: %s; %s", t.Name(), d, v, w.summary())
	t.Log(report)
	if os.Getenv("ATM_STRESS") != "" {
		fmt.Println(report)
	}
}

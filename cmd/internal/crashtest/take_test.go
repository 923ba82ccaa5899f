//go:build unix

package crashtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/testround"
)

// lease is how long a message of a shared inbox is somebody's.
const lease = 2 * time.Second

// taken is a message that somebody has, as its taker was told.
type taken struct {
	id, who     string
	times       int
	since, till time.Time // till: the lease's end, or when it was about to be given back
	done        bool
}

// shared is an inbox that several work off.
type shared struct {
	*world
	takes map[string][]*taken // by id
}

// Takers of a shared inbox are killed at random; whoever has got something finishes it, gives it
// back, keeps it for longer, or forgets it. Never do two have one message while the first one's lease
// lasts, what was finished is given to nobody, what was given out before says so, and in the end all
// of it can be finished.
func TestStressTake(t *testing.T) {
	d := testround.Lasts(t, 3*time.Second)
	w := &shared{newWorld(t, memory(t), takers...), map[string][]*taken{}}
	w.must("team", "add", "jobs", "--shared")
	// Kills alone set no message aside here.
	w.want(os.WriteFile(filepath.Join(w.team(), "team.toml"), []byte("[members.jobs]\ntries = 100\n"), 0o600))
	end := time.Now().Add(d)
	var all sync.WaitGroup
	all.Go(func() {
		for time.Now().Before(end) {
			w.run(w.sending("alice", []string{"jobs"}, "--", "--json").call)
			time.Sleep(20 * time.Millisecond)
			pause(100)
		}
	})
	for _, who := range takers[1:] {
		all.Go(func() {
			for time.Now().Before(end) {
				if m := w.take(who, mortal(), "--wait", "--timeout", "1s"); m != nil {
					w.handle(m)
				}
			}
		})
	}
	all.Wait()
	w.run(w.sending("alice", []string{"jobs"}, "--", "--json").call)
	w.take("bob", 0) // and forgotten: this one at least is taken again
	time.Sleep(lease)
	for m := w.take("bob", 0); m != nil; m = w.take("bob", 0) {
		w.letGo(m, "ack")
	}
	c := w.census()
	for _, f := range c.messages {
		if f.agent == "jobs" && f.place != "done" {
			t.Errorf("not done: %s", f.path)
		}
	}
	w.judge(c)
	w.judgeLeases()
	if w.count["taken again"] == 0 {
		t.Error("nothing was taken again")
	}
	w.report(t, fmt.Sprintf("%s, %d messages taken", d, len(w.takes)))
}

// take takes a message, nil: there is none, or not all of the answer was seen.
func (w *shared) take(who string, kill time.Duration, wait ...string) *taken {
	args := append([]string{"take", "jobs", "--lease", lease.String(), "--json", "--as", who}, wait...)
	r := w.run(call{args: args, kill: kill, exits: []int{4}})
	var out struct {
		Message letter
		Until   time.Time
		Times   int
	}
	if json.Unmarshal([]byte(r.out), &out) != nil || out.Message.ID == "" {
		return nil
	}
	m := &taken{id: out.Message.ID, who: who, times: out.Times, since: out.Until.Add(-lease), till: out.Until}
	w.excuse("jobs", m.id)
	defer w.locked()()
	w.takes[m.id] = append(w.takes[m.id], m)
	return m
}

// handle is what a taker does with a message.
func (w *shared) handle(m *taken) {
	pause(100)
	switch testround.Rand.IntN(10) {
	case 0:
		return // forgotten
	case 1:
		time.Sleep(lease)
	case 2, 3:
		w.letGo(m, "unread")
		return
	case 4:
		r := w.run(call{args: []string{"take", "--renew", m.id, "--lease", lease.String(), "--json", "--as", m.who}, exits: []int{5}})
		var out struct{ Until time.Time }
		if json.Unmarshal([]byte(r.out), &out) == nil && r.code == 0 {
			w.mu.Lock()
			m.till = out.Until
			w.mu.Unlock()
		}
	}
	w.letGo(m, "ack")
}

// letGo finishes a message, or gives it back. One whose lease ran out may be refused.
func (w *shared) letGo(m *taken, how string) {
	began := time.Now()
	r := w.run(call{args: []string{how, m.id, "--as", m.who, "--json"}, exits: []int{3, 5}})
	if r.code != 0 {
		if time.Now().Before(m.till) {
			w.wrong("%s holds %s until %s, and is refused: %s", m.who, m.id, m.till, r)
		}
		return
	}
	defer w.locked()()
	m.done = how == "ack"
	if began.Before(m.till) {
		m.till = began
	}
}

// judgeLeases: one taker at a time, and each is told how many there were before.
func (w *shared) judgeLeases() {
	for id, all := range w.takes {
		slices.SortFunc(all, func(a, b *taken) int { return a.since.Compare(b.since) })
		for i, m := range all[1:] {
			before := all[i]
			w.add("taken again", 1)
			if over := before.till.Sub(m.since); over > 0 {
				w.wrong("%s took %s %s before the lease of %s was over", m.who, id, over, before.who)
			}
			if before.done {
				w.wrong("%s took %s, which %s had finished", m.who, id, before.who)
			}
			if m.times <= before.times {
				w.wrong("%s is told that it is number %d with %s, and %s was told %d", m.who, m.times, id, before.who, before.times)
			}
		}
	}
}

package crashtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// held is a message in somebody's hands, as its taker was told.
type held struct {
	who         string
	times       int
	since, till time.Time // till: the lease's end, or when it was about to be let go
	done        bool
}

const lease = 2 * time.Second

// Takers of a shared inbox are killed at random; who has got something finishes it,
// gives it back, keeps it for longer, or forgets it. Never do two hold one message
// while the first one's lease lasts, what was finished is given to nobody, what was
// given out before says so, and in the end all of it can be finished.
func TestStressTake(t *testing.T) {
	d := duration(t, 3*time.Second)
	w := newWorld(t, quick(t), takers...)
	w.must("team", "add", "jobs", "--shared")
	var mu sync.Mutex
	holds := map[string][]*held{}
	end := time.Now().Add(d)
	get := func(who string, kill time.Duration, wait ...string) (id string, h *held) {
		r := w.run(call{args: append([]string{"take", "jobs", "--lease", lease.String(), "--json", "--as", who}, wait...), kill: kill})
		w.expect(r, 0, 4)
		var out struct {
			Message letter
			Until   time.Time
			Times   int
		}
		if json.Unmarshal([]byte(r.out), &out) != nil || out.Message.ID == "" {
			return "", nil // nothing, or not all of it
		}
		id, h = out.Message.ID, &held{who: who, times: out.Times, since: out.Until.Add(-lease), till: out.Until}
		w.excuse("jobs", id)
		mu.Lock()
		defer mu.Unlock()
		holds[id] = append(holds[id], h)
		return id, h
	}
	// letGo finishes a message, or gives it back. Whose lease ran out may be refused.
	letGo := func(id string, h *held, how string) {
		now := time.Now()
		r := w.run(call{args: []string{how, id, "--as", h.who, "--json"}})
		if w.expect(r, 0, 3, 5); r.code != 0 {
			if now.Add(lease / 2).Before(h.till) {
				w.wrong("%s holds %s until %s, and is refused: %s", h.who, id, h.till, r)
			}
			return
		}
		mu.Lock()
		defer mu.Unlock()
		h.done = how == "ack"
		if now.Before(h.till) {
			h.till = now
		}
	}
	var all sync.WaitGroup
	all.Go(func() {
		for time.Now().Before(end) {
			tok, text := write(100)
			w.begin(tok, "alice", "jobs")
			w.stored(tok, w.run(call{args: []string{"send", "jobs", "--as", "alice", "--json", "--", text}}))
			time.Sleep(time.Duration(20+rand.IntN(100)) * time.Millisecond)
		}
	})
	for _, who := range []string{"bob", "carol", "dave", "erin"} {
		all.Go(func() {
			for time.Now().Before(end) {
				id, h := get(who, mortal(), "--wait", "--timeout", "1s")
				if h == nil {
					continue
				}
				switch time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond); rand.IntN(10) {
				case 0:
					continue // forgotten
				case 1:
					time.Sleep(lease) // it has run out
				case 2, 3:
					letGo(id, h, "unread")
					continue
				case 4:
					r := w.run(call{args: []string{"take", "--renew", id, "--lease", lease.String(), "--json", "--as", who}})
					var out struct{ Until time.Time }
					if w.expect(r, 0, 5); json.Unmarshal([]byte(r.out), &out) == nil && r.code == 0 {
						mu.Lock()
						h.till = out.Until
						mu.Unlock()
					}
				}
				letGo(id, h, "ack")
			}
		})
	}
	all.Wait()
	time.Sleep(lease)
	for id, h := get("bob", 0); h != nil; id, h = get("bob", 0) {
		letGo(id, h, "ack")
	}
	again := judgeHolds(t, holds)
	c := take(t, w.team())
	for k := range w.posts {
		if k.agent == "jobs" && !slices.ContainsFunc(c.messages, func(f found) bool { return f.token == k.token && f.place == "done" }) {
			t.Errorf("not done: %s", k.token)
		}
	}
	report := fmt.Sprintf("%s, %s: %s; %d messages taken, %d of them again; %s", t.Name(), d, w.judge(t, c), len(holds), again, w.summary())
	t.Log(report)
	if os.Getenv("ATM_STRESS") != "" {
		fmt.Println(report)
	}
	if again == 0 {
		t.Error("nothing was taken again")
	}
}

// judgeHolds: one holder at a time, and each is told how many there were before.
func judgeHolds(t *testing.T, holds map[string][]*held) (again int) {
	for id, hs := range holds {
		slices.SortFunc(hs, func(a, b *held) int { return a.since.Compare(b.since) })
		for i, h := range hs[1:] {
			before := hs[i]
			again++
			if over := before.till.Sub(h.since); over > 0 {
				t.Errorf("%s took %s %s before the lease of %s was over", h.who, id, over, before.who)
			}
			if before.done {
				t.Errorf("%s took %s, which %s had finished", h.who, id, before.who)
			}
			if h.times <= before.times {
				t.Errorf("%s is told that it is number %d with %s, and %s was told %d", h.who, h.times, id, before.who, before.times)
			}
		}
	}
	return again
}

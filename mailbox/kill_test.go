//go:build unix

package mailbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// said is what the processes of a run said.
type said struct {
	mu    sync.Mutex
	lines map[string]int // "read bob <id>" and its like: how often
	count map[string]int // by the first word
	order []string
}

// each calls f with the agent and the rest of every line that begins with word, and with
// how often it was said.
func (a *said) each(word string, f func(agent wire.Name, rest string, n int)) {
	for line, n := range a.lines {
		if w := strings.SplitN(line, " ", 3); w[0] == word && len(w) == 3 {
			f(wire.Name(w[1]), w[2], n)
		}
	}
}

// kill keeps so many processes of each role alive and kills them at random moments, until
// the time is over and everything wanted was said (ten times as long at most). It returns
// what they said.
func kill(t *testing.T, s *Store, lasting time.Duration, roles map[string]int, wanted []string, env ...string) *said {
	t.Helper()
	if d, err := time.ParseDuration(os.Getenv("ATM_STRESS")); err == nil {
		lasting = d
	}
	a := &said{lines: map[string]int{}, count: map[string]int{}}
	begin := time.Now()
	goesOn := func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		missing := slices.ContainsFunc(wanted, func(word string) bool { return a.count[word] == 0 })
		return time.Since(begin) < lasting || missing && time.Since(begin) < 10*lasting
	}
	var all sync.WaitGroup
	for role, n := range roles {
		for range n {
			all.Go(func() {
				for goesOn() {
					c, out := start(t, role, s.root.Path(), env...)
					for out.Scan() {
						word, _, _ := strings.Cut(out.Text(), " ")
						switch word {
						case "begin": // however long it took to come so far
							time.AfterFunc(time.Duration(10+rand.IntN(500))*time.Millisecond, func() { c.Process.Kill() })
						case "error", "torn", "two":
							t.Error(out.Text())
						}
						a.mu.Lock()
						a.lines[out.Text()]++
						a.count[word]++
						a.order = append(a.order, out.Text())
						a.mu.Unlock()
					}
					c.Wait()
					if how := c.ProcessState.Sys().(syscall.WaitStatus); !how.Signaled() || how.Signal() != syscall.SIGKILL {
						t.Errorf("%s ended by itself: %v", role, c.ProcessState)
					}
				}
			})
		}
	}
	all.Wait()
	for _, word := range wanted {
		if a.count[word] == 0 {
			t.Errorf("nothing was said of %q", word)
		}
	}
	t.Log(a.count)
	return a
}

// Senders, readers, droppers and movers are killed at random moments. What was
// acknowledged is there, once, and whole.
func TestKilled(t *testing.T) {
	s := newStore(t, "alice", "bob", "carol", "dave")
	p := &process{store: s}
	a := kill(t, s, 4*time.Second, map[string]int{
		"send": 1, "batch": 1, "given": 2, "read": 3, "slow": 1, "drop": 1, "move": 2, "gc": 1, "retire": 1, "append": 1,
	}, []string{"ack", "drop", "show", "read", "moved", "unread", "archived", "retired", "refused", "event"})
	if err := s.Restore(ctx, "dave"); err != nil && !errors.Is(err, ErrExists) {
		t.Fatal(err)
	}
	names, events, reads := map[string]int{}, map[string]int{}, map[string]int{} // each of an agent
	all := map[wire.Name]census{}
	for _, agent := range []wire.Name{"bob", "carol", "dave"} {
		b := s.Box(agent)
		settleDrops(t, b)
		c := takeCensus(t, b)
		c.sound(t)
		all[agent] = c
		for id, m := range c.texts {
			acked := a.lines[fmt.Sprintf("ack %s %s", agent, id)] > 0
			if strings.HasPrefix(m.Subject, "d-") {
				names[string(agent)+" "+m.Subject]++
				acked = a.lines[fmt.Sprintf("drop %s %s", agent, m.Subject)] > 0
			}
			// (A dropper that was killed while it wrote left a part.)
			if (acked || m.Origin == nil) && !p.whole(m) {
				t.Errorf("torn: %s of %s", id, agent)
			}
		}
		for _, bad := range c.bad {
			name, _, _ := strings.Cut(bad, ".")
			if a.lines[fmt.Sprintf("ack %s %s", agent, name)] > 0 && len(c.places[wire.ID(name)]) == 0 {
				t.Errorf("set aside as bad in the mailbox of %s: %s", agent, bad)
			}
		}
		for _, e := range eventsOf(t, b) {
			var w struct{ Content string }
			json.Unmarshal(e.Wire, &w)
			switch {
			case e.Kind == wire.EventRead:
				reads[string(agent)+" "+string(e.MessageID())]++
			case e.Wire != nil:
				events[string(agent)+" "+w.Content]++
			case e.EventID != "":
				events[string(agent)+" "+e.EventID]++
			}
		}
	}
	a.each("ack", func(agent wire.Name, id string, _ int) {
		if len(all[agent].places[wire.ID(id)]) == 0 {
			t.Errorf("lost: %s, acknowledged to the sender, is nowhere in the mailbox of %s", id, agent)
		}
	})
	a.each("refused", func(agent wire.Name, id string, _ int) {
		if len(all[agent].places[wire.ID(id)]) > 0 {
			t.Errorf("%s was refused, and is in the mailbox of %s", id, agent)
		}
	})
	for word, found := range map[string]map[string]int{"drop": names, "event": events} {
		a.each(word, func(agent wire.Name, what string, _ int) {
			if found[string(agent)+" "+what] == 0 {
				t.Errorf("lost: %s %s of %s", word, what, agent)
			}
		})
		for what, n := range found {
			if n > 1 {
				t.Errorf("doubled: %s %s is there %d times", word, what, n)
			}
		}
	}
	// A message is read once, and once more for each time it was put back.
	back := map[string]int{}
	a.each("unread", func(agent wire.Name, id string, n int) { back[string(agent)+" "+id] = n })
	a.each("read", func(agent wire.Name, id string, n int) {
		if n > 1+back[string(agent)+" "+id] {
			t.Errorf("doubled: %s of %s was read by %d who had it shown under the lock", id, agent, n)
		}
	})
	for what, n := range reads {
		if n > 1+back[what] {
			t.Errorf("doubled: the log says %d times that %s was read", n, what)
		}
	}
}

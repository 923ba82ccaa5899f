//go:build unix

package mailbox

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// fast is a clock on which a second is a thousandth: what lapses after ten
// minutes does so after 600 ms.
func fast(begin time.Time) time.Time { return begin.Add(1000 * time.Since(begin)) }

// hook makes the calls of an agent's hooks, two at a time as if they were
// installed twice, and says what goes out.
func (p *process) hook() {
	var begin time.Time
	if err := begin.UnmarshalText([]byte(os.Getenv("ATM_TEST_BEGIN"))); err != nil {
		panic(err)
	}
	bob := p.store.Box(killBob)
	session := fmt.Sprint("s", os.Getpid())
	for n := 0; ; n++ {
		call := HookCall{Session: session, Name: fmt.Sprint("call ", n), Shows: true, Want: true, Now: fast(begin)}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				h, err := bob.HandOver(ctx, call, ReadOptions{Limit: 5})
				if p.failed(bob, err) {
					return
				}
				// One write: what the program reads of its hook.
				var b strings.Builder
				for _, it := range h.Items {
					fmt.Fprintf(&b, "out %v %s\n", h.Again[it.ID], it.ID)
				}
				if b.Len() > 0 {
					os.Stdout.WriteString(b.String())
				}
				time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
				_, err = h.Out(ctx)
				p.failed(bob, err)
			})
		}
		both.Wait()
	}
}

// Hooks are killed at random moments: no message is moved that did not go out,
// and none goes out more than twice, the second time marked.
func TestHooksKilled(t *testing.T) {
	path := scratch(t)
	openStore(t, path, nil, killBob)
	stamp, _ := time.Now().MarshalText()
	out, sent := wentOut(t, path, 3*time.Second, []string{"hook", "hook", "hook"}, "ATM_TEST_BEGIN="+string(stamp))
	c := takeCensus(t, path, killBob)
	c.sound(t)
	twice, moved := 0, 0
	for _, id := range c.ids() {
		times := out[id]
		if c.place(id) != placeNew {
			moved++
			if len(times) == 0 {
				t.Errorf("lost: %s is in %s and never went out", id, c.place(id))
			}
		}
		if len(times) == 2 && times[0] == times[1] || len(times) > 2 {
			t.Errorf("%s went out %d times, marked %v", id, len(times), times)
		}
		twice += b2i(len(times) == 2)
	}
	if len(c.ids()) != sent || moved == 0 {
		t.Errorf("%d messages of %d, %d moved", len(c.ids()), sent, moved)
	}
	t.Logf("%d messages, %d moved, %d went out twice", sent, moved, twice)
}

// Every file operation of a handover fails once: what is unread is never lost,
// and what could not be claimed does not go out.
func TestHandOverFaults(t *testing.T) {
	t.Parallel()
	for k := 1; ; k++ {
		at := &trip{k: k, err: syscall.EIO}
		s := openStore(t, scratch(t), at.fault, "bob")
		bob := s.Box("bob")
		list := deliverN(t, bob, 2)
		now := time.Now()
		at.armed = true
		shown, plain := map[wire.ID]int{}, map[wire.ID]int{}
		call := HookCall{Session: "s1", Name: "1", Shows: true, Want: true, Now: now}
		for i := range 4 {
			call.Name, call.Now = fmt.Sprint(i), now.Add(time.Duration(i)*time.Minute)
			h, err := bob.HandOver(ctx, call, ReadOptions{})
			if err != nil && len(at.failed) == 0 {
				t.Fatal(err)
			}
			if err != nil && len(h.Items) > 0 && !maps.Equal(h.Again, map[wire.ID]bool{}) {
				t.Error(h.Again)
			}
			if err != nil {
				h.Back(ctx)
				continue
			}
			for _, it := range h.Items {
				if shown[it.ID]++; !h.Again[it.ID] {
					plain[it.ID]++
				}
			}
			h.Out(ctx)
		}
		at.armed = false
		c := takeCensus(t, teamPath(s), "bob")
		c.sound(t)
		for _, id := range list {
			if shown[id] == 0 && c.place(id) != placeNew {
				t.Errorf("operation %d (%v): lost %s, which is in %s", k, at.failed, id, c.place(id))
			}
			if shown[id] > 2 || plain[id] > 1 {
				t.Errorf("operation %d (%v): shown %d times, %d of them unmarked", k, at.failed, shown[id], plain[id])
			}
		}
		if len(at.failed) == 0 {
			t.Logf("%d operations", k-1)
			return
		}
	}
}

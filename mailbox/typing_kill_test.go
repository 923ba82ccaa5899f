//go:build unix

package mailbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

// types is a runner: it waits until it may run, and types what is unread.
func (p *process) types() {
	bob := p.store.Box(killBob)
	for {
		_, err := p.store.HoldRunner(ctx, killBob)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrRunning) {
			p.failed(bob, err)
		}
	}
	if _, err := bob.Unfinished(ctx); p.failed(bob, err) {
		os.Exit(1)
	}
	for {
		b, err := bob.Peek(ctx, ReadOptions{Limit: 8})
		if p.failed(bob, err) {
			continue
		}
		c, err := bob.Claim(ctx, idsOf(b.Items))
		if p.failed(bob, err) {
			continue
		}
		for _, it := range c.Items {
			p.say("out %v %s", c.Again[it.ID], it.ID)
			time.Sleep(time.Duration(rand.IntN(2)) * time.Millisecond)
			switch rand.IntN(8) {
			case 0:
				p.failed(bob, c.Doubt(ctx, it.ID))
			case 1, 2:
				p.failed(bob, c.Taken(ctx, it.ID))
			}
		}
		p.failed(bob, c.Taken(ctx))
		if len(c.Items) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// turn makes the calls of a session's hooks.
func (p *process) turn() {
	bob := p.store.Box(killBob)
	for n := 0; ; n++ {
		call := HookCall{Session: fmt.Sprint("s", os.Getpid()), Name: fmt.Sprint("call ", n), Shows: true, Want: true, Now: time.Now()}
		h, err := bob.HandOver(ctx, call, ReadOptions{Limit: 2})
		if !p.failed(bob, err) {
			var b strings.Builder
			for _, it := range h.Items {
				fmt.Fprintf(&b, "out %v %s\n", h.Again[it.ID], it.ID)
			}
			os.Stdout.WriteString(b.String())
			_, err = h.Out(ctx)
			p.failed(bob, err)
		}
		time.Sleep(time.Duration(rand.IntN(6)) * time.Millisecond)
	}
}

// Runners and hooks are killed at random moments, and the next goes on: no
// message is moved that did not reach the agent, and whatever reaches it more
// than once says so.
func TestRunnersKilled(t *testing.T) {
	path := scratch(t)
	openStore(t, path, nil, killBob)
	out, sent := wentOut(t, path, 2*time.Second, []string{"type", "type", "turn"})
	c := takeCensus(t, path, killBob)
	c.sound(t)
	again, moved := 0, 0
	for _, id := range c.ids() {
		plain := 0
		for _, marked := range out[id] {
			plain += b2i(!marked)
		}
		if plain > 1 {
			t.Errorf("%s went out %d times, marked %v", id, len(out[id]), out[id])
		}
		again += b2i(len(out[id]) > 1)
		if c.place(id) != placeNew {
			moved++
			if len(out[id]) == 0 {
				t.Errorf("lost: %s is in %s and never went out", id, c.place(id))
			}
		}
	}
	if len(c.ids()) != sent || moved == 0 || again == 0 {
		t.Errorf("%d messages of %d, %d moved, %d went out again", len(c.ids()), sent, moved, again)
	}
	t.Logf("%d messages, %d moved, %d went out again", sent, moved, again)
}

// wentOut keeps a process of each role alive, kills it at random moments, and
// delivers to bob meanwhile. It returns how often each message went out, each
// time whether it was marked as a repeat, and how many were delivered.
func wentOut(t *testing.T, path string, lasting time.Duration, roles []string, env ...string) (out map[wire.ID][]bool, sent int) {
	t.Helper()
	bob := openStore(t, path, nil).Box(killBob)
	end := time.Now().Add(lasting)
	out = map[wire.ID][]bool{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, role := range roles {
		all.Go(func() {
			for time.Now().Before(end) {
				c, lines := start(t, role, path, env...)
				life := time.AfterFunc(time.Duration(30+rand.IntN(120))*time.Millisecond, func() { c.Process.Kill() })
				for lines.Scan() {
					switch w := strings.Fields(lines.Text()); {
					case len(w) == 3 && w[0] == "out":
						mu.Lock()
						out[wire.ID(w[2])] = append(out[wire.ID(w[2])], w[1] == "true")
						mu.Unlock()
					case len(w) > 0 && w[0] == "error":
						t.Error(lines.Text())
					}
				}
				life.Stop()
				c.Wait()
			}
		})
	}
	for ; time.Now().Before(end); sent++ {
		deliver(t, bob, message("alice", "x"))
		time.Sleep(4 * time.Millisecond)
	}
	all.Wait()
	return out, sent
}

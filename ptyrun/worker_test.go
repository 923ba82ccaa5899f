package ptyrun

import (
	"cmp"
	"fmt"
	"runtime"
	"testing"

	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/wire"
)

// A feed that ends is taken to its end, however much of it there was when the loop looked.
func TestFeedEnds(t *testing.T) {
	for n := range 4 {
		f, taken := newFeed[int](3), 0
		for range n {
			f.send(1)
		}
		f.end()
		for f.woken() != nil {
			select {
			case <-f.woken():
				f.take(func(int) { taken++ })
			default:
				t.Fatalf("with %d things in it, the loop is not woken for its end", n)
			}
		}
		if taken != n {
			t.Errorf("%d of %d were taken", taken, n)
		}
	}
}

// While the log cannot be written no goroutine is added for an event, and what waits for it is bounded: of state changes
// the last ones stay, and all of the others.
func TestLogThatCannotBeWritten(t *testing.T) {
	h := startFake(t, testagent.Options{}, nil)
	await(t, h, "state_change")
	settled(t, h)
	block, before := make(chan struct{}), runtime.NumGoroutine()
	h.r.call(func() {
		h.r.events.do(func() { <-block })
		for i := range 3 * maxUnlogged {
			if i%100 == 0 {
				h.r.append(wire.Event{Kind: "goal_complete"}.With("n", i))
			}
			h.r.append(wire.Event{Kind: "state_change"}.With("new", "thinking").With("detail", fmt.Sprint(i)))
		}
		if n := runtime.NumGoroutine() - before; n > 50 {
			t.Errorf("%d goroutines more", n)
		}
		if n := len(h.r.unlogged); n > maxUnlogged {
			t.Errorf("%d events wait", n)
		}
	})
	close(block)
	settled(t, h)
	events, err := h.r.Box.Log().Newest(1 << 20)
	must(t, err)
	goals, last := 0, ""
	for _, e := range events {
		switch e.Kind {
		case "goal_complete":
			goals++
		case "state_change":
			last = cmp.Or(e.Text("detail"), last)
		}
	}
	if want := 3*maxUnlogged/100 + 1; goals != want || last != fmt.Sprint(3*maxUnlogged-1) {
		t.Errorf("%d of %d goals, the last change is %q", goals, want, last)
	}
}

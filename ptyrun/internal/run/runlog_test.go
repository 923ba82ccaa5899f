package run

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/wire"
)

// While the log cannot be written no goroutine is added for an event, and what waits for it is bounded: of state changes
// the last ones stay, and all of the others.
func TestLogThatCannotBeWritten(t *testing.T) {
	dir, err := durable.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	store := maildir.NewStore(dir, "main")
	defer store.Close()
	if err := errors.Join(dir.Mkdir(".locks"), store.Create(t.Context(), "bob")); err != nil {
		t.Fatal(err)
	}
	r := &Run{
		Loop: loop.New(t.Context(), slog.New(slog.DiscardHandler), time.Now), Box: store.Box("bob"),
		Fold: func(*wire.Event, time.Time) {},
	}
	block, before := make(chan struct{}), runtime.NumGoroutine()
	r.AfterLogged(func() { <-block })
	for i := range 3 * maxUnlogged {
		if i%100 == 0 {
			r.Append(wire.Event{Kind: "goal_complete"}.With("n", i))
		}
		r.Append(wire.Event{Kind: "state_change"}.With("new", "thinking").With("detail", fmt.Sprint(i)))
	}
	if n := runtime.NumGoroutine() - before; n > 50 {
		t.Errorf("%d goroutines more", n)
	}
	if n := len(r.unlogged); n > maxUnlogged {
		t.Errorf("%d events wait", n)
	}
	close(block)
	r.WaitLogged()
	events, err := r.Box.Log().Newest(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	goals, last := 0, ""
	for _, e := range events {
		r.IsOwn(&e)
		switch e.Kind {
		case "goal_complete":
			goals++
		case "state_change":
			last = cmp.Or(e.Text("detail"), last)
		}
	}
	if !r.IsLogged() {
		t.Errorf("%d events of its own were not known again", len(r.unlogged))
	}
	if want := 3*maxUnlogged/100 + 1; goals != want || last != fmt.Sprint(3*maxUnlogged-1) {
		t.Errorf("%d of %d goals, the last change is %q", goals, want, last)
	}
}

//go:build unix

package ptyrun

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/delivery/waytest"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/ptyrun/internal/inbox"
	"github.com/agentteammail/atm/ptyrun/internal/loop"
	"github.com/agentteammail/atm/ptyrun/internal/run"
	"github.com/agentteammail/atm/wire"
)

// A loopWay is the way of a runner's own agent as delivery.Way, whose Put waits for what the loop does.
type loopWay struct {
	*Handle
	isHeld bool // Put does not wait for the return key
	given  map[wire.ID]*run.Text
}

func (w *loopWay) Look(context.Context) error {
	_, err := loop.In(w.r.Loop, func() (any, error) {
		if gate := w.r.inbox.Gate(w.r.Now()); gate != control.GateOpen || w.r.inbox.Given() != nil {
			return nil, errors.New("shut: " + string(gate))
		}
		return nil, nil
	})
	return err
}

func (w *loopWay) Put(ctx context.Context, t delivery.Text) error {
	if err := w.Look(ctx); err != nil {
		return err
	}
	r, p := w.r, (*inbox.Prompt)(nil)
	r.Call(func() {
		p = r.inbox.Add(t.Body, false)
		r.inbox.Step(r.Now())
		w.given[t.ID] = r.inbox.Given()
	})
	if w.isHeld && r.Poll(time.Minute, func() bool {
		g := w.given[t.ID]
		return g != nil && g.IsBeingTyped() && r.Agent.State().HasDraft
	}) {
		return nil
	}
	return r.inbox.AwaitGiven(context.Background(), p)
}

func (w *loopWay) Has(_ context.Context, id wire.ID) (bool, error) {
	return loop.In(w.r.Loop, func() (bool, error) {
		g := w.given[id]
		if g != nil && g.State == delivery.Unsure {
			return false, delivery.ErrSilent
		}
		return g != nil && g.State == delivery.Read, nil
	})
}

func (w *loopWay) TakeBack(_ context.Context, id wire.ID) (bool, error) {
	return loop.In(w.r.Loop, func() (bool, error) {
		g := w.given[id]
		if g != w.r.inbox.Given() {
			return false, nil
		}
		w.r.inbox.Abandon("it was withdrawn")
		return g.State == delivery.Back, nil
	})
}

func (w *loopWay) asks() (is bool) {
	w.r.Call(func() { is = w.r.Questions.Asked() != nil })
	return is
}

func TestKeysAreAWay(t *testing.T) {
	t.Parallel()
	waytest.Test(t, func(t *testing.T) *waytest.Program {
		t.Parallel()
		log := filepath.Join(t.TempDir(), "fake.log")
		w := &loopWay{startFake(t, testagent.Options{Profile: "claude", Log: log}, nil), false, map[wire.ID]*run.Text{}}
		texts := func(event string) []string {
			es, err := testagent.ReadLog(log)
			must(t, err)
			return es.Texts(event)
		}
		return &waytest.Program{
			Way:   w,
			Acted: func() []string { return texts(testagent.Submitted) },
			Shut:  func() { must(t, w.Type(t.Context(), "half a ", false)) },
			Ask:   func() { must(t, w.Prompt(t.Context(), "CONFIRM [touch made.txt]")) },
			Asks:  func() bool { return w.asks() && len(texts(testagent.Answered)) == 0 },
			Hold: func() (goOn func()) {
				slow := quick
				slow.BeforeReturn = time.Hour
				w.r.Call(func() { w.isHeld, w.r.Timing = true, &slow })
				return func() { w.r.Call(func() { w.isHeld, w.r.Timing = false, &quick }) }
			},
			Hang: func() { w.r.Call(func() { syscall.Kill(w.r.prog.PID(), syscall.SIGSTOP) }) },
		}
	})
}

func TestACPIsAWay(t *testing.T) {
	t.Parallel()
	waytest.Test(t, func(t *testing.T) *waytest.Program {
		t.Parallel()
		h := startFake(t, testagent.Options{}, func(o *Options) { o.Command, o.Driver, o.ACP = append(o.Command, "acp"), nil, &ACP{} })
		w := &loopWay{h, false, map[wire.ID]*run.Text{}}
		return &waytest.Program{
			Way: w,
			Acted: func() (all []string) {
				events, err := h.r.Box.Log().Newest(1 << 20)
				must(t, err)
				for _, e := range events {
					if e.Kind == wire.TurnCompleted {
						all = append(all, e.Text("response"))
					}
				}
				return all
			},
			Shut: func() { must(t, h.Prompt(t.Context(), "SLOW")) },
			Ask:  func() { must(t, h.Prompt(t.Context(), "CONFIRM [ls]")) },
			Asks: w.asks,
		}
	})
}

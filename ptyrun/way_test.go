//go:build unix

package ptyrun

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/delivery/waytest"
	"github.com/agentteammail/atm/internal/testagent"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

// A loopWay is the way of a runner's own agent as delivery.Way, whose Put waits for what the loop does.
type loopWay struct {
	*Handle
	isHeld bool // Put does not wait for the return key
	given  map[wire.ID]*giving
}

func (w *loopWay) Look(context.Context) error {
	_, err := inLoop(w.r, func() (any, error) {
		if gate := w.r.gate(w.r.now()); gate != control.GateOpen || w.r.mail.giving != nil {
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
	r, p := w.r, &prompt{text: t.Body, done: make(chan error, 1)}
	r.call(func() {
		r.mail.prompts = append(r.mail.prompts, p)
		r.stepMail(r.now())
		w.given[t.ID] = r.mail.giving
	})
	if w.isHeld && r.poll(time.Minute, func() bool { return w.given[t.ID].isBeingTyped() && w.given[t.ID].typing.isIn }) {
		return nil
	}
	return <-p.done
}

func (w *loopWay) Has(_ context.Context, id wire.ID) (bool, error) {
	return inLoop(w.r, func() (bool, error) {
		g := w.given[id]
		if g != nil && g.state == delivery.Unsure {
			return false, delivery.ErrSilent
		}
		return g != nil && g.state == delivery.Read, nil
	})
}

func (w *loopWay) TakeBack(_ context.Context, id wire.ID) (bool, error) {
	return inLoop(w.r, func() (bool, error) {
		g := w.given[id]
		if g != w.r.mail.giving {
			return false, nil
		}
		w.r.happened(delivery.Moot, "it was withdrawn")
		return g.state == delivery.Back, nil
	})
}

func (w *loopWay) asks() (is bool) {
	w.r.call(func() { is = w.r.question != nil })
	return is
}

func TestKeysAreAWay(t *testing.T) {
	waytest.Test(t, func(t *testing.T) *waytest.Program {
		log := filepath.Join(t.TempDir(), "fake.log")
		w := &loopWay{startFake(t, testagent.Options{Profile: "claude", Log: log}, nil), false, map[wire.ID]*giving{}}
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
				slow.beforeReturn = time.Hour
				w.r.call(func() { w.isHeld, w.r.timing = true, &slow })
				return func() { w.r.call(func() { w.isHeld, w.r.timing = false, &quick }) }
			},
			Hang: func() { w.r.call(func() { syscall.Kill(w.r.prog.PID(), syscall.SIGSTOP) }) },
		}
	})
}

func TestACPIsAWay(t *testing.T) {
	waytest.Test(t, func(t *testing.T) *waytest.Program {
		h := startFake(t, testagent.Options{}, func(o *Options) { o.Command, o.Driver, o.ACP = append(o.Command, "acp"), nil, &ACP{} })
		w := &loopWay{h, false, map[wire.ID]*giving{}}
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

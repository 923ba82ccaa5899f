package inbox

import (
	"context"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/reducer"
)

// work is when the agent was last looked at for what it takes by itself.
type work struct {
	hadAgent  bool         // then
	word      reducer.Word // the agent's
	lookAt    time.Time    // the next one
	isLooking bool
}

const (
	takeEvery = time.Second     // while it is free
	keepEvery = 5 * time.Second // while it is at work
)

// stepWork has an agent that is free get some work, and one that is at work keep it. Mail and prompts come first.
func (in *Inbox) stepWork(now time.Time) {
	w := &in.work
	if in.o.Work == nil || w.isLooking {
		return
	}
	hadAgent := w.hadAgent
	if w.hadAgent = in.Agent != nil; !w.hadAgent {
		if hadAgent {
			in.doWork(in.o.Work.GiveBack)
		}
		return
	}
	word := in.State.Session().Word()
	if word != w.word {
		w.word, w.lookAt = word, time.Time{}
	}
	if in.MustWait(w.lookAt, now) {
		return
	}
	isAtWork := word == reducer.WordBusy || in.Questions.Asked() != nil
	hasText := in.giving != nil || len(in.next) > 0 || len(in.prompts) > 0
	isFree := !isAtWork && !hasText && in.Inject() != Off && in.mailGate(now) == control.GateOpen
	w.lookAt = now.Add(takeEvery)
	if isAtWork {
		w.lookAt = now.Add(keepEvery)
	}
	in.WakeAt(w.lookAt)
	if !isFree && !isAtWork {
		return
	}
	in.doWork(func(ctx context.Context) error { return in.o.Work.Look(ctx, isFree) })
}

// doWork calls one of the methods of Options.Work, one at a time.
func (in *Inbox) doWork(do func(context.Context) error) {
	in.work.isLooking = true
	in.Go(func() {
		err := do(in.Context())
		in.Post(func() {
			if in.work.isLooking = false; err != nil && in.Context().Err() == nil {
				in.Log.Warn("work from a shared inbox", "err", err)
			}
		})
	})
}

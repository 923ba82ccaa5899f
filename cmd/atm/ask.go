package main

import (
	"context"
	"time"

	"github.com/agentteammail/atm/internal/cmdline"
	"github.com/agentteammail/atm/internal/outlet"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
)

// whileWanted calls f, which waits for what it is to print, with a context that
// ends when nobody reads that any more: `$(atm ask …)` of a script that was killed
// waits for nothing. It ends with the team as well.
func (e *env) whileWanted(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, stop := outlet.WhileRead(ctx, e.Stdout)
	defer stop()
	err := e.whileThere(ctx, f)
	if context.Cause(ctx) == outlet.ErrReaderGone {
		return &cmdline.Error{Exit: cmdline.ExitInterrupted, Printed: true}
	}
	return err
}

// offLooks is how often in a row somebody is found off before that is said: their
// program may be started again, and Ask itself ends with one that has ended.
const offLooks = 3

// heed says, while an answer is waited for, when who is to give it comes to ask
// something or is off: once each time. It looks in a goroutine of its own, which
// has ended when stop returns.
func (e *env) heed(ctx context.Context, boxes ...*mailbox.Box) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	was := make([]reducer.Word, len(boxes))
	for i, b := range boxes {
		was[i] = e.glance(b).State
	}
	go func() {
		defer close(ended)
		off := make([]int, len(boxes)) // looks in a row
		tick := time.NewTicker(tick)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for i, b := range boxes {
				m := e.glance(b)
				off[i]++
				if m.State != reducer.WordOff {
					off[i] = 0
				}
				if m.State == was[i] || off[i] > 0 && off[i] < offLooks {
					continue
				}
				was[i] = m.State
				e.warnHindered(b, m)
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// glance is what is known of somebody now; nothing, where that cannot be read.
func (e *env) glance(b *mailbox.Box) teams.Member {
	t, err := e.root.Team(b.Address().Team)
	if err != nil {
		return teams.Member{}
	}
	m, _ := t.Glance(b.Agent())
	return m
}

// warnHindered says why somebody will not answer just now, where they will not.
func (e *env) warnHindered(b *mailbox.Box, m teams.Member) {
	switch m.State {
	case reducer.WordOff:
		e.Warn("%s is off now; what it has not read waits: %s", b.Agent(), e.runAgain(b))
	case reducer.WordBlocked:
		what := m.Word(time.Now())
		if t, err := e.root.Team(b.Address().Team); err == nil {
			if asked, _ := t.Questions(b.Agent()); len(asked) > 0 {
				what += " (" + about(asked[0], 100) + ")"
			}
		}
		e.Warn("%s is %s, and goes on when that is answered: atm pending%s", b.Agent(), what, e.typed())
	}
}

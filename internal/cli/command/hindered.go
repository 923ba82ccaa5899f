package command

import (
	"context"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/teams"
)

// offLooks is how often in a row an agent is found off before that is said: its
// program may be started again.
const offLooks = 3

// WarnHindered says, while an answer is waited for, when an agent that is to give
// it comes to ask something itself, or is off: once each time. It looks every
// second in a goroutine of its own, which has ended when stop returns.
func (s *Scope) WarnHindered(ctx context.Context, boxes ...*mailbox.Box) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	was, off := make([]reducer.Word, len(boxes)), make([]int, len(boxes))
	for i, box := range boxes {
		was[i] = s.glance(box).State
	}
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for i, box := range boxes {
				now := s.glance(box)
				off[i]++
				if now.State != reducer.WordOff {
					off[i] = 0
				}
				if now.State == was[i] || off[i] > 0 && off[i] < offLooks {
					continue
				}
				was[i] = now.State
				s.warnHindered(box, now)
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// glance is what is known of an agent now; nothing where that cannot be read.
func (s *Scope) glance(box *mailbox.Box) (m teams.Member) {
	if t, err := s.Root.Team(box.Address().Team); err == nil {
		m, _ = t.Summary(box.Agent())
	}
	return m
}

func (s *Scope) warnHindered(box *mailbox.Box, m teams.Member) {
	t, err := s.Root.Team(box.Address().Team)
	if err != nil {
		return
	}
	switch m.State {
	case reducer.WordOff:
		Warn(s.c, "%s is off now; what it has not read waits: %s", box.Agent(), t.RunAgain(box.Agent()))
	case reducer.WordBlocked:
		what := m.Forecast(time.Now(), false)
		if asked, _ := t.Questions(box.Agent()); len(asked) > 0 {
			what += " (" + letter.Clip(letter.FirstLine(asked[0].Prompt+" "+asked[0].Input, 100), 100) + ")"
		}
		Warn(s.c, "%s is %s, and goes on when that is answered: atm pending%s", box.Agent(), what, s.Flags())
	}
}

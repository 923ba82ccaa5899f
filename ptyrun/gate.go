package ptyrun

import (
	"time"

	"github.com/agentteammail/atm/reducer"
)

// gate says why nothing may be typed now, "" when it may. wait is when that may
// have changed without anything happening; zero: something has to happen.
func (r *runner) gate(now time.Time) (why string, wait time.Time) {
	p := r.prog
	switch {
	case p == nil:
		return "its program does not run", wait
	case r.stopping != nil:
		return "it is being stopped", wait
	case r.question != nil || p.reading.Dialog != nil:
		return "dialog", wait
	case !p.frame.IsZero():
		return "it is drawing", wait
	case !p.reading.Prompt:
		return because(p.reading.Why), wait
	case r.state.Turn().Word() != reducer.WordIdle:
		return "busy", wait // hooks say so, or what the screen showed is not told yet
	}
	if at := r.lastHuman.Add(r.waits.Human); now.Before(at) {
		return "a person types", at
	}
	hold := r.waits.Idle
	if !p.ready {
		hold = r.waits.First
	}
	if at := p.prompt.Add(hold); now.Before(at) {
		return "idle for a moment only", at
	}
	return "", wait
}

// still says why the return key may not be pressed behind a text of ours, ""
// when it may.
func (r *runner) still() string {
	p := r.prog
	switch {
	case p == nil:
		return "its program has ended"
	case r.stopping != nil:
		return "it is being stopped"
	case r.question != nil || p.reading.Dialog != nil:
		return "a dialog came up"
	case r.state.Turn().Word() == reducer.WordBlocked:
		return "it asks something"
	}
	if r.typing != nil {
		why, _ := r.withheld(r.typing.items)
		return why
	}
	return ""
}

func because(why string) string {
	if why == "" {
		return "no prompt on the screen"
	}
	return why
}

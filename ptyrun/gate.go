package ptyrun

import (
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
)

// gate says why nothing may be typed now. again is when that may have changed without
// anything happening; zero: something has to happen.
func (r *runner) gate(now time.Time) (why control.Gate, again time.Time) {
	p := r.prog
	switch {
	case p == nil:
		return control.GateOff, again
	case r.stopping != nil:
		return control.GateStopping, again
	case r.question != nil || p.reading.Dialog != nil:
		return control.GateDialog, again
	case !p.frame.IsZero():
		return control.GateDrawing, again
	case !p.reading.Prompt && p.reading.Why == "":
		return control.GateNoPrompt, again
	case !p.reading.Prompt:
		return control.Gate(p.reading.Why), again
	case r.state.Turn().Word() != reducer.WordIdle:
		return control.GateBusy, again // hooks say so, or what the screen showed is not told yet
	}
	if at := r.lastKey.Add(r.Waits.Human); now.Before(at) {
		return control.GateTyping, at
	}
	hold := r.Waits.Idle
	if !p.isReady {
		hold = r.Waits.First
	}
	if at := p.promptAt.Add(hold); now.Before(at) {
		return control.GateSettling, at
	}
	return control.GateOpen, again
}

// returnGate says why the return key may not be pressed behind a text of ours, "" when it may.
func (r *runner) returnGate() string {
	p := r.prog
	switch {
	case p == nil:
		return "its program has ended"
	case r.stopping != nil:
		return string(control.GateStopping)
	case r.question != nil || p.reading.Dialog != nil:
		return "a dialog came up"
	case r.state.Turn().Word() == reducer.WordBlocked:
		return "it asks something"
	case r.mail.typing == nil:
		return ""
	}
	why, _ := r.withheld(r.mail.typing.items)
	return why
}

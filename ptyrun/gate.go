package ptyrun

import (
	"time"

	"github.com/agentteammail/atm/reducer"
)

// Gate says why nothing is typed in now. Its text is what control.Status tells, so it stays
// as it is: others compare it. Where the screen is the reason it is the driver's word
// (driver.Reading.Why), of which some are here.
type Gate string

// The gates.
const (
	GateOpen     Gate = "" // mail is typed in
	GateOff      Gate = "its program does not run"
	GateStopping Gate = "it is being stopped"
	GateDialog   Gate = "dialog"
	GateDrawing  Gate = "it is drawing"
	GateBusy     Gate = "busy"
	GateTyping   Gate = "a person types"
	GateSettling Gate = "idle for a moment only"
	GateDraft    Gate = "draft"
	GateNoPrompt Gate = "no prompt on the screen"
)

// gate says why nothing may be typed now. again is when that may have changed without
// anything happening; zero: something has to happen.
func (r *runner) gate(now time.Time) (why Gate, again time.Time) {
	p := r.prog
	switch {
	case p == nil:
		return GateOff, again
	case r.stopping != nil:
		return GateStopping, again
	case r.question != nil || p.reading.Dialog != nil:
		return GateDialog, again
	case !p.frame.IsZero():
		return GateDrawing, again
	case !p.reading.Prompt && p.reading.Why == "":
		return GateNoPrompt, again
	case !p.reading.Prompt:
		return Gate(p.reading.Why), again
	case r.state.Turn().Word() != reducer.WordIdle:
		return GateBusy, again // hooks say so, or what the screen showed is not told yet
	}
	if at := r.lastKey.Add(r.waits.Human); now.Before(at) {
		return GateTyping, at
	}
	hold := r.waits.Idle
	if !p.isReady {
		hold = r.waits.First
	}
	if at := p.promptAt.Add(hold); now.Before(at) {
		return GateSettling, at
	}
	return GateOpen, again
}

// returnGate says why the return key may not be pressed behind a text of ours, "" when it
// may.
func (r *runner) returnGate() string {
	p := r.prog
	switch {
	case p == nil:
		return "its program has ended"
	case r.stopping != nil:
		return string(GateStopping)
	case r.question != nil || p.reading.Dialog != nil:
		return "a dialog came up"
	case r.state.Turn().Word() == reducer.WordBlocked:
		return "it asks something"
	}
	if r.mail.typing != nil {
		why, _ := r.withheld(r.mail.typing.items)
		return why
	}
	return ""
}

package terminal

import (
	"cmp"
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/reducer"
)

// Gate says why nothing may be typed now.
func (p *Terminal) Gate(now time.Time) control.Gate {
	why := p.screenGate(now, false)
	if (why == control.GateOpen || why == control.GateSettling) && p.r.MustWait(p.r.LastKey.Add(p.r.Timing.PersonQuiet), now) {
		return control.GateTyping
	}
	return why
}

// BesideGate is gate for a text that is given beside the prompt.
func (p *Terminal) BesideGate(now time.Time) control.Gate { return p.screenGate(now, true) }

// screenGate says why the screen takes no text now. One that is given beside the prompt does not meet the draft.
func (p *Terminal) screenGate(now time.Time, isBeside bool) control.Gate {
	r, rd, since := p.r, &p.reading, p.promptSince
	isPrompt := rd.Prompt
	if isBeside && rd.Activity == reducer.Idle && rd.NotPromptReason == control.GateDraft {
		isPrompt, since = true, p.readingSince
	}
	switch {
	case p.reading.Dialog != nil:
		return control.GateDialog
	case !p.frameSince.IsZero():
		return control.GateDrawing
	case !isPrompt:
		return cmp.Or(p.reading.NotPromptReason, control.GateNoPrompt)
	case p.isTextUnread():
		return control.GateUnread // the program would read a new text behind the old one
	}
	hold := r.Timing.Idle
	switch {
	case !p.isReady:
		hold = r.Timing.FirstIdle
	case p.reading.Declared.State != "":
		hold = r.Timing.Settle
	}
	if r.MustWait(since.Add(hold), now) {
		return control.GateSettling
	}
	return control.GateOpen
}

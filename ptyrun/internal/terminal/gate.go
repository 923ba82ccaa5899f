package terminal

import (
	"cmp"
	"time"

	"github.com/agentteammail/atm/internal/control"
)

// Gate says why nothing may be typed now.
func (p *Terminal) Gate(now time.Time) control.Gate {
	r, rd := p.r, &p.reading
	switch {
	case rd.Dialog != nil:
		return control.GateDialog
	case !p.frameSince.IsZero():
		return control.GateDrawing
	case !rd.Prompt:
		return cmp.Or(rd.NotPromptReason, control.GateNoPrompt)
	case p.isUnread():
		return control.GateUnread // the program would read a new text behind the old one
	}
	hold := r.Timing.Idle
	switch {
	case !p.isReady:
		hold = r.Timing.FirstIdle
	case rd.Declared.State != "":
		hold = r.Timing.Settle
	}
	isSettling := r.MustWait(p.promptSince.Add(hold), now)
	switch {
	case r.MustWait(r.LastKey.Add(r.Timing.PersonQuiet), now):
		return control.GateTyping
	case isSettling:
		return control.GateSettling
	}
	return control.GateOpen
}

package ptyrun

import (
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
)

// goOn is what an agent is told when the usage limit is over that has ended its turn.
const goOn = "Your usage limit is over: go on with what you were doing."

// stepLimit gives the agent that prompt, once, if its person wants that: when the limit is over, and its prompt is free. A
// turn that has begun meanwhile ends the limit. An earlier runner may have been killed before it got to this.
func (r *runner) stepLimit(now time.Time) {
	limit := r.state.Limit
	if !r.GoesOn || r.Inject == Off || limit == nil || !limit.CutOff || limit.Until.Equal(r.mail.wentOn) || r.mustWait(limit.Until, now) {
		return
	}
	if r.mail.giving == nil && len(r.mail.prompts) == 0 && r.gate(now) == control.GateOpen {
		r.mail.wentOn = limit.Until
		r.mail.prompts = []*prompt{{text: goOn}}
	}
}

package inbox

import (
	"time"

	"github.com/agentteammail/atm/internal/control"
)

// goOn is what an agent is told when the usage limit is over that has ended its turn.
const goOn = "Your usage limit is over: go on with what you were doing."

// stepLimit gives the agent that prompt, once, if its person wants that: when the limit is over, and its prompt is free. A
// turn that has begun meanwhile ends the limit. An earlier runner may have been killed before it got to this.
func (in *Inbox) stepLimit(now time.Time) {
	limit := in.State.Limit
	if !in.o.GoesOn || in.o.Inject == Off || limit == nil || !limit.CutOff || limit.Until.Equal(in.wentOn) || in.MustWait(limit.Until, now) {
		return
	}
	if in.giving == nil && len(in.prompts) == 0 && in.Gate(now) == control.GateOpen {
		in.wentOn = limit.Until
		in.prompts = []*Prompt{{text: goOn}}
	}
}

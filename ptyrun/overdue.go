package ptyrun

import (
	"time"

	"github.com/agentteammail/atm/ptyrun/control"
)

// remindEvery is how often overdue answers are looked for. Tests shorten it.
var remindEvery = time.Minute

// remind sends what is due about answers that are overdue. It is called when the reducer
// names one, and every minute, since that knows nothing of what was read before the runner
// began.
func (r *runner) remind() {
	if r.Overdue == nil || r.reminding {
		return
	}
	r.reminding, r.remindedAt = true, r.Now()
	isIdle := false
	if p := r.prog; r.mail.typing == nil && p != nil && !p.driver.Plain { // a shell would run the reminder
		gate, _ := r.gate(r.Now())
		isIdle = gate == control.GateOpen // else a minute later: what was just typed may not show yet
	}
	r.notifier.do(func() {
		if err := r.Overdue(r.ctx, isIdle); err != nil {
			r.Log.Error("telling of overdue answers", "err", err)
		}
		r.post(func() { r.reminding = false })
	})
}

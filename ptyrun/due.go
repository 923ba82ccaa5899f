package ptyrun

import (
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// remindEvery is how often overdue answers are looked for. Tests shorten it.
var remindEvery = time.Minute

// overdue sends what is due about answers that are overdue. It is called when the
// reducer names one, and every minute, since that knows nothing of what was read
// before the runner began.
func (r *runner) overdue() {
	if r.Overdue == nil || r.looking {
		return
	}
	r.looking, r.reminded = true, r.Now()
	idle := false
	if p := r.prog; r.typing == nil && p != nil && !p.driver.Plain { // a shell would run the reminder
		why, _ := r.gate(r.Now())
		idle = why == "" // else a minute later: what was just typed may not show yet
	}
	r.teller.do(func() {
		if err := r.Overdue(r.ctx, idle); err != nil {
			r.log.Error("telling of overdue answers", "err", err)
		}
		r.post(func() { r.looking = false })
	})
}

// heldUntil is when the lease ends under which somebody else holds a message;
// zero: nobody does.
func heldUntil(it *mailbox.Item, now time.Time) time.Time {
	if it.Lease != nil && it.Lease.Until.After(now) {
		return it.Lease.Until
	}
	return time.Time{}
}

// leased tells the reducer of messages that could not be had since somebody holds
// them under a lease: how long, so that they are tried again then.
func (r *runner) leased(ids []wire.ID) {
	if len(ids) == 0 {
		return
	}
	r.clerk.do(func() {
		for _, id := range ids {
			if it, err := r.Box.Get(id); err == nil {
				r.post(func() { r.arrived(it, r.Now()) })
			}
		}
	})
}

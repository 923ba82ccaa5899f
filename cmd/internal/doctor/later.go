package doctor

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// maxLate is how long a message may be due before that is reported: whatever looked last may be delivering it.
const maxLate = 10 * time.Second

// checkLater reports messages that were to be sent later and were not, or will not be unless something runs by then. With
// fix it sends what is due.
func (d *doctor) checkLater(t *teamdir.Team) {
	var failed error
	if d.fix {
		_, failed = post.DeliverLater(d.ctx, t)
	}
	all, err := post.ListLater(t, post.ToBeSent)
	bad, err2 := post.ListLater(t, post.Undelivered)
	d.addUnreadable("later.unreadable", t.Dir().Join(teamdir.LaterDir), "%v", errors.Join(err, err2))
	waiting := slices.Clone(all)
	all = slices.DeleteFunc(all, func(l post.Later) bool { return l.Waits })
	waiting = slices.DeleteFunc(waiting, func(l post.Later) bool { return !l.Waits })
	late := 0
	for late < len(all) && time.Since(all[late].At) > maxLate {
		failed = cmp.Or(failed, post.LaterObstacle(t, all[late]))
		late++
	}
	for _, l := range slices.Concat(all, waiting) {
		if _, err := post.LaterMessage(t, l); err != nil && !errors.Is(err, maildir.ErrNotFound) {
			path := t.Dir().Join(teamdir.LaterDir)
			d.add("later.bad", "warning", "ls -l "+policy.Quote(path), "a message from %s to be sent %s cannot be read: %v", l.From, letter.When(time.Now(), l.At), err)
		}
	}
	switch unaccepted := t.Store.MayAct(d.ctx); {
	case len(all)+len(waiting) > 0 && unaccepted != nil:
		d.add("later.unaccepted", "info", "atm init", "%s to be sent later: none is until somebody accepts this root", letter.Many(len(all)+len(waiting), "message"))
	case late > 0 && failed != nil:
		d.add("later.due", "error", "atm ls --sent", "%s due since %s cannot be delivered now: %v",
			letter.Many(late, "message"), letter.Stamp(all[0].At), failed)
	case late > 0:
		d.add("later.due", "warning", "atm doctor --fix", "%s due since %s, and nothing of this team has run since to deliver it",
			letter.Many(late, "message"), letter.Stamp(all[0].At))
	case len(all) > 0 && !d.isAnyRunning(t):
		d.add("later.unattended", "info", "atm watch",
			"%s to be sent later, the first %s: no runner runs, so the next command in the team after that sends it",
			letter.Many(len(all), "message"), letter.When(time.Now(), all[0].At))
	}
	for _, l := range bad {
		d.add("later.bad", "warning", "atm retry "+l.ID.Short(6), "%s from %s was not delivered %s: %s",
			l.ID.Short(6), l.From, letter.Stamp(l.At), post.LaterReason(t, l))
	}
	for _, file := range post.LaterStray(t) {
		d.add("later.stray", "warning", d.moveAway(t.Dir().Join(file), nil), "%s is not a message to be sent later: nobody delivers it", file)
	}
}

// isAnyRunning reports whether a runner runs, which delivers what is due.
func (d *doctor) isAnyRunning(t *teamdir.Team) bool {
	names, _ := t.Agents()
	return slices.ContainsFunc(names, func(n wire.Name) bool { running, _ := t.Running(n); return running })
}

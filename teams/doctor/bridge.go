package doctor

import (
	"errors"
	"maps"
	"slices"

	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
)

// checkBridge reports mail for other hosts that waits, what was not accepted from them, and a host and a team of
// one name.
func (d *doctor) checkBridge(t *teams.Team) {
	hosts, err := d.root.Keys.Hosts()
	boxes, err2 := t.Outboxes()
	errs := []error{err, err2}
	if slices.Contains(hosts, t.Name) {
		d.add("bridge.clash", "warning", "", "%s is a team here and a host: NAME@%s means a member on that host", t.Name, t.Name)
	}
	for _, b := range boxes {
		ids, err := b.Outgoing()
		errs = append(errs, err)
		host, waiting := b.Address().Host, letter.Many(len(ids), "message")
		if isTrusted := slices.Contains(hosts, host); len(ids) > 0 && !isTrusted {
			d.add("bridge.untrusted", "warning", "atm bridge trust "+string(host)+" KEY",
				"team %s: %s for host %s, whose key is not trusted here", t.Name, waiting, host)
		} else if len(ids) > 0 && !t.IsBridged() {
			d.add("bridge.off", "warning", "atm bridge", "team %s: %s for host %s, and no bridge runs", t.Name, waiting, host)
		}
	}
	reasons, err := t.BadReasons()
	for _, envelope := range slices.Sorted(maps.Keys(reasons)) {
		d.add("bridge.bad", "warning", "atm bridge retry", "team %s: not accepted: %s: %s",
			t.Name, t.Dir().Join(teams.BadEnvelopes+"/"+envelope), reasons[envelope])
	}
	d.failed("bridge.unreadable", about(t), errors.Join(append(errs, err)...))
}

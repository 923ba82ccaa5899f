package doctor

import (
	"errors"
	"slices"
	"strings"

	"github.com/agentteammail/atm/mailbox"
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
	const dir = mailbox.BridgeDir + "/bad/"
	names, err := t.Dir().Names(mailbox.BridgeDir + "/bad")
	for _, name := range names {
		if why, err := t.Dir().ReadFile(dir+name, 4096); err == nil && strings.HasSuffix(name, ".reason") {
			file := t.Dir().Join(dir + strings.TrimSuffix(name, ".reason"))
			d.add("bridge.bad", "warning", "atm bridge retry", "team %s: not accepted: %s: %s", t.Name, file, strings.TrimSpace(string(why)))
		}
	}
	if err = errors.Join(append(errs, err)...); err != nil {
		d.add("bridge.unreadable", "error", "", "team %s: %v", t.Name, err)
	}
}

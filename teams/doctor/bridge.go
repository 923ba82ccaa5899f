package doctor

import (
	"slices"
	"strings"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
)

// checkOutboxes reports mail for other hosts that waits, what was not accepted from them, and a host and a team of
// one name.
func (d *doctor) checkOutboxes(t *teams.Team) {
	hosts, err := d.root.Keys.Hosts()
	if err != nil {
		d.add("bridge.keys", "error", "", "the keys of other hosts: %v", err)
	}
	if slices.Contains(hosts, t.Name) {
		d.add("bridge.clash", "warning", "", "%s is a team here and a host: NAME@%s means a member on that host", t.Name, t.Name)
	}
	boxes, err := t.Outboxes()
	if err != nil {
		d.add("bridge.unreadable", "error", "", "team %s: %v", t.Name, err)
	}
	for _, b := range boxes {
		host := b.Address().Host
		ids, err := b.Outgoing()
		waiting := letter.Many(len(ids), "message")
		switch {
		case err != nil:
			d.add("bridge.unreadable", "error", "", "team %s: the outbox of %s: %v", t.Name, host, err)
		case len(ids) > 0 && !slices.Contains(hosts, host):
			d.add("bridge.untrusted", "warning", "atm bridge trust "+string(host)+" KEY",
				"team %s: %s for host %s, whose key is not trusted here", t.Name, waiting, host)
		case len(ids) > 0 && !t.IsBridged():
			d.add("bridge.off", "warning", "atm bridge", "team %s: %s for host %s, and no bridge runs", t.Name, waiting, host)
		}
		d.checkBad(t, mailbox.BridgeDir+"/"+string(host)+"/bad", "")
	}
	d.checkBad(t, mailbox.BridgeDir+"/bad", "atm bridge retry")
}

// checkBad reports what lies in a directory bad of the bridge, and why.
func (d *doctor) checkBad(t *teams.Team, dir, fix string) {
	names, _ := t.Dir().Names(dir)
	for _, name := range names {
		if why, err := t.Dir().ReadFile(dir+"/"+name, 4096); err == nil && strings.HasSuffix(name, ".reason") {
			d.add("bridge.bad", "warning", fix, "team %s: not accepted: %s: %s", t.Name, t.Dir().Join(dir+"/"+strings.TrimSuffix(name, ".reason")), strings.TrimSpace(string(why)))
		}
	}
}

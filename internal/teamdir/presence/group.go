package presence

import (
	"maps"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// GroupOf returns the members for whom a word stands, but one: all, on all machines, or a group of team.toml, a role, or the
// whole team of a linked root, behind an @. isGroup says that the word stands for some. A shared inbox is in no whole team: a
// copy there would be a job.
func GroupOf(t *teamdir.Team, word string, but wire.Address) (members []wire.Address, isGroup bool, err error) {
	name, hasAt := strings.CutPrefix(word, "@")
	if name == "all" { // which is nobody's name
		members, err = everybody(t)
	} else if hasAt && wire.IsName(name) {
		var groups map[wire.Name][]wire.Name
		groups, err = Groups(t)
		var names []wire.Name
		if names, isGroup = groups[wire.Name(name)]; !isGroup {
			if !t.Root().IsLink(wire.Name(name)) {
				return nil, false, err
			}
			there, err := t.Root().TeamOf(wire.Address{Team: t.Name, Host: wire.Name(name)})
			if err == nil {
				members, err = unshared(there, wire.Name(name))
			}
			return members, true, err
		}
		for _, n := range names {
			members = append(members, t.AddressOf(n))
		}
	} else {
		return nil, false, nil
	}
	return slices.DeleteFunc(members, func(a wire.Address) bool { return a == but }), true, err
}

// unshared lists the members of a team whose inboxes are not shared, with a host.
func unshared(t *teamdir.Team, host wire.Name) (to []wire.Address, err error) {
	members, err := t.Agents()
	for _, n := range members {
		if isShared, _ := claim.Shared(t.Box(n)); !isShared {
			to = append(to, wire.Address{Agent: n, Team: t.Name, Host: host})
		}
	}
	return to, err
}

func everybody(t *teamdir.Team) (to []wire.Address, err error) {
	if to, err = unshared(t, ""); err != nil {
		return nil, err
	}
	rows, err := ReadRows(t)
	for _, r := range rows {
		for _, m := range r.Members {
			to = append(to, wire.Address{Agent: m.Name, Team: t.Name, Host: r.Host})
		}
	}
	return to, err
}

// Groups returns the names that stand for several members behind an @, each with its members, as bob or bob@host: the
// groups in team.toml and, unless it is no name, every role, of those who have a mailbox here that is not shared, or
// are on another machine. A team.toml with mistakes has none.
func Groups(t *teamdir.Team) (map[wire.Name][]wire.Name, error) {
	c, err := t.Config()
	if err != nil {
		return nil, err
	}
	groups := map[wire.Name][]wire.Name{}
	add := func(role string, member wire.Name) {
		if wire.IsName(role) {
			groups[wire.Name(role)] = append(groups[wire.Name(role)], member)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(c.Members)) {
		if isShared, _ := claim.Shared(t.Box(n)); t.Store.IsAgent(n) && !isShared {
			add(c.Members[n].Role, n)
		}
	}
	rows, err := ReadRows(t)
	for _, r := range rows {
		for _, m := range r.Members {
			add(m.Role, m.Name+"@"+r.Host)
		}
	}
	maps.Copy(groups, c.Groups)
	return groups, err
}

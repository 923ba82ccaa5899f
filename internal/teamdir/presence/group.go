package presence

import (
	"maps"
	"slices"

	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

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

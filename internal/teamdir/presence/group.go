package presence

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

// GroupOf returns the members for whom a word stands, but one: all, on all machines, or a group of team.toml, a role, or the
// whole team of a linked root, behind an @. isGroup says that the word stands for some. A shared inbox is in no whole team: a
// copy there would be a job. A member of that name goes before a role that nobody else has. The error may be a *GroupError.
func GroupOf(t *teamdir.Team, word string, but wire.Address) (members []wire.Address, isGroup bool, err error) {
	name, hasAt := strings.CutPrefix(word, "@")
	if isGroup = name == "all"; isGroup { // which is nobody's name
		members, err = everybody(t)
	} else if hasAt && wire.IsName(name) {
		members, isGroup, err = groupNamed(t, wire.Name(name))
	}
	members = slices.DeleteFunc(members, func(a wire.Address) bool { return a == but })
	if isGroup && err == nil && len(members) == 0 {
		err = &GroupError{Word: word, Team: t.Name}
	}
	if !hasAt || !t.Store.IsAgent(wire.Name(name)) {
		return members, isGroup, err
	}
	var others []wire.Name
	for _, a := range members {
		if string(a.Agent) != name || a.Host != "" {
			others = append(others, t.NameOf(a))
		}
	}
	if len(others) > 0 {
		return nil, true, &GroupError{word, t.Name, others}
	}
	return nil, false, nil
}

// groupNamed returns a group of team.toml, a role, or the whole team of a linked root.
func groupNamed(t *teamdir.Team, name wire.Name) (members []wire.Address, isGroup bool, err error) {
	groups, err := Groups(t)
	names, isGroup := groups[name]
	for _, n := range names {
		members = append(members, t.AddressOf(n))
	}
	if isGroup || !t.Root().IsLink(name) {
		return members, isGroup, err
	}
	there, err := t.Root().TeamOf(wire.Address{Team: t.Name, Host: name})
	if err == nil {
		members, err = unshared(there, name)
	}
	return members, true, err
}

// A GroupError says that a word for a group stands for nobody else, or that a member has the name of a role.
type GroupError struct {
	Word   string
	Team   wire.Name
	Others []wire.Name // who have the role; none: nobody else is in the group
}

func (e *GroupError) Error() string {
	switch {
	case len(e.Others) > 0:
		var names []string
		for _, n := range e.Others {
			names = append(names, string(n))
		}
		return fmt.Sprintf("%s is a member, and the role of %s", e.Word, strings.Join(names, ", "))
	case strings.TrimPrefix(e.Word, "@") == "all":
		return fmt.Sprintf("you are the only member of team %q", e.Team)
	}
	return "nobody but you is in " + e.Word
}

// Recipients returns the addresses of those for whom words stand, also several in a word with commas between: members
// (Team.ParseAddress), and groups without the sender (GroupOf). named are the words as they count under an idempotency
// key, for which a group is the same when it has grown. The error is for the first word that stands for nobody.
func Recipients(t *teamdir.Team, sender wire.Address, words ...string) (to []wire.Address, named []string, err error) {
	if len(words) == 0 {
		return nil, nil, nil
	}
	for word := range strings.SplitSeq(strings.Join(words, ","), ",") {
		word = strings.TrimSpace(word)
		members, isGroup, err := GroupOf(t, word, sender)
		if err == nil && !isGroup {
			members = make([]wire.Address, 1)
			members[0], err = t.ParseAddress(word)
			word = members[0].String()
		} else if isGroup {
			word = strings.Replace(word, "@all", "all", 1) + "@" + string(t.Name)
		}
		if err != nil {
			return nil, nil, err
		}
		to, named = append(to, members...), append(named, word)
	}
	return to, named, nil
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

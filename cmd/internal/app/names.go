package app

import (
	"errors"
	"slices"
	"strings"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/hostkey"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/work"
	"github.com/agentteammail/atm/wire"
)

// Host is this machine's name as team.toml or its only key says; "": neither does.
func (s *Scope) Host() wire.Name {
	if team, _ := s.Team.Config(); team.Bridge.Host != "" {
		return team.Bridge.Host
	}
	if own, _ := s.Keys().Own(); len(own) == 1 {
		return own[0]
	}
	return ""
}

// Keys are the keys of the hosts that this user trusts.
func (s *Scope) Keys() hostkey.Dir { return hostkey.Dir(s.Root.KeysDir) }

// Address parses agent, @agent, agent@team, agent@host or agent@team.host. Behind one @ a trusted host goes before a
// team of that name, and the team before this machine.
func (s *Scope) Address(word string) (wire.Address, error) {
	a, err := wire.ParseAddress(strings.TrimPrefix(word, "@"), s.Team.Name)
	if err != nil {
		return a, s.badAddress(word, err)
	}
	if a.Host != "" {
		if a.Host == s.Host() {
			a.Host = ""
		}
		return a, nil
	}
	if !strings.Contains(word[1:], "@") {
		return a, nil
	}
	place := a.Team // a host, or a team
	hosts, err := s.Root.Hosts()
	if slices.Contains(hosts, place) { // another one may be damaged
		a.Team, a.Host = s.Team.Name, place
		return a, nil
	}
	if _, noTeam := s.Root.Team(place); !errors.Is(noTeam, teamdir.ErrNoTeam) {
		return a, err
	}
	if place == s.Host() {
		a.Team = s.Team.Name
	} else if len(hosts) > 0 {
		err = &teamdir.UnknownHostError{Host: place, Hosts: hosts}
	}
	return a, err
}

func (s *Scope) badAddress(word string, err error) error {
	return failure.Usage("%w", &WordError{err}).WithHint("%s", listed(s.Names())).WithNearest(word, Strings(s.Names()))
}

// Correspondents is Correspondent, and Members where the word is a group.
func (s *Scope) Correspondents(word string) ([]wire.Address, error) {
	if members, isGroup, err := s.group(word); isGroup || err != nil {
		return members, err
	}
	a, err := s.Correspondent(word)
	return []wire.Address{a}, err
}

// Correspondent parses the address of somebody whose messages may be here: a member, also a retired one, or drop.
func (s *Scope) Correspondent(word string) (a wire.Address, err error) {
	if a, err = s.Address(word); err == nil && a.Agent != "drop" && !s.Root.IsLink(a.Host) { // whose root may be away
		_, err = s.Root.Mailbox(a)
	}
	if e, ok := errors.AsType[*teamdir.UnknownError](err); ok && e.Retired {
		err = nil
	}
	return a, err
}

// addresses parses recipients, also several in a word with commas between. named are those of teamdir.Outgoing.
func (s *Scope) addresses(names []string) (to []wire.Address, named []string, err error) {
	for name := range strings.SplitSeq(strings.Join(names, ","), ",") {
		name = strings.TrimSpace(name)
		members, isGroup, err := s.group(name)
		if err == nil && !isGroup {
			members = make([]wire.Address, 1)
			members[0], err = s.Address(name)
			name = members[0].String()
		} else if isGroup {
			name = strings.Replace(name, "@all", "all", 1) + "@" + string(s.Team.Name)
		}
		if err != nil {
			return nil, nil, err // no recipient is left out silently
		}
		to, named = append(to, members...), append(named, name)
	}
	return to, named, nil
}

// group returns the members for whom a word stands, but me: all, on all machines, or a group of team.toml, a role or the team of
// another project, behind an @. isGroup: it stands for some. A member of that name goes before a role that nobody else has.
func (s *Scope) group(word string) (members []wire.Address, isGroup bool, err error) {
	me := wire.Address{}
	if s.Me != nil {
		me = s.Me.Address()
	}
	name, hasAt := strings.CutPrefix(word, "@")
	members, isGroup, err = presence.GroupOf(s.Team, word, me)
	switch {
	case name == "all":
		if err == nil && len(members) == 0 {
			err = failure.Usage("you are the only member of team %q", s.Team.Name).WithHint("`atm team add NAME`")
		}
		return members, true, err
	case !hasAt || !wire.IsName(name):
		return nil, false, nil
	case s.IsMember(name):
		others := slices.DeleteFunc(members, func(a wire.Address) bool { return string(a.Agent) == name && a.Host == "" })
		if len(others) > 0 {
			var names []string
			for _, a := range others {
				names = append(names, string(s.Team.NameOf(a)))
			}
			return nil, true, failure.Ambiguous("%s is a member, and the role of %s", word, strings.Join(names, ", ")).
				WithHint("`atm send %s \"…\"` is to the member; the others: `atm send %s \"…\"`", name, strings.Join(names, ","))
		}
		return nil, false, nil
	case isGroup && err == nil && len(members) == 0:
		err = failure.Usage("nobody but you is in %s", word).WithHint("`atm team` shows the groups")
	}
	return members, isGroup, err
}

// IsGroup reports whether a word stands for several members: all, or a group or a role behind an @.
func (s *Scope) IsGroup(word string) bool {
	_, isGroup, _ := s.group(word)
	return isGroup
}

// Members returns the addresses of one member, or of the members of a group but me.
func (s *Scope) Members(word string) ([]wire.Address, error) {
	members, isGroup, err := s.group(word)
	if isGroup || err != nil {
		return members, err
	}
	a, err := s.Address(word)
	return []wire.Address{a}, err
}

// Member opens the mailbox of a member on this machine.
func (s *Scope) Member(word string) (*maildir.Box, error) {
	a, err := s.Address(word)
	if err == nil && a.Host != "" {
		who := s.Who(a)
		err = failure.Refused("%s is on another machine", who).WithHint("to write: `atm send %s \"…\"`", who)
		links, _ := s.Root.Links()
		for _, l := range links {
			if l.Name == a.Host {
				err = failure.Refused("%s is in another project", who).WithHint("to write: `atm send %s \"…\"`; else name its root: --root %s", who, policy.Quote(l.Root))
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return s.Root.Mailbox(a)
}

// MemberOrMe is Member, and my mailbox where no name is given, or "me" and nobody is called that.
func (s *Scope) MemberOrMe(word string) (*maildir.Box, error) {
	if word != "" && (word != "me" || s.IsMember(word)) {
		return s.Member(word)
	}
	var err error
	if s.Me == nil {
		err = s.findMe()
	}
	return s.Me, err
}

// EnterTeamOf is MemberOrMe, and makes the member's team the scope's.
func (s *Scope) EnterTeamOf(word string) (box *maildir.Box, err error) {
	if box, err = s.MemberOrMe(word); err != nil {
		return nil, err
	}
	if team := box.Address().Team; team != s.Team.Name {
		s.Given.Team = string(team) // for hints
		s.Team, err = s.Root.Team(team)
	}
	return box, err
}

// Find looks up the message that a fragment of an id means, in my mailbox, else in the team's.
func (s *Scope) Find(fragment string) (*wire.Item, *maildir.Box, error) {
	fragment = strings.TrimPrefix(fragment, "#")
	_, err := wire.ParseFragment(fragment)
	if err == nil {
		it, box, err := post.Find(s.Team, s.Me, fragment)
		if err == nil {
			if id := work.Of(it.Message); id != "" { // the notice stands for it
				it, box, err = post.Find(s.Team, s.Me, string(id))
			}
		}
		return it, box, err
	}
	if s.IsMember(fragment) {
		return nil, nil, failure.Usage("%q is a member, not the id of a message", fragment).
			WithHint("`atm read --from %s`, `atm ls %[1]s`, `atm send %[1]s \"…\"`", fragment)
	}
	return nil, nil, failure.Usage("%w", &WordError{err}).WithHint("`atm read --last` and `atm ls --all` show the ids; of questions: `atm pending`")
}

// WordError is the error for a word that is neither a name nor an id.
type WordError struct{ Err error }

func (e *WordError) Error() string { return e.Err.Error() }

// FindSent finds a message that I sent.
func (s *Scope) FindSent(word string) (*wire.Message, error) {
	it, _, err := s.Find(word)
	if err != nil {
		return nil, err
	}
	if it.From != s.Me.Address() {
		return nil, failure.Refused("message %s is from %s, not from you", it.ID.Short(6), it.From).WithHint("`atm ls --sent`")
	}
	return it.Message, nil
}

// Names are the team's members; none where the team cannot be listed.
func (s *Scope) Names() []wire.Name {
	names, _ := s.Team.Agents()
	return names
}

// IsMember reports whether a word is a member's name.
func (s *Scope) IsMember(word string) bool {
	return s.Team.Store.IsAgent(wire.Name(strings.TrimPrefix(word, "@")))
}

// listed names the members, and the groups if there are any, in an error.
func listed(members []wire.Name, groups ...string) failure.Hint {
	if len(members) == 0 {
		return "there are no members yet: `atm team add NAME`"
	}
	if len(groups) > 0 {
		return failure.Say("members: %s; groups: %s", Join(members), Join(groups))
	}
	return failure.Say("members: %s", Join(members))
}

// Strings converts names, or ids, to strings.
func Strings[T ~string](names []T) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return out
}

// Join lists names, or ids, with commas between.
func Join[T ~string](names []T) string { return strings.Join(Strings(names), ", ") }

// Shorts shortens ids to as many digits as tell them apart, with spaces between.
func Shorts(ids []wire.ID) string {
	n := letter.ShortLength(ids)
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.Short(n)
	}
	return strings.Join(out, " ")
}

// JoinFilled is strings.Join without the empty parts.
func JoinFilled(separator string, parts ...string) string {
	isEmpty := func(part string) bool { return part == "" }
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), isEmpty), separator)
}

// Who shows an address as people of this team write it.
func (s *Scope) Who(a wire.Address) string { return (&letter.Renderer{Team: s.Team.Name}).Who(a) }

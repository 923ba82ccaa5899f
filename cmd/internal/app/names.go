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

// Keys are the keys of the hosts that this user trusts.
func (s *Scope) Keys() hostkey.Dir { return hostkey.Dir(s.Root.KeysDir) }

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
	if a, err = s.Team.ParseAddress(word); err == nil && a.Agent != "drop" && !s.Root.IsLink(a.Host) { // whose root may be away
		_, err = s.Root.Mailbox(a)
	}
	if e, ok := errors.AsType[*teamdir.UnknownError](err); ok && e.Retired {
		err = nil
	}
	return a, err
}

// group is presence.GroupOf without me.
func (s *Scope) group(word string) (members []wire.Address, isGroup bool, err error) {
	return presence.GroupOf(s.Team, word, s.address())
}

// address is mine; zero: nobody has said who I am.
func (s *Scope) address() (me wire.Address) {
	if s.Me != nil {
		me = s.Me.Address()
	}
	return me
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
	a, err := s.Team.ParseAddress(word)
	return []wire.Address{a}, err
}

// Member opens the mailbox of a member on this machine.
func (s *Scope) Member(word string) (*maildir.Box, error) {
	a, err := s.Team.ParseAddress(word)
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
	return nil, nil, failure.Usage("%w", &teamdir.WordError{Word: fragment, Err: err}).WithHint("`atm read --last` and `atm ls --all` show the ids; of questions: `atm pending`")
}

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

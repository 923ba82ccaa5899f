package command

import (
	"errors"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// Host is this machine's name as team.toml or its only key says; "": neither does.
func (s *Scope) Host() wire.Name {
	if team, _ := s.Team.Config(); team.Bridge.Host != "" {
		return team.Bridge.Host
	}
	if own, _ := s.Root.Keys.Own(); len(own) == 1 {
		return own[0]
	}
	return ""
}

// Address parses agent, @agent, agent@team, agent@host or agent@team.host. Behind one @ a trusted host goes before a
// team of that name, and the team before this machine.
func (s *Scope) Address(word string) (wire.Address, error) {
	a, err := wire.ParseAddress(strings.TrimPrefix(word, "@"), s.Team.Name)
	if err != nil {
		return a, s.addressError(word, err)
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
	hosts, err := s.Root.Keys.Hosts()
	if slices.Contains(hosts, place) {
		a.Team, a.Host = s.Team.Name, place
		return a, err
	}
	if _, noTeam := s.Root.Team(place); !errors.Is(noTeam, teams.ErrNoTeam) {
		return a, err
	}
	if place == s.Host() {
		a.Team = s.Team.Name
	} else if len(hosts) > 0 {
		err = &teams.UnknownHostError{Host: place, Hosts: hosts}
	}
	return a, err
}

func (s *Scope) addressError(word string, err error) error {
	team, agent, _ := strings.Cut(word, "/")
	if other, notNames := wire.ParseAddress(agent+"@"+team, ""); notNames == nil { // core/dave
		return failure.Usage("%v", err).WithHint("in another team: %s", other)
	}
	return failure.Usage("%v", err).WithHint("%s", listed(s.Names())).WithNearest(word, Strings(s.Names()))
}

// Correspondent parses the address of somebody whose messages may be here: a member, also a retired one, or drop.
func (s *Scope) Correspondent(word string) (a wire.Address, err error) {
	if a, err = s.Address(word); err == nil && a.Agent != "drop" {
		_, err = s.Root.Mailbox(a)
	}
	if e, ok := errors.AsType[*teams.UnknownError](err); ok && e.Retired {
		err = nil
	}
	return a, err
}

// Addresses parses recipients, also several in a word with commas between. "all" is everybody but me.
func (s *Scope) Addresses(names []string) (to []wire.Address, err error) {
	for name := range strings.SplitSeq(strings.Join(names, ","), ",") {
		name = strings.TrimSpace(name)
		if s.meansAll(name) {
			others, err := s.others()
			if err != nil {
				return nil, err // no recipient is left out silently
			}
			to = append(to, others...)
			continue
		}
		a, err := s.Address(name)
		if err != nil {
			return nil, err
		}
		to = append(to, a)
	}
	if len(to) == 0 {
		return nil, failure.Usage("you are the only member of team %q", s.Team.Name).WithHint("atm team add NAME")
	}
	return to, nil
}

func (s *Scope) meansAll(name string) bool {
	all := []string{"all", "team", "everyone", "everybody", "*", "@all", "@everyone", "@everybody", "@here", "@channel"}
	return slices.Contains(all, strings.TrimSpace(name)) && !s.IsMember(name)
}

// HasAll reports whether "all" is among the recipients that Addresses would parse.
func (s *Scope) HasAll(names []string) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(names, ","), ","), s.meansAll)
}

// others are the members on all machines but me, without shared inboxes: a copy there would be a job.
func (s *Scope) others() (to []wire.Address, err error) {
	members, err := s.Team.Agents()
	if err != nil {
		return nil, err
	}
	for _, n := range members {
		isShared, _ := s.Team.Box(n).Shared()
		if n != s.Me.Agent() && !isShared {
			to = append(to, wire.Address{Agent: n, Team: s.Team.Name})
		}
	}
	rows, err := s.Team.Rows()
	for _, r := range rows {
		for _, m := range r.Members {
			to = append(to, wire.Address{Agent: m.Name, Team: s.Team.Name, Host: r.Host})
		}
	}
	return to, err
}

// NoRecipient is the error for a missing recipient.
func (s *Scope) NoRecipient() *failure.Error {
	return failure.Usage("to whom? %s", listed(s.Names())).
		WithHint("atm send NAME \"text\"").WithCandidates(Strings(s.Names())...)
}

// Member opens the mailbox of a member on this machine.
func (s *Scope) Member(word string) (*mailbox.Box, error) {
	a, err := s.Address(word)
	if err != nil {
		return nil, err
	}
	if a.Host != "" {
		who := s.Renderer().Who(a)
		return nil, failure.Refused("%s is on another machine", who).
			WithHint("on that machine: %s %s; to write: atm send %s \"…\"", s.c.Command.HelpName, a.Agent, who)
	}
	return s.Root.Mailbox(a)
}

// MemberOrMe is Member, and my mailbox where no name is given, or "me" and nobody is called that.
func (s *Scope) MemberOrMe(word string) (*mailbox.Box, error) {
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
func (s *Scope) EnterTeamOf(word string) (box *mailbox.Box, err error) {
	before := s.Team.Name
	if box, err = s.MemberOrMe(word); err == nil {
		s.Team, err = s.Root.Team(box.Address().Team)
	}
	if err == nil && s.Team.Name != before {
		s.c.App.Metadata["--team"] = string(s.Team.Name)
	}
	return box, err
}

// Names are the team's members; none where the team cannot be listed.
func (s *Scope) Names() []wire.Name {
	names, _ := s.Team.Agents()
	return names
}

// IsMember reports whether a word is a member's name.
func (s *Scope) IsMember(word string) bool {
	return s.Team.IsAgent(wire.Name(strings.TrimPrefix(word, "@")))
}

// listed names the members in an error.
func listed(members []wire.Name) string {
	if len(members) == 0 {
		return "there are no members yet: atm team add NAME"
	}
	return "members: " + Join(members)
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

package setup

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var teamCommand = &cli.Command{
	Name: "team", Usage: "who is busy, idle, blocked, off, and what is waiting for them",
	UsageText:   "atm team\natm team --watch\natm team add carol",
	Description: "unknown: there is no evidence, which is neither idle nor off.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "watch", Aliases: []string{"w", "follow", "f"}, Usage: "repaint, and ring when something is waiting for you; q leaves"},
	},
	Action: team,
	Subcommands: []*cli.Command{
		{
			Name: "ls", Aliases: []string{"list", "all"}, Usage: "all teams of the root", UsageText: "atm team ls",
			Action: teamLs,
		},
		{
			Name: "add", Aliases: []string{"new", "create", "join"}, ArgsUsage: "NAME…", Usage: "add members",
			UsageText: "atm team add carol\natm team add jobs --shared",
			Flags:     []cli.Flag{&cli.BoolFlag{Name: "shared", Aliases: []string{"share"}, Usage: "others may take from the inbox: atm take"}},
			Action:    teamAdd,
		},
		{
			Name: "retire", ArgsUsage: "NAME", Usage: "move a member and its mail to the archive",
			UsageText:   "atm team retire bob",
			Description: "Unread mail goes with it; atm team restore brings both back.",
			Action:      teamRetire,
		},
		{
			Name: "restore", ArgsUsage: "NAME", Usage: "bring back a retired member", UsageText: "atm team restore bob",
			Action: teamRestore,
		},
		{Name: "members", Aliases: []string{"show", "status"}, Hidden: true, Action: team},
		command.MeantVerb("did you mean \"atm team retire\"?", "remove", "rm", "delete", "del", "drop", "kick"),
		command.MeantVerb("atm doctor names every mistake in team.toml, with its line", "check", "validate", "lint"),
	},
}

// members are what team prints.
type members struct {
	Team    wire.Name      `json:"team"`
	Members []teams.Member `json:"members"`
	Stats   teams.Stats    `json:"stats"`
}

func (m members) String() string {
	if len(m.Members) == 0 {
		return fmt.Sprintf("team %s has no members: atm team add NAME", m.Team)
	}
	return strings.Join(newTable().Lines(m.Members), "\n")
}

// newTable shows members as this terminal or pipe wants them.
func newTable() *teams.Table {
	return &teams.Table{Now: time.Now(), Width: command.Width(), Colour: command.Colour()}
}

func team(c *cli.Context) error {
	s, err := openToLook(c)
	if err != nil {
		return err
	}
	if _, err := s.Team.Config(); err != nil {
		command.Warn(c, "%v; who is a person is not known", err)
	}
	if c.Bool("watch") {
		w := &teamWatch{c: c, s: s}
		return s.Follow(w.run)
	}
	m, err := readMembers(c.Context, s.Team)
	if err != nil {
		return err
	}
	return command.Print(c, m)
}

// openToLook opens the team, and says who I am where that is known: whoever looks
// needs no identity.
func openToLook(c *cli.Context) (*command.Scope, error) {
	s, err := command.OpenMe(c)
	if s == nil || s.Team == nil {
		return nil, err
	}
	return s, nil
}

// teamList is what team ls prints.
type teamList struct {
	Teams []teamLine `json:"teams"`
}

type teamLine struct {
	Team    wire.Name   `json:"team"`
	Members []wire.Name `json:"members"`
}

func (l teamList) String() string {
	var b strings.Builder
	for _, t := range l.Teams {
		fmt.Fprintf(&b, "%s: %s\n", t.Team, command.Join(t.Members))
	}
	return b.String()
}

func teamLs(c *cli.Context) error {
	s, err := command.OpenRoot(c)
	if err != nil {
		return err
	}
	all, err := allTeams(s.Root)
	if err != nil {
		return err
	}
	list := teamList{Teams: []teamLine{}}
	for _, t := range all {
		names, err := t.Agents()
		if err != nil {
			return err
		}
		list.Teams = append(list.Teams, teamLine{t.Name, append([]wire.Name{}, names...)})
	}
	return command.Print(c, list)
}

// addedMembers are what team add prints.
type addedMembers struct {
	Team   wire.Name   `json:"team"`
	Added  []wire.Name `json:"added"`
	Shared bool        `json:"shared"`

	named []wire.Name
}

func (a addedMembers) String() string {
	var lines []string
	if len(a.Added) > 0 {
		lines = append(lines, fmt.Sprintf("added %s to team %s", command.Join(a.Added), a.Team))
	} else if !a.Shared {
		lines = append(lines, command.Join(a.named)+": there already")
	}
	if a.Shared {
		lines = append(lines, fmt.Sprintf("members of %s may take from the inbox of %s: atm take %s", a.Team, command.Join(a.named), a.named[0]))
	}
	return strings.Join(lines, "\n")
}

func teamAdd(c *cli.Context) error {
	names, err := parseNames(c.Args().Slice())
	if err != nil {
		return err
	}
	s, err := command.OpenTeam(c)
	if err != nil {
		return err
	}
	for _, n := range names {
		if s.IsMember(string(n)) && !c.Bool("shared") {
			continue // nothing is done
		}
		if err := s.MayStop("add", n); err != nil {
			return err
		}
	}
	a := addedMembers{Team: s.Team.Name, Shared: c.Bool("shared"), named: names}
	if a.Added, err = addMembers(c.Context, s.Team, names); err != nil {
		return err
	}
	for _, n := range names {
		if !a.Shared {
			break
		}
		if err := s.Team.Box(n).Share(); err != nil {
			return err
		}
	}
	for _, n := range a.Added {
		if last, err := s.Team.LastRetired(n); err == nil {
			command.Warn(c, "%s was retired before; that mail stays in the archive. To have it back: atm team retire %s; atm team restore %s", n, n, last)
		}
	}
	return command.Print(c, a)
}

// retired is what team retire prints.
type retired struct {
	Agent  wire.Name `json:"agent"`
	Unread int       `json:"unread"`
	Path   string    `json:"path"`
}

func (r retired) String() string {
	return fmt.Sprintf("retired %s with %d unread; atm team restore %s brings both back", r.Agent, r.Unread, r.Agent)
}

func teamRetire(c *cli.Context) error {
	s, err := command.OpenTeam(c)
	if err != nil {
		return err
	}
	box, err := s.Member(c.Args().First())
	if err != nil {
		return err
	}
	if s.Team, err = s.Root.Team(box.Address().Team); err != nil {
		return err
	}
	if err := s.MayStop("retire", box.Agent()); err != nil {
		return err
	}
	n, err := box.Count(c.Context)
	if err != nil {
		return err
	}
	where, err := s.Team.Retire(c.Context, box.Agent())
	if err != nil {
		return err
	}
	return command.Print(c, retired{box.Agent(), n.Unread + n.Leased, s.Team.Dir().Path() + "/" + where})
}

// restored is what team restore prints.
type restored struct {
	Agent wire.Name `json:"agent"`
}

func (r restored) String() string { return string(r.Agent) + " is back" }

// teamRestore brings back bob, or one of several bobs as the archive calls them:
// bob.20261121T010203Z….
func teamRestore(c *cli.Context) error {
	word := c.Args().First()
	name, _, isOne := strings.Cut(word, ".")
	names, err := parseNames([]string{name})
	if err != nil {
		return err
	}
	s, err := command.OpenTeam(c)
	if err != nil {
		return err
	}
	if err := s.MayStop("restore", names[0]); err != nil {
		return err
	}
	if !isOne {
		word = ""
	}
	if err := s.Team.Restore(c.Context, names[0], word); err != nil {
		return err
	}
	return command.Print(c, restored{names[0]})
}

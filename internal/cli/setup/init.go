package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/config"
	"github.com/agentteammail/atm/teams/git"
	"github.com/agentteammail/atm/wire"
)

var initCommand = &cli.Command{
	Name: "init", ArgsUsage: "[NAME…]", Usage: "make a root, a team and its members",
	UsageText: "atm init alice bob me\natm init --toml alice bob me\natm init --here carol",
	Description: "In a git repository: at the top of the main worktree, and into the repository's own\n" +
		"exclude file. Where a root is found above, it adds to that one.\n" +
		"Again: adds what is missing, and accepts a root that came with a clone.",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "here", Usage: "a new root in this directory"},
		&cli.BoolFlag{Name: "toml", Usage: "write a team.toml to start from, unless there is one"},
		command.Meant("name", "atm init NAME…; --team NAME names the team"),
	},
	Action: initRoot,
}

// madeRoot is what init prints.
type madeRoot struct {
	Root       string      `json:"root"`
	Made       bool        `json:"made"`
	Team       wire.Name   `json:"team"`
	Added      []wire.Name `json:"added"`
	Members    []wire.Name `json:"members"`
	ExcludedIn string      `json:"excluded_in,omitempty"`
	Toml       string      `json:"toml,omitempty"`
	TomlMade   *bool       `json:"toml_made,omitempty"`

	why     string // the root is where it is
	newTeam bool
}

func (m madeRoot) String() string {
	var b strings.Builder
	root := fmt.Sprintf("%s (%s)", letter.Escape(m.Root), letter.Escape(m.why))
	if m.Made {
		fmt.Fprintf(&b, "made %s, team %s", root, m.Team)
	} else if m.newTeam {
		fmt.Fprintf(&b, "made team %s in %s", m.Team, root)
	} else {
		fmt.Fprintf(&b, "team %s in %s", m.Team, root)
	}
	if len(m.Added) > 0 {
		b.WriteString(": added " + command.Join(m.Added))
	} else if len(m.Members) > 0 {
		b.WriteString(": " + command.Join(m.Members))
	}
	if m.Toml == "" {
		return b.String() + "\nnext: " + m.next()
	}
	if *m.TomlMade {
		fmt.Fprintf(&b, "\nwrote %s", letter.Escape(m.Toml))
	} else {
		fmt.Fprintf(&b, "\n%s was there, and stays as it is", letter.Escape(m.Toml))
	}
	return b.String() + "\nnext: look into it, then atm doctor, atm up"
}

// next is the command that most people type now.
func (m madeRoot) next() string {
	switch len(m.Members) {
	case 0:
		return "atm team add alice bob"
	case 1:
		return fmt.Sprintf("atm team add NAME, then atm send NAME \"hello\" --as %s", m.Members[0])
	}
	return fmt.Sprintf("atm send %s \"hello\" --as %s; agents run: atm primer", m.Members[1], m.Members[0])
}

func initRoot(c *cli.Context) error {
	names, err := parseNames(c.Args().Slice())
	if err != nil {
		return err
	}
	if c.Bool("here") && c.IsSet("root") {
		return command.NotBoth(c, "here", "root")
	}
	place := command.Place(c)
	m := madeRoot{}
	if m.Root, _, m.why, err = teams.InitDir(place, c.Bool("here")); err != nil {
		return err
	}
	if m.Made, err = teams.Make(m.Root); err != nil {
		return err
	}
	s, err := command.OpenFound(c, teams.Found{Path: m.Root, Source: m.why, Accepted: true})
	if err != nil {
		return err
	}
	if m.Team, err = s.TeamToMake(); err != nil {
		return err
	}
	if m.newTeam, err = s.Root.CreateTeam(m.Team); err != nil {
		return err
	}
	if s.Team, err = s.Root.Team(m.Team); err != nil {
		return err
	}
	if m.Added, err = addMembers(c.Context, s.Team, names); err != nil {
		return err
	}
	if err := teams.Accept(place, m.Root); err != nil {
		command.Warn(c, "the root could not be noted as yours: %v", err)
	}
	excluded, file, err := git.Exclude(m.Root)
	if err != nil {
		command.Warn(c, "the root could not be excluded from the repository: %v", err)
	}
	if excluded {
		m.ExcludedIn = file
	}
	if m.Members, err = s.Team.Agents(); err != nil {
		return err
	}
	if c.Bool("toml") {
		var made bool
		if m.Toml, made, err = s.Team.WriteConfig(sample(s.Team, m.Members).Text()); err != nil {
			return err
		}
		m.TomlMade = &made
	}
	return command.Print(c, m)
}

// sample is what a team.toml to start from says of these members, some of whom
// are by their names no agents. The command is the first known agent that is
// installed.
func sample(t *teams.Team, members []wire.Name) config.Sample {
	s := config.Sample{Command: "claude", Worktrees: t.HasWorktrees()}
	for _, program := range []string{"claude", "codex", "gemini", "opencode"} {
		if _, err := exec.LookPath(program); err == nil {
			s.Command = program
			break
		}
	}
	for _, n := range members {
		switch {
		case n == "me" || string(n) == os.Getenv("USER"):
			s.People = append(s.People, n)
		case n == "script" || n == "cron" || n == "ci":
			s.Others = append(s.Others, n)
		default:
			s.Agents = append(s.Agents, n)
		}
	}
	return s
}

// parseNames checks names before anything is made of them. Commas may stand
// between them.
func parseNames(words []string) (names []wire.Name, err error) {
	for _, word := range words {
		for _, part := range strings.Split(word, ",") {
			n, err := wire.ParseName(part)
			if err == nil {
				names = append(names, n)
				continue
			}
			e := command.Usage("%v", err)
			if lower, bad := wire.ParseName(strings.ToLower(part)); bad == nil {
				return nil, e.WithHint("did you mean %q?", lower).WithCandidates(string(lower))
			}
			return nil, e.WithHint("a name is of small letters, digits and dashes, such as alice or reviewer-2")
		}
	}
	return names, nil
}

// addMembers makes the mailboxes that are not there yet.
func addMembers(ctx context.Context, t *teams.Team, names []wire.Name) (added []wire.Name, err error) {
	added = []wire.Name{}
	for _, n := range names {
		err := t.Create(ctx, n)
		if errors.Is(err, mailbox.ErrExists) {
			continue
		}
		if err != nil {
			return added, err
		}
		added = append(added, n)
	}
	return added, nil
}

package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var teamCommand = &cli.Command{
	Name: "team", Usage: "who is busy, idle, blocked, off, and what is waiting for them",
	UsageText: "atm team\natm team --watch\natm team add carol",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "watch", Aliases: []string{"w", "follow", "f"}, Usage: "repaint; q leaves"},
	},
	Action: with(command.OpenTeam, team),
	Subcommands: []*cli.Command{
		{Name: "ls", Aliases: []string{"list", "all"}, Usage: "all teams of the root", UsageText: "atm team ls", Action: with(command.OpenRoot, teamLs)},
		{
			Name: "add", Aliases: []string{"new", "create", "join"}, ArgsUsage: "NAME…", Usage: "add members",
			UsageText: "atm team add carol\natm team add jobs --shared",
			Flags:     []cli.Flag{&cli.BoolFlag{Name: "shared", Aliases: []string{"share"}, Usage: "others may take from the inbox: atm take"}},
			Action:    with(command.OpenTeam, teamAdd),
		},
		{
			Name: "retire", ArgsUsage: "NAME", Usage: "move a member and its mail to the archive",
			UsageText: "atm team retire bob",
			Action:    with(command.OpenTeam, teamRetire),
		},
		{Name: "restore", ArgsUsage: "NAME", Usage: "bring back a retired member", UsageText: "atm team restore bob", Action: with(command.OpenTeam, teamRestore)},
		{Name: "members", Aliases: []string{"show", "status"}, Hidden: true, Action: with(command.OpenTeam, team)},
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

func readMembers(ctx context.Context, t *teams.Team) (members, error) {
	m := members{Team: t.Name, Members: []teams.Member{}}
	all, stats, err := t.Members(ctx)
	m.Members, m.Stats = append(m.Members, all...), stats
	return m, err
}

func (m members) String() string { return strings.Join(m.lines(), "\n") }

func (m members) lines() []string {
	if len(m.Members) == 0 {
		return []string{fmt.Sprintf("team %s has no members: atm team add NAME", m.Team)}
	}
	return (&teams.Table{Now: time.Now(), Width: command.Width(), Colour: command.Colour()}).Lines(m.Members)
}

func team(c *cli.Context, s *command.Scope) error {
	if c.Bool("watch") && command.Terminal() && !c.Bool("json") && os.Getenv("TERM") != "dumb" {
		return s.Follow(func(ctx context.Context) error { return watchTeam(ctx, s) })
	}
	m, err := readMembers(c.Context, s.Team)
	if err != nil {
		return err
	}
	if _, err := s.Team.Config(); err != nil {
		command.Warn(c, "%v: who is a person is not known", err)
	}
	return command.Print(c, m)
}

// watchEvery is how often the team is looked at: a lock that a killed runner
// leaves writes no event, so there is nothing else that could be waited for.
const watchEvery = 500 * time.Millisecond

// watchTeam repaints the team and what waits below it, and rings when more waits.
func watchTeam(ctx context.Context, s *command.Scope) error {
	screen, ctx := command.StartRepaint(ctx)
	defer screen.Close()
	var known []string // what waited at the last look
	for look := 0; ; look++ {
		m, err := readMembers(ctx, s.Team)
		if err != nil {
			return err
		}
		lines, waiting := m.lines(), waitingFor(ctx, s)
		if _, height, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
			lines = teams.FirstLines(lines, max(height-len(waiting)-2, 3))
		}
		if err := screen.Paint(append(append(lines, ""), waiting...)); err != nil {
			return err
		}
		for _, line := range waiting {
			if look > 0 && !slices.Contains(known, line) {
				command.Notify("atm", line)
			}
		}
		known = waiting
		select {
		case <-time.After(watchEvery):
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), command.ErrQuit) {
				return nil
			}
			return ctx.Err()
		}
	}
}

// waitingFor are the questions that somebody else may answer, and my unread mail, a line each.
func waitingFor(ctx context.Context, s *command.Scope) (lines []string) {
	questions, _ := s.Team.Waiting(ctx) // what cannot be read hides nothing else
	for _, q := range questions {
		if s.Me == nil || q.Agent != s.Me.Agent() {
			asked := letter.Clip(letter.Escape(cmp.Or(q.Input, q.Prompt)), 50)
			lines = append(lines, fmt.Sprintf("%s asks: %s   atm pending%s", q.Agent, asked, s.Flags()))
		}
	}
	if s.Me != nil {
		if ids, _ := s.Me.UnreadIDs(); len(ids) > 0 {
			lines = append(lines, fmt.Sprintf("%d unread   atm read%s", len(ids), s.Flags()))
		}
	}
	return lines
}

func teamLs(c *cli.Context, s *command.Scope) error {
	names, err := s.Root.Teams()
	if err != nil {
		return err
	}
	list, text := []map[string]any{}, ""
	for _, n := range names {
		t, err := s.Root.Team(n)
		if err != nil {
			return err
		}
		members, err := t.Agents()
		if err != nil {
			return err
		}
		list = append(list, map[string]any{"team": n, "members": members})
		text += fmt.Sprintf("%s: %s\n", n, command.Join(members))
	}
	return command.Print(c, result{map[string]any{"teams": list}, text})
}

func teamAdd(c *cli.Context, s *command.Scope) error {
	names, err := parseNames(c.Args().Slice())
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := s.MayStop("add", n); err != nil {
			return err
		}
	}
	added, err := addMembers(c.Context, s.Team, names)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("added %s to team %s", command.Join(added), s.Team.Name)
	if len(added) == 0 {
		text = command.Join(names) + ": there already"
	}
	if c.Bool("shared") {
		for _, n := range names {
			if err := s.Team.Box(n).Share(); err != nil {
				return err
			}
		}
		text += fmt.Sprintf("\nmembers of %s may take from the inbox of %s: atm take %s", s.Team.Name, command.Join(names), names[0])
	}
	return command.Print(c, result{map[string]any{"team": s.Team.Name, "added": added, "shared": c.Bool("shared")}, text})
}

func teamRetire(c *cli.Context, s *command.Scope) error {
	box, err := s.Member(c.Args().First())
	if err != nil {
		return err
	}
	name := box.Agent()
	if err := s.MayStop("retire", name); err != nil {
		return err
	}
	n, err := box.Count(c.Context)
	if err != nil {
		return err
	}
	where, err := s.Team.Retire(c.Context, name)
	if err != nil {
		return err
	}
	unread := n.Unread + n.Leased
	return printResult(c, map[string]any{"agent": name, "unread": unread, "path": s.Team.Dir().Path() + "/" + where},
		"retired %s with %d unread; atm team restore %s brings both back", name, unread, name)
}

func teamRestore(c *cli.Context, s *command.Scope) error {
	names, err := parseNames(c.Args().Slice())
	if err != nil {
		return err
	}
	if err := s.MayStop("restore", names[0]); err != nil {
		return err
	}
	if err := s.Team.Restore(c.Context, names[0]); err != nil {
		return err
	}
	return printResult(c, map[string]any{"agent": names[0]}, "%s is back", names[0])
}

package setup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var teamCommand = &cli.Command{
	Name: "team", Aliases: []string{"members", "agents", "agent", "users", "who", "ps"}, Usage: "who is busy, idle, blocked, off, and what is waiting for them",
	UsageText: "atm team\natm team --watch\natm team add carol",
	Flags: []cli.Flag{
		&cli.BoolFlag{Name: "watch", Aliases: []string{"w", "follow", "f"}, Usage: "repaint until you press q"},
		&cli.BoolFlag{Name: "all", Hidden: true},
	},
	Action: command.With(command.OpenTeam, team),
	Subcommands: []*cli.Command{
		{Name: "ls", Aliases: []string{"list", "all"}, Usage: "list the teams of the root", UsageText: "atm team ls", Action: command.With(command.OpenRoot, teamLs)},
		{
			Name: "add", ArgsUsage: "NAME…", Usage: "add members",
			UsageText: "atm team add carol\natm team add jobs --shared",
			Flags:     []cli.Flag{&cli.BoolFlag{Name: "shared", Aliases: []string{"share"}, Usage: "let others take from the inbox with atm take"}},
			Action:    command.With(command.OpenTeam, teamAdd),
		},
		{
			Name: "retire", ArgsUsage: "NAME", Usage: "move a member and its mail to the archive",
			UsageText: "atm team retire bob",
			Action:    command.With(command.OpenTeam, teamRetire),
		},
		{Name: "restore", ArgsUsage: "NAME", Usage: "bring back a retired member", UsageText: "atm team restore bob", Action: command.With(command.OpenTeam, teamRestore)},
	},
}

type members struct {
	Team    wire.Name      `json:"team"`
	Members []teams.Member `json:"members"`
	Stats   teams.Stats    `json:"stats"`
}

func readMembers(ctx context.Context, t *teams.Team) (m members, lines []string, err error) {
	all, err := t.Members(ctx)
	m = members{t.Name, all, teams.StatsOf(all)}
	if len(all) == 0 {
		return m, []string{fmt.Sprintf("team %s has no members: atm team add NAME", t.Name)}, err
	}
	return m, command.Team(all, command.Width()), err
}

func team(c *cli.Context, s *command.Scope) error {
	if c.Bool("watch") && command.Repaints(c) {
		return watchTeam(s)
	}
	m, lines, err := readMembers(c.Context, s.Team)
	if err := command.WarnUnreadable(err); err != nil {
		return err
	}
	warnConfig(c, s)
	return command.PrintAs(c, m, strings.Join(lines, "\n"))
}

func warnConfig(c *cli.Context, s *command.Scope) {
	if _, err := s.Team.Config(); err != nil {
		command.Warn(c, "%v: atm cannot tell who is a person", err)
	}
}

func watchTeam(s *command.Scope) error {
	s.MemberOrMe("")       // an identity is optional here
	var announced []string // what was waiting at the last look
	isFirst := true
	return s.Watch(func(ctx context.Context) ([]string, error) {
		m, lines, err := readMembers(ctx, s.Team)
		if _, isPartial := errors.AsType[*teams.UnreadableError](err); err != nil && !isPartial {
			return nil, err
		}
		waiting := waitingFor(ctx, s, m.Members)
		for _, line := range waiting {
			if !isFirst && !slices.Contains(announced, line) {
				command.Notify("atm", line)
			}
		}
		announced, isFirst = waiting, false
		if len(waiting) > 0 {
			lines = slices.Concat(waiting, []string{""}, lines)
		}
		return lines, nil
	})
}

// waitingFor lists what is waiting for me: questions of others, and mail.
func waitingFor(ctx context.Context, s *command.Scope, members []teams.Member) (lines []string) {
	questions, _ := s.Team.Pending(ctx, members) // shows what could be read
	for _, q := range questions {
		if s.Me == nil || q.Agent != s.Me.Agent() {
			asks := letter.Clip(letter.Escape(q.Summary()), 60)
			lines = append(lines, fmt.Sprintf("%s %s   atm pending%s", q.Agent, asks, s.Flags()))
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
		t, _ := s.Root.Team(n) // Teams has opened it
		members, err := t.Agents()
		if err != nil {
			return err
		}
		list = append(list, map[string]any{"team": n, "members": members})
		text += fmt.Sprintf("%s: %s\n", n, command.Join(members))
	}
	return command.PrintAs(c, map[string]any{"teams": list}, text)
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
	for _, n := range added {
		warnRetired(c, s.Team.Box(n))
	}
	text := fmt.Sprintf("added %s to team %s", command.Join(added), s.Team.Name)
	if len(added) == 0 {
		text = command.Join(names) + ": already in team " + string(s.Team.Name)
	}
	isShared := c.Bool("shared")
	if isShared {
		for _, n := range names {
			if err := s.Team.Box(n).Share(); err != nil {
				return err
			}
		}
		text += fmt.Sprintf("\nmembers of %s may take from the inbox of %s: atm take %s", s.Team.Name, command.Join(names), names[0])
	}
	return command.PrintAs(c, map[string]any{"team": s.Team.Name, "added": added, "shared": isShared}, text)
}

func teamRetire(c *cli.Context, s *command.Scope) error {
	box, err := s.EnterTeamOf(c.Args().First())
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
	unread := n.Unread + n.Leased
	return command.PrintUnlessError(c, err, map[string]any{"agent": name, "unread": unread, "path": s.Team.Dir().Path() + "/" + where},
		fmt.Sprintf("retired %s with %d unread; atm team restore %[1]s --team %[3]s brings both back", name, unread, s.Team.Name))
}

// warnRetired says of a new member that a retired one of the same name is in the archive.
func warnRetired(c *cli.Context, b *mailbox.Box) {
	kept, _ := b.Store().Retired(string(b.Agent()))
	if len(kept) == 0 {
		return
	}
	box := kept[0]
	unread, _ := box.UnreadIDs()
	team := b.Address().Team
	hint := fmt.Sprintf("atm team retire %s --team %s; atm team restore %s --team %[2]s", b.Agent(), team, filepath.Base(box.Path()))
	command.Warn(c, "a retired %s is kept with %d unread in %s: %s brings it back instead",
		b.Agent(), len(unread), box.Path(), command.CompleteHint(c, hint))
}

func teamRestore(c *cli.Context, s *command.Scope) error {
	dir := c.Args().First() // bob or, if several bobs are retired, bob.20261122T101500.000000000Z
	before, _, _ := strings.Cut(dir, ".")
	name, err := wire.ParseName(before)
	if err != nil {
		return failure.Usage("%v", err)
	}
	if err := s.MayStop("restore", name); err != nil {
		return err
	}
	err = s.Team.Restore(c.Context, dir)
	if errors.Is(err, mailbox.ErrExists) {
		return failure.Refused("%w", err).WithHint("atm team lists the members; atm team retire %s frees the name", name)
	}
	return command.PrintUnlessError(c, err, map[string]any{"agent": name}, string(name)+" is back")
}

package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
)

var gcCommand = &cli.Command{
	Name: "gc", Usage: "move old finished messages and events to the archive",
	UsageText:   "atm gc --dry-run\natm gc --keep 7d",
	Description: "Never unread, never owed; nothing is deleted. Whole days only.",
	Flags: []cli.Flag{
		command.DurationFlag("keep", 30*24*time.Hour, "what is younger than `D` stays (default 30d)"),
		&cli.IntFlag{Name: "keep-last", Value: 100, Usage: "the newest `N` of an inbox stay (default 100)"},
		&cli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "count only: the same totals"},
	},
	Action: gc,
}

// archived is what gc prints.
type archived struct {
	mailbox.Moved
	verb string
}

func (a archived) String() string {
	events := ""
	if a.Events > 0 {
		events = fmt.Sprintf(", %d events", a.Events)
	}
	return fmt.Sprintf("%s %d messages%s, %s, to the archive; %d stay", a.verb, a.Messages, events, letter.Size(a.Bytes), a.Skipped)
}

func gc(c *cli.Context) error {
	list, err := teamsInForce(c)
	if err != nil {
		return err
	}
	ctx, stop := command.Interruptible(c.Context)
	defer stop()
	options := mailbox.GCOptions{Before: time.Now().Add(-command.Duration(c, "keep")), KeepLast: c.Int("keep-last"), DryRun: c.Bool("dry-run")}
	total := archived{verb: "moved"}
	if options.DryRun {
		total.verb = "would move"
	}
	for _, t := range list {
		boxes, err := t.Boxes()
		if err != nil {
			return err
		}
		for _, b := range boxes {
			moved, err := archive(ctx, t, b, options)
			total.Add(moved)
			if err != nil && !errors.Is(err, mailbox.ErrNoAgent) { // it may have been retired meanwhile
				return err
			}
		}
	}
	return command.Print(c, total)
}

// archive moves a member's old messages and events.
func archive(ctx context.Context, t *teams.Team, b *mailbox.Box, options mailbox.GCOptions) (mailbox.Moved, error) {
	moved, err := b.GC(ctx, options)
	if err != nil {
		return moved, err
	}
	events, err := t.ArchiveEvents(ctx, b.Agent(), options.Before, options.DryRun)
	moved.Add(events)
	return moved, err
}

// teamsInForce is the team that is named, or all teams of the root.
func teamsInForce(c *cli.Context) ([]*teams.Team, error) {
	if c.IsSet("team") || os.Getenv("ATM_TEAM") != "" {
		s, err := command.OpenTeam(c)
		if err != nil {
			return nil, err
		}
		return []*teams.Team{s.Team}, nil
	}
	s, err := command.OpenRoot(c)
	if err != nil {
		return nil, err
	}
	return allTeams(s.Root)
}

func allTeams(root *teams.Root) (list []*teams.Team, err error) {
	names, err := root.Teams()
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		t, err := root.Team(n)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

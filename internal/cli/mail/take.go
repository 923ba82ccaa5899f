package mail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
	"github.com/agentteammail/atm/teams"
)

var takeCommand = &cli.Command{
	Name: "take", Aliases: []string{"claim", "lease"}, ArgsUsage: "[AGENT]", Usage: "take one message of a shared inbox",
	UsageText: "atm take jobs\natm take jobs --wait 10m --lease 30m\natm take --renew 9f3a1c",
	Description: "The oldest unread message is yours until the lease ends; nobody else gets it before.\n" +
		"atm ack finishes it, atm unread gives it back. Without AGENT it comes from your own\n" +
		"inbox; another's must be shared: atm team add jobs --shared. Nothing there: exit 0.",
	Flags: []cli.Flag{
		command.DurationFlag("lease", 10*time.Minute, "for `D`, default 10m, at most 24h"),
		&cli.StringFlag{Name: "renew", Aliases: []string{"extend"}, Usage: "the lease of `ID` begins anew"},
		&cli.BoolFlag{Name: "wait", Aliases: []string{"w", "block"}, Usage: "until there is one"},
		command.TimeoutFlag(),
	},
	Action: command.With(command.OpenToWrite, take),
}

func take(c *cli.Context, s *command.Scope) error {
	if err := command.NotBoth(c, "renew wait"); err != nil {
		return err
	}
	lease := command.Duration(c, "lease")
	if lease <= 0 || lease > mailbox.MaxLease {
		return command.Usage("--lease %s: it may be up to %s", lease, mailbox.MaxLease).WithHint("--lease 10m, and --renew for more")
	}
	if c.IsSet("renew") {
		return renewLease(c, s, lease)
	}
	s.WarnUnaccepted()
	box, err := s.MemberOrMe(c.Args().First())
	if err != nil {
		return err
	}
	if err := teams.MayTake(box, s.Me.Address()); errors.Is(err, teams.ErrNotShared) {
		return command.Refused("%w", err).WithHint("atm team add %s --shared", box.Agent())
	} else if err != nil {
		return err
	}
	if !c.Bool("wait") {
		taken, err := takeOne(c.Context, c, s, box, lease)
		if err != nil || taken {
			return err
		}
		return command.PrintAs(c, map[string]any{"message": nil}, "nothing to take")
	}
	return s.Await(func(ctx context.Context) error {
		timeout := command.Duration(c, "timeout")
		err := await(ctx, s, timeout, watchMail(box), func(entry) (bool, error) { return takeOne(ctx, c, s, box, lease) })
		if errors.Is(err, errTimeout) {
			return command.Timeout("nothing to take within %s", timeout).
				WithHint("do other work, or again: atm take %s --wait%s", box.Agent(), s.Flags())
		}
		return err
	})
}

// takeOne takes a message and shows it, and reports whether there was one. It is mine once its reader has received it.
func takeOne(ctx context.Context, c *cli.Context, s *command.Scope, box *mailbox.Box, lease time.Duration) (bool, error) {
	it, err := box.Lease(ctx, s.Me.Address(), lease, func(it *mailbox.Item, l mailbox.Lease) (bool, error) {
		r := s.Renderer()
		id := r.Short(it.ID) + s.Flags()
		text := fmt.Appendf(r.Render(it.Message, letter.Flags{TimesTaken: it.Times}),
			"yours until %s: atm ack %s when it is done, atm unread %s gives it back, atm take --renew %s extends it\n",
			command.Stamp(l.Until), id, id, id)
		if c.Bool("json") { // times: it was given out, this time included
			var err error
			if text, err = command.JSON(map[string]any{"message": message{Item: it}, "until": l.Until.UTC(), "times": it.Times + 1}); err != nil {
				return false, err
			}
		}
		n, err := showPieces(ctx, text)
		return n > 0, err
	})
	if it != nil {
		err = command.Tell(c, err)
	}
	return it != nil, err
}

func renewLease(c *cli.Context, s *command.Scope, lease time.Duration) error {
	m, err := findHeld(s, c.String("renew"))
	if errors.Is(err, mailbox.ErrNotFound) {
		_, _, err = s.Find(c.String("renew")) // it may be there, and somebody else's
	}
	if err == nil && !m.isLeased {
		err = fmt.Errorf("message %s %w", c.String("renew"), mailbox.ErrNotHeld)
	}
	if err != nil {
		return err
	}
	until, err := m.box.RenewLease(c.Context, m.ID, s.Me.Address(), lease)
	if err != nil {
		return err
	}
	return command.PrintAs(c, map[string]any{"id": m.ID, "until": until.UTC()}, m.ID.Short(6)+" is yours until "+command.Stamp(until))
}

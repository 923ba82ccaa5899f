package mail

import (
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var ackCommand = &cli.Command{
	Name: "ack", Aliases: []string{"acknowledge"}, ArgsUsage: "ID…", Usage: "I have it and will act on it",
	UsageText:   "atm ack 9f3a1c\natm ack 9f3a1c --text \"after lunch\"",
	Description: "Again: nothing more, exit 0. Of what you took (atm take) it ends the lease.",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "text", Aliases: []string{"message", "m", "body"}, Usage: "a `TEXT` with it"},
	},
	Action: ack,
}

func ack(c *cli.Context) error {
	s, err := openToWrite(c)
	if err != nil {
		return err
	}
	if c.IsSet("text") {
		if err := command.CheckText(c.String("text")); err != nil {
			return err
		}
	}
	found, err := findMineOrTaken(c, s)
	if err != nil {
		return err
	}
	for _, h := range found {
		if err := h.ack(c, s); err != nil {
			return err
		}
	}
	return nil
}

func (h held) ack(c *cli.Context, s *command.Scope) error {
	short := h.ID.Short(6)
	if h.State == mailbox.Withdrawn {
		return fmt.Errorf("message %s %w", short, mailbox.ErrWithdrawn)
	}
	if h.State == "" {
		return command.Refused("message %s is one that you sent", short).WithHint("atm trace %s%s says who has acknowledged it", short, s.Flags())
	}
	var a teams.Acked
	var err error
	if h.taken {
		a, err = s.Root.AckTaken(c.Context, h.box, s.Me.Address(), h.Message, c.String("text"), s.Origin())
	} else {
		a, err = s.Root.Ack(c.Context, s.Me, h.Message, c.String("text"), s.Origin())
	}
	if err != nil {
		return err
	}
	r := newResult(s, teams.AckID(h.ID, h.box.Address()), "acked")
	if a.Post != nil {
		r.reached(a.Post.To[0], false)
	}
	line := "acked " + short
	if a.Already {
		line += " before"
	}
	return command.Print(c, acked{r, line})
}

// acked prints an ack: its JSON is that of a message sent.
type acked struct {
	*result
	line string
}

func (a acked) String() string { return a.line }

// A held message is one of mine, or one that I took under a lease from box.
type held struct {
	*mailbox.Item
	box   *mailbox.Box
	taken bool
}

// findMineOrTaken are the messages that the words name: mine, or those that I took
// from shared inboxes.
func findMineOrTaken(c *cli.Context, s *command.Scope) (out []held, err error) {
	for _, word := range c.Args().Slice() {
		box, id, theirs, err := findTaken(s, word)
		if err != nil {
			return nil, err
		}
		if id != "" {
			it, err := box.Get(id)
			if err != nil {
				return nil, err
			}
			out = append(out, held{it, box, true})
			continue
		}
		it, _, err := s.Find(c.Context, word, true)
		if theirs != nil && (errors.Is(err, mailbox.ErrNotFound) || err == nil && (it.State == "" || it.Lease != nil)) {
			return nil, theirs
		}
		if err != nil {
			return nil, err
		}
		out = append(out, held{it, s.Me, false})
	}
	return out, nil
}

// findTaken is the message that I hold under a lease and that a fragment means; id
// is "" where there is none. theirs then says that others hold it, or nobody.
func findTaken(s *command.Scope, fragment string) (box *mailbox.Box, id wire.ID, theirs, err error) {
	f, bad := wire.ParseFragment(fragment)
	if bad != nil {
		return nil, "", nil, nil // Find says so
	}
	boxes, err := s.Team.Boxes()
	if err != nil {
		return nil, "", nil, err
	}
	for _, b := range boxes {
		leases, err := b.Leases()
		if err != nil {
			return nil, "", nil, err
		}
		for other, lease := range leases {
			if !f.Matches(other) {
				continue
			}
			if lease.By == s.Me.Address() && id != "" {
				return nil, "", nil, &teams.AmbiguousError{Fragment: fragment, Candidates: []wire.ID{id, other}}
			}
			if lease.By == s.Me.Address() {
				box, id = b, other
			} else if lease.Until.After(time.Now()) {
				taken := &mailbox.LeasedError{ID: other, By: lease.By, Until: lease.Until}
				theirs = command.Locked("%w", taken).WithHint("take another: atm take %s%s", b.Agent(), s.Flags())
			} else if theirs == nil {
				theirs = fmt.Errorf("message %s %w", other.Short(6), mailbox.ErrNotHeld)
			}
		}
	}
	return box, id, theirs, nil
}

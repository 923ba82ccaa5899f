package mail

import (
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
	if c.IsSet("text") {
		if err := command.CheckText(c.String("text")); err != nil {
			return err
		}
	}
	s, found, err := findMineOrTaken(c)
	if err != nil {
		return err
	}
	for _, h := range found {
		if h.State == mailbox.Withdrawn {
			return fmt.Errorf("message %s %w", h.ID.Short(6), mailbox.ErrWithdrawn)
		}
		a, err := s.Root.Ack(c.Context, h.box, s.Me.Address(), h.Message, c.String("text"), s.Origin())
		if err != nil {
			return err
		}
		out := acked{newResult(s, teams.AckID(h.ID, h.box.Address()), ""), "acked " + h.ID.Short(6)}
		for _, note := range a.Notes {
			command.Warn(c, "%s", note)
		}
		if a.Already {
			out.line += " before"
		}
		if a.Post != nil {
			out.Delivered = append(out.Delivered, out.reached(a.Post.To[0], false))
		}
		if err := command.Print(c, out); err != nil {
			return err
		}
	}
	return nil
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
func findMineOrTaken(c *cli.Context) (s *command.Scope, out []held, err error) {
	if s, err = openToWrite(c); err != nil {
		return nil, nil, err
	}
	for _, word := range c.Args().Slice() {
		box, id, theirs, err := findTaken(s, word)
		if err != nil {
			return nil, nil, err
		}
		var it *mailbox.Item
		if id != "" {
			it, err = box.Get(id)
		} else if it, _, err = s.Find(c.Context, word, true); theirs != nil && (err != nil || it.State == "" || it.Lease != nil) {
			err = theirs
		} else if err == nil && it.State == "" {
			err = command.Refused("message %s is one that you sent", it.ID.Short(6)).WithHint("atm trace %s, atm withdraw %s", word, word)
		}
		if err != nil {
			return nil, nil, err
		}
		if id == "" {
			box = s.Me
		}
		out = append(out, held{it, box, id != ""})
	}
	return s, out, nil
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
			mine := lease.By == s.Me.Address()
			switch {
			case !f.Matches(other):
			case mine && id != "":
				return nil, "", nil, &teams.AmbiguousError{Fragment: fragment, Candidates: []wire.ID{id, other}}
			case mine:
				box, id = b, other
			case lease.Until.After(time.Now()):
				taken := &mailbox.LeasedError{ID: other, By: lease.By, Until: lease.Until}
				theirs = command.Locked("%w", taken).WithHint("take another: atm take %s%s", b.Agent(), s.Flags())
			case theirs == nil:
				theirs = fmt.Errorf("message %s %w", other.Short(6), mailbox.ErrNotHeld)
			}
		}
	}
	return box, id, theirs, nil
}

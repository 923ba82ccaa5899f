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
	s, found, err := findMineOrLeased(c)
	if err != nil {
		return err
	}
	for _, m := range found {
		if m.State == mailbox.Withdrawn {
			return fmt.Errorf("message %s %w", m.ID.Short(6), mailbox.ErrWithdrawn)
		}
		var a teams.Acked
		if m.isLeased {
			a, err = s.Root.AckTaken(c.Context, m.box, s.Me.Address(), m.Message, c.String("text"), s.Origin())
		} else {
			a, err = s.Root.Ack(c.Context, s.Me, m.Message, c.String("text"), s.Origin())
		}
		if err != nil {
			return err
		}
		r := newResult(s, teams.AckID(m.ID, m.box.Address()), "")
		if a.Post != nil {
			r.Delivered = append(r.Delivered, r.reached(a.Post.To[0], false))
		}
		text := "acked " + m.ID.Short(6)
		if a.Already {
			text += " before"
		}
		if err := command.PrintAs(c, r, text); err != nil {
			return err
		}
	}
	return nil
}

var unreadCommand = &cli.Command{
	Name: "unread", ArgsUsage: "ID…", Usage: "put read messages back",
	UsageText: "atm unread 9f3a1c", Description: "What you took (atm take) is given back.", Action: unread,
}

func unread(c *cli.Context) error {
	s, found, err := findMineOrLeased(c)
	if err != nil {
		return err
	}
	l, text := newListing(nil), ""
	for _, m := range found {
		line := " unread again\n"
		if m.isLeased {
			line = " given back to " + string(m.box.Agent()) + "\n"
			err = m.box.EndLease(c.Context, m.ID, s.Me.Address())
		} else {
			_, err = m.box.MarkUnread(c.Context, m.ID)
		}
		if err != nil {
			return err
		}
		now, err := m.box.Get(m.ID)
		if err != nil {
			return err
		}
		text += m.ID.Short(6) + line
		l.Messages = append(l.Messages, message{Item: now})
	}
	return command.PrintAs(c, l, text)
}

// A foundMessage lies in box, which is mine unless I hold the message under a lease.
type foundMessage struct {
	*mailbox.Item
	box      *mailbox.Box
	isLeased bool
}

// findMineOrLeased are the messages that the words name: mine, or those that I took from
// shared inboxes.
func findMineOrLeased(c *cli.Context) (s *command.Scope, out []foundMessage, err error) {
	if s, err = openToWrite(c); err != nil {
		return nil, nil, err
	}
	for _, word := range c.Args().Slice() {
		m, notMine, err := findLeased(s, word)
		if err == nil && m.Item == nil {
			m.box = s.Me
			m.Item, _, err = s.Find(c.Context, word, true)
			if notMine != nil && (err != nil || m.State == "" || m.Lease != nil) {
				err = notMine
			} else if err == nil && m.State == "" {
				err = command.Refused("message %s is one that you sent", m.ID.Short(6)).WithHint("atm trace %s, atm withdraw %s", word, word)
			}
		}
		if err != nil {
			return nil, nil, err
		}
		out = append(out, m)
	}
	return s, out, nil
}

// findLeased is the message that I hold under a lease and that a fragment means; without
// an Item where there is none. notMine then says who holds one that fits, or held it.
func findLeased(s *command.Scope, fragment string) (m foundMessage, notMine, err error) {
	f, bad := wire.ParseFragment(fragment)
	boxes, err := s.Team.Boxes()
	if bad != nil || err != nil {
		return m, nil, err // Find says what is wrong with a fragment
	}
	for _, box := range boxes {
		leases, err := box.Leases()
		if err != nil {
			return m, nil, err
		}
		for id, lease := range leases {
			switch {
			case !f.Matches(id):
			case lease.By == s.Me.Address() && m.Item != nil:
				return m, nil, &teams.AmbiguousError{Fragment: fragment, Candidates: []wire.ID{m.ID, id}}
			case lease.By == s.Me.Address():
				if m.Item, err = box.Get(id); err != nil {
					return m, nil, err
				}
				m.box, m.isLeased = box, true
			case lease.Until.After(time.Now()):
				notMine = command.Locked("%w", &mailbox.LeasedError{ID: id, By: lease.By, Until: lease.Until}).
					WithHint("take another: atm take %s%s", box.Agent(), s.Flags())
			case notMine == nil:
				notMine = fmt.Errorf("message %s %w", id.Short(6), mailbox.ErrNotHeld)
			}
		}
	}
	return m, notMine, nil
}

var withdrawCommand = &cli.Command{
	Name: "withdraw", Aliases: []string{"unsend", "recall", "retract", "undo"}, ArgsUsage: "ID", Usage: "take a message of yours back",
	UsageText:   "atm withdraw 9f3a1c",
	Description: "Unread: it is taken out of the inbox. Read: the reader gets a notice. Acked: refused, exit 5.",
	Action:      withdraw,
}

func withdraw(c *cli.Context) error {
	s, err := openToWrite(c)
	if err != nil {
		return err
	}
	it, err := findSent(c.Context, s, c.Args().First())
	if err != nil {
		return err
	}
	r := newResult(s, it.ID, "withdrawn from")
	for _, w := range s.Root.Withdraw(c.Context, s.Me, it.Message, s.Origin()) {
		d := delivered{To: w.To.String(), State: "withdrawn", note: "unread"}
		switch {
		case w.Err != nil:
			r.missed(c, w.To, w.Err)
			continue
		case w.State == "":
			r.missed(c, w.To, command.Refused("message %s is acknowledged", it.ID.Short(6)).
				WithHint("atm reply %s \"…\"%s", it.ID.Short(6), s.Flags()))
			continue
		case w.State == mailbox.Withdrawn:
			d.note = "before"
		case w.State != mailbox.Unread:
			d.State, d.note = "notified", "read: a notice was sent"
		}
		r.Delivered = append(r.Delivered, d)
	}
	return r.print(c)
}

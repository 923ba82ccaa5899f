package mail

import (
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
)

var ackCommand = &cli.Command{
	Name: "ack", Aliases: []string{"acknowledge"}, ArgsUsage: "ID…", Usage: "I have it and will act on it",
	UsageText:   "atm ack 9f3a1c\natm ack 9f3a1c --text \"after lunch\"",
	Description: "Again: nothing more, exit 0. Of what you took (atm take) it ends the lease.",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "text", Aliases: []string{"message", "m", "body"}, Usage: "a `TEXT` with it"},
	},
	Action: command.With(command.OpenToWrite, ack),
}

func ack(c *cli.Context, s *command.Scope) error {
	text := c.String("text")
	if c.IsSet("text") {
		if err := command.CheckText(text); err != nil {
			return err
		}
	}
	var found []foundMessage
	for _, word := range c.Args().Slice() {
		m, err := findHeld(c, s, word)
		if errors.Is(err, mailbox.ErrNotFound) {
			m, err = findAcked(c, s, word, err)
		}
		if err != nil {
			return err
		}
		found = append(found, m)
	}
	for _, m := range found {
		if m.State == mailbox.Withdrawn {
			return fmt.Errorf("message %s %w", m.ID.Short(6), mailbox.ErrWithdrawn)
		}
		a, err := s.Root.Ack(c.Context, m.box, s.Me.Address(), m.Message, text, s.Origin())
		if err != nil {
			return err
		}
		for _, note := range a.Notes {
			command.Warn(c, "%s", note)
		}
		r := newResult(s, teams.AckID(m.ID, m.box.Address()), "")
		if a.Post != nil {
			r.Delivered = append(r.Delivered, r.reached(a.Post.To[0], false))
		}
		line := "acked " + m.ID.Short(6)
		if a.Already {
			line += " before"
		}
		if err := command.PrintAs(c, r, line); err != nil {
			return err
		}
	}
	return nil
}

// findAcked is a message that I took from a shared inbox and have acknowledged, or notMine.
func findAcked(c *cli.Context, s *command.Scope, word string, notMine error) (foundMessage, error) {
	it, _, err := s.Find(c.Context, word, false)
	if err != nil {
		return foundMessage{}, err
	}
	for _, to := range it.To {
		box, noBox := s.Root.Mailbox(to)
		sender, noSender := s.Root.Mailbox(it.From)
		if noBox != nil || noSender != nil {
			continue
		}
		if ack, err := sender.Get(teams.AckID(it.ID, to)); err == nil && ack.From == s.Me.Address() {
			return foundMessage{it, box, false}, nil
		}
	}
	return foundMessage{}, notMine
}

var unreadCommand = &cli.Command{
	Name: "unread", ArgsUsage: "ID…", Usage: "put read messages back",
	UsageText: "atm unread 9f3a1c", Description: "What you took (atm take) is given back.",
	Action: command.With(command.OpenToWrite, unread),
}

func unread(c *cli.Context, s *command.Scope) error {
	var found []foundMessage
	for _, word := range c.Args().Slice() {
		m, err := findHeld(c, s, word)
		if err != nil {
			return err
		}
		found = append(found, m)
	}
	l, text, err := newListing(nil), "", error(nil)
	for _, m := range found {
		line := " unread again\n"
		if m.isLeased {
			line = " given back to " + string(m.box.Agent()) + "\n"
			err = m.box.EndLease(c.Context, m.ID, s.Me.Address())
		} else {
			err = m.box.MarkUnread(c.Context, m.ID)
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

// findHeld is the message that a word names: one that I took from a shared inbox, or one
// of mine.
func findHeld(c *cli.Context, s *command.Scope, word string) (m foundMessage, err error) {
	it, box, err := s.Find(c.Context, word, false)
	if err != nil {
		return m, err
	}
	short, boxes := it.ID.Short(6), []*mailbox.Box{box}
	for _, a := range it.To {
		if b, err := s.Root.Mailbox(a); err == nil {
			boxes = append(boxes, b)
		}
	}
	notMine := fmt.Errorf("message %s: %w", short, mailbox.ErrNotFound)
	for _, b := range boxes {
		lease, isLeased, err := b.LastLease(it.ID)
		if err != nil {
			return m, err
		}
		if isLeased && lease.By == s.Me.Address() {
			return foundMessage{it, b, true}, nil
		}
		if isLeased && lease.Until.After(time.Now()) {
			notMine = command.Locked("%w", &mailbox.LeasedError{ID: it.ID, Lease: lease}).
				WithHint("take another: atm take %s%s", b.Agent(), s.Flags())
		} else if isLeased {
			notMine = fmt.Errorf("message %s %w", short, mailbox.ErrNotHeld)
		}
	}
	isMine := box.Address() == s.Me.Address()
	if isMine && it.State == "" && errors.Is(notMine, mailbox.ErrNotFound) {
		notMine = command.Refused("message %s is one that you sent", short).WithHint("atm trace %s, atm withdraw %s", short, short)
	}
	if !isMine || it.State == "" || it.Lease != nil {
		return m, notMine
	}
	return foundMessage{it, s.Me, false}, nil
}

var withdrawCommand = &cli.Command{
	Name: "withdraw", Aliases: []string{"unsend", "recall", "retract", "undo"}, ArgsUsage: "ID", Usage: "take a message of yours back",
	UsageText:   "atm withdraw 9f3a1c",
	Description: "Unread: it is taken out of the inbox. Read: the reader gets a notice. Acked: refused, exit 5.",
	Action:      command.With(command.OpenToWrite, withdraw),
}

func withdraw(c *cli.Context, s *command.Scope) error {
	it, err := findSent(c.Context, s, c.Args().First())
	if err != nil {
		return err
	}
	r := newResult(s, it.ID, "withdrawn from")
	for _, to := range it.To {
		d := delivered{To: to.String(), State: "withdrawn", note: "unread"}
		state, err := s.Root.Withdraw(c.Context, s.Me, it.Message, to, s.Origin())
		if err == nil && state == "" {
			err = command.Refused("message %s is acknowledged", it.ID.Short(6)).WithHint("atm reply %s \"…\"%s", it.ID.Short(6), s.Flags())
		}
		if err != nil {
			r.missed(c, to, err)
			continue
		}
		if state == mailbox.Withdrawn {
			d.note = "before"
		} else if state != mailbox.Unread {
			d.State, d.note = "notified", "read: a notice was sent"
		}
		r.Delivered = append(r.Delivered, d)
	}
	if err := r.print(c); err != nil {
		return err
	}
	return r.failures(c)
}

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
	found, err := findAll(c, s, findToAck)
	if err != nil {
		return err
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
		r := newResult(teams.AckID(m.ID, m.box.Address()))
		if a.Post != nil {
			r.reached(s, a.Post.To[0], false, "")
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

var unreadCommand = &cli.Command{
	Name: "unread", ArgsUsage: "ID…", Usage: "put read messages back",
	UsageText: "atm unread 9f3a1c", Description: "What you took (atm take) is given back.",
	Action: command.With(command.OpenToWrite, func(c *cli.Context, s *command.Scope) error {
		found, err := findAll(c, s, findHeld)
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
	}),
}

// A heldMessage lies in box, which is mine unless I took the message from there.
type heldMessage struct {
	*mailbox.Item
	box      *mailbox.Box
	isLeased bool
}

// findAll are the messages that the words name.
func findAll(c *cli.Context, s *command.Scope, find func(*command.Scope, string) (heldMessage, error)) (found []heldMessage, err error) {
	for _, word := range c.Args().Slice() {
		m, err := find(s, word)
		if err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	return found, nil
}

// findHeld is the message that a word names: one that I took from a shared inbox, or one
// of mine.
func findHeld(s *command.Scope, word string) (m heldMessage, err error) {
	it, box, err := s.Find(word)
	if err != nil {
		return m, err
	}
	short, boxes := it.ID.Short(6), []*mailbox.Box{box}
	for _, a := range it.To {
		if b, err := s.Root.Mailbox(a); err == nil {
			boxes = append(boxes, b)
		}
	}
	isMine := box.Address() == s.Me.Address()
	notMine := fmt.Errorf("message %s: %w", short, mailbox.ErrNotFound)
	if isMine && it.State == "" {
		notMine = command.Refused("message %s is one that you sent", short).WithHint("atm trace %s, atm withdraw %s", short, short)
	}
	for _, b := range boxes {
		lease, isLeased, err := b.LastLease(it.ID)
		if err != nil {
			return m, err
		}
		if isLeased && lease.By == s.Me.Address() {
			return heldMessage{it, b, true}, nil
		}
		if isLeased && lease.Until.After(time.Now()) {
			notMine = command.Locked("%w", &mailbox.LeasedError{ID: it.ID, Lease: lease}).
				WithHint("take another: atm take %s%s", b.Agent(), s.Flags())
		} else if isLeased {
			notMine = fmt.Errorf("message %s %w", short, mailbox.ErrNotHeld)
		}
	}
	if !isMine || it.State == "" || it.Lease != nil {
		return m, notMine
	}
	return heldMessage{it, s.Me, false}, nil
}

// findToAck is the message of findHeld, or one that I took and have acknowledged.
func findToAck(s *command.Scope, word string) (heldMessage, error) {
	m, err := findHeld(s, word)
	if !errors.Is(err, mailbox.ErrNotFound) {
		return m, err
	}
	it, _, err2 := s.Find(word)
	if err2 != nil {
		return m, err2
	}
	sender, err2 := s.Root.Mailbox(it.From)
	for _, to := range it.To {
		box, err3 := s.Root.Mailbox(to)
		if err2 != nil || err3 != nil {
			continue
		}
		if ack, err := sender.Get(teams.AckID(it.ID, to)); err == nil && ack.From == s.Me.Address() {
			return heldMessage{it, box, false}, nil
		}
	}
	return m, err
}

var withdrawCommand = &cli.Command{
	Name: "withdraw", Aliases: []string{"unsend", "recall", "retract", "undo"}, ArgsUsage: "ID", Usage: "take a message of yours back",
	UsageText:   "atm withdraw 9f3a1c",
	Description: "Unread: it is taken out of the inbox. Read: the reader gets a notice. Acked: refused, exit 5.",
	Action:      command.With(command.OpenToWrite, withdraw),
}

func withdraw(c *cli.Context, s *command.Scope) error {
	m, err := findSent(s, c.Args().First())
	if err != nil {
		return err
	}
	r := newResult(m.ID)
	for _, to := range m.To {
		d := delivered{To: to.String(), State: "withdrawn", note: "unread"}
		state, err := s.Root.Withdraw(c.Context, s.Me, m, to, s.Origin())
		if err == nil && state == "" {
			err = command.Refused("message %s is acknowledged", m.ID.Short(6)).WithHint("atm reply %s \"…\"%s", m.ID.Short(6), s.Flags())
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
	if err := r.print(c, s, "withdrawn", "from"); err != nil {
		return err
	}
	return r.failures(c, "not withdrawn from")
}

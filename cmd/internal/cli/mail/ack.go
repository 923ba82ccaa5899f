package mail

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/cmdline"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var ackCommand = &cli.Command{
	Name: "ack", Aliases: []string{"acknowledge"}, ArgsUsage: "ID…", Usage: "I have it and will act on it",
	UsageText: `atm ack 9f3a1c
atm ack 9f3a1c --text "after lunch"`,
	Description: "Acking again changes nothing: exit 0. An ack also ends your lease on a message (atm take).",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "text", Aliases: []string{"m", "note", "comment"}, Usage: "add a `TEXT`"},
		cmdline.NoFlag("message body", "atm ack ID --text TEXT"),
		cmdline.NoFlag("all owed last latest", "atm ls --owed shows the ids; atm ack ID ID"),
	},
	Action: command.With(app.OpenToWrite, ack),
}

func ack(c *cli.Context, s *app.Scope) (err error) {
	ids, text := c.Args().Slice(), c.String("text")
	if last := len(ids) - 1; last > 0 && isAckText(ids[last]) && !c.IsSet("text") { // ack ID "on it"
		ids, text = ids[:last], ids[last]
	}
	if text != "" || c.IsSet("text") {
		if text, err = command.MessageText(c, []string{text}); err != nil {
			return err
		}
	}
	all := newResult("")
	lines, err := forEach(c, s, ids, func(m heldMessage) (string, error) {
		one, line, err := ackOne(c, s, m, text)
		if err != nil {
			return "", err
		}
		all.ID, all.Short = cmp.Or(all.ID, one.ID), cmp.Or(all.Short, one.Short)
		all.Delivered = append(all.Delivered, one.Delivered...)
		if len(ids) > 1 {
			all.Acked = append(all.Acked, one)
		}
		return line, nil
	})
	return command.PrintDone(c, all, lines, err)
}

func isAckText(word string) bool {
	return strings.Contains(word, " ") && !slices.ContainsFunc(strings.Fields(word), isID)
}

// forEach calls do with each message that is named, once all are found, and returns its lines. A failure does not keep
// it from the others; the error names each.
func forEach(c *cli.Context, s *app.Scope, ids []string, do func(heldMessage) (line string, err error)) (lines string, err error) {
	var found []heldMessage
	for _, word := range ids {
		m, err := findHeld(c, s, word)
		if err != nil {
			return "", err
		}
		found = append(found, m)
	}
	var failed *failure.Error
	for _, m := range found {
		line, err := do(m)
		if err == nil {
			lines += line + "\n"
			continue
		}
		e := command.Given(c).Explain(err)
		if short := m.ID.Short(6); len(found) > 1 && !strings.Contains(e.Message, short) {
			e.Message = short + ": " + e.Message
		}
		if failed == nil {
			failed = e
		} else {
			failed.Message += "; " + e.Message
		}
	}
	if failed == nil {
		return lines, nil
	}
	return lines, failed
}

func ackOne(c *cli.Context, s *app.Scope, m heldMessage, text string) (r *result, line string, err error) {
	short := m.ID.Short(6)
	if m.State == mailbox.Withdrawn {
		return nil, "", withdrawnError(m.ID)
	}
	o := &teams.Outgoing{From: s.Me, Parent: m.Message, Message: &wire.Message{Body: text, Origin: s.Origin()}}
	a, err := s.Root.Ack(c.Context, m.box, o)
	if err != nil {
		return nil, "", repeatable(err)
	}
	for _, note := range a.Notes {
		command.Warn(c, "%s", note)
	}
	r = newResult(o.Message.ID)
	if o.Post != nil {
		r.addDelivered(s, o.Post.To[0].Address(), o, "")
	}
	line = "acked " + short
	if a.WasAcked {
		line += " before"
	}
	return r, line, nil
}

// repeatable gives an error its hint where the message that may not be durable has a derived id: again, it is the same.
func repeatable(err error) error {
	if _, ok := errors.AsType[*mailbox.NotDurableError](err); ok {
		err = failure.Failed("%w", err).WithHint("retry with the same command: it stays one message")
	}
	return err
}

var unreadCommand = &cli.Command{
	Name: "unread", ArgsUsage: "ID…", Usage: "put read messages back",
	UsageText:   "atm unread 9f3a1c",
	Description: "A message that you took (atm take) goes back to its inbox.",
	Flags:       []cli.Flag{cmdline.NoFlag("all limit n count", "atm ls shows unread messages; atm unread ID puts a read one back")},
	Action: command.With(app.OpenToWrite, func(c *cli.Context, s *app.Scope) error {
		var items []*mailbox.Item
		lines, err := forEach(c, s, c.Args().Slice(), func(m heldMessage) (line string, err error) {
			if line = m.ID.Short(6) + " unread again"; m.isLeased {
				line = m.ID.Short(6) + " given back to " + string(m.box.Agent())
				err = m.box.EndLease(c.Context, m.ID, s.Me.Address())
			} else {
				err = m.box.MarkUnread(c.Context, m.ID)
			}
			if err = warnUnlogged(c, err); err != nil {
				return "", err
			}
			it, err := m.box.Get(m.ID)
			if err == nil {
				items = append(items, it)
			}
			return line, err
		})
		return command.PrintDone(c, newListing(items, s.Me), lines, err)
	}),
}

// warnUnlogged makes a warning of an error that only an event is missing: the work is done.
func warnUnlogged(c *cli.Context, err error) error {
	if unlogged, ok := errors.AsType[*mailbox.UnloggedError](err); ok {
		command.Warn(c, "%v", unlogged)
		return nil
	}
	return err
}

func withdrawnError(id wire.ID) error {
	return failure.Refused("message %s %w", id.Short(6), mailbox.ErrWithdrawn).WithHint("atm show %s still shows it", id.Short(6))
}

// A heldMessage is a message of mine: in my inbox, or in the shared one from which I took it.
type heldMessage struct {
	*mailbox.Item
	box      *mailbox.Box
	isLeased bool
}

// findHeld finds a message that I hold; for ack, which may be repeated, also one that I held and have finished.
func findHeld(c *cli.Context, s *app.Scope, word string) (m heldMessage, err error) {
	it, box, err := s.Find(word)
	if err != nil {
		return m, err
	}
	me := s.Me.Address()
	from, err := s.Root.FindLease(box, it.Message, me) // a box and an error: somebody else took it
	switch {
	case from != nil && err == nil:
		return heldMessage{it, from, true}, nil
	case box.Address() == me && it.State != "" && it.Lease == nil:
		return heldMessage{it, s.Me, false}, nil
	case err != nil:
		return m, failure.Refused("%w", err).WithHint("atm trace %s says who has it", it.ID.Short(6))
	}
	if c.Command.Name == "ack" {
		for _, to := range it.To {
			if box, err := s.Root.Mailbox(to); err == nil && s.Root.HasFinished(c.Context, it.Message, to, me) {
				return heldMessage{it, box, false}, nil
			}
		}
	}
	return m, failure.Refused("message %s is not in your inbox", it.ID.Short(6)).WithHint("atm trace %s shows where it is", it.ID.Short(6))
}

var withdrawCommand = &cli.Command{
	Name: "withdraw", Aliases: []string{"unsend", "recall", "retract", "undo"}, ArgsUsage: "ID", Usage: "take back a message that you sent",
	UsageText: "atm withdraw 9f3a1c",
	Description: `If it is unread, it is removed from the inbox. If it is read, or sent to another machine, the
recipient gets a notice. If it is acked or taken (atm take), nothing changes: exit 5.`,
	Action: command.With(app.OpenToWrite, func(c *cli.Context, s *app.Scope) error {
		m, err := findSent(s, c.Args().First())
		if err != nil {
			return err
		}
		r := newResult(m.ID)
		for _, to := range m.To {
			if d, err := withdrawFrom(c, s, m, to); err != nil {
				r.addFailed(c, to, repeatable(err))
			} else {
				r.Delivered = append(r.Delivered, d)
			}
		}
		const did = "withdrawn from"
		return command.PrintDone(c, r, r.text(s, did), r.err(did))
	}),
}

func withdrawFrom(c *cli.Context, s *app.Scope, m *wire.Message, to wire.Address) (delivered, error) {
	d := delivered{To: to.String(), State: "withdrawn", note: "unread"}
	state, err := s.Root.Withdraw(c.Context, s.Me, m, to, s.Origin())
	err = warnUnlogged(c, err)
	switch {
	case err != nil:
	case state == "":
		err = failure.Refused("message %s is acknowledged", m.ID.Short(6)).WithHint("atm reply %s \"…\"%s", m.ID.Short(6), s.Given.Flags("", "root", "team", "as"))
	case state == mailbox.Withdrawn && to.Host == "": // the members of a host share an outbox
		d.note = "already withdrawn"
	case state != mailbox.Unread && state != mailbox.Withdrawn:
		d.State, d.note = "notified", "a notice was sent"
	}
	return d, err
}

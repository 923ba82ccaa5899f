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
	"github.com/agentteammail/atm/internal/maildir"
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

func ack(c *cli.Context, s *app.Scope, p *command.Printer) (err error) {
	ids, text := c.Args().Slice(), c.String("text")
	if last := len(ids) - 1; last > 0 && isAckText(ids[last]) && !c.IsSet("text") { // ack ID "on it"
		ids, text = ids[:last], ids[last]
	}
	if text != "" || c.IsSet("text") {
		if text, err = command.MessageText(c, []string{text}); err != nil {
			return err
		}
	}
	all := s.NewOutcome("")
	lines, err := forEach(c, s, ids, func(m heldMessage) (string, error) {
		one, did, err := s.Ack(c.Context, m.box, m.Item, text)
		if err != nil {
			return "", err
		}
		warn(c, one)
		all.ID, all.Short = cmp.Or(all.ID, one.ID), cmp.Or(all.Short, one.Short)
		all.Delivered = append(all.Delivered, one.Delivered...)
		if len(ids) > 1 {
			all.Acked = append(all.Acked, one)
		}
		return did, nil
	})
	return p.PrintDone(all, lines, err)
}

func isAckText(word string) bool {
	return strings.Contains(word, " ") && !slices.ContainsFunc(strings.Fields(word), app.IsID)
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

var unreadCommand = &cli.Command{
	Name: "unread", ArgsUsage: "ID…", Usage: "put read messages back",
	UsageText:   "atm unread 9f3a1c    what is unread: atm ls",
	Description: "A message that you took (atm take) goes back to its inbox.",
	Flags:       []cli.Flag{cmdline.NoFlag("all limit n count", "atm ls shows unread messages; atm unread ID puts a read one back")},
	Action: command.With(app.OpenToWrite, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		var items []*maildir.Item
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
		return p.PrintDone(newListing(p, items, s.Me), lines, err)
	}),
}

// warnUnlogged makes a warning of an error that only an event is missing: the work is done.
func warnUnlogged(c *cli.Context, err error) error {
	if unlogged, ok := errors.AsType[*maildir.UnloggedError](err); ok {
		command.PrinterOf(c).Warn("%v", unlogged)
		return nil
	}
	return err
}

// A heldMessage is a message of mine: in my inbox, or in the shared one from which I took it.
type heldMessage struct {
	*maildir.Item
	box      *maildir.Box
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
	Action: command.With(app.OpenToWrite, func(c *cli.Context, s *app.Scope, p *command.Printer) error {
		m, err := s.FindSent(c.Args().First())
		if err != nil {
			return err
		}
		out := s.Withdraw(c.Context, m)
		warn(c, out)
		const did = "withdrawn from"
		return p.PrintDone(out, out.Text(did), out.Err(did))
	}),
}

package mail

import (
	"cmp"
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

var ackCommand = &cli.Command{
	Name: "ack", Aliases: []string{"acknowledge"}, ArgsUsage: "ID…", Usage: "I have it and will act on it",
	UsageText:   "atm ack 9f3a1c\natm ack 9f3a1c --text \"after lunch\"",
	Description: "Acking again changes nothing: exit 0. An ack also ends your lease on a message (atm take).",
	Flags: []cli.Flag{
		&cli.StringFlag{Name: "text", Aliases: []string{"message", "m", "body"}, Usage: "add a `TEXT`"},
	},
	Action: command.With(command.OpenToWrite, ack),
}

func ack(c *cli.Context, s *command.Scope) error {
	var err error
	text := c.String("text")
	if text == "-" {
		text, err = command.StdinText(c, nil)
	} else if c.IsSet("text") {
		err = command.CheckText(text)
	}
	if err != nil {
		return err
	}
	acked, lines, err := forEach(c, s, findToAck, func(m heldMessage) (*result, string, error) { return ackOne(c, s, m, text) })
	if err == nil && len(acked) == 1 {
		return command.PrintAs(c, acked[0], lines)
	}
	all := ackedAll{newResult(""), acked}
	for _, one := range acked {
		all.ID = cmp.Or(all.ID, one.ID)
		all.Delivered = append(all.Delivered, one.Delivered...)
	}
	return command.PrintDone(c, all, lines, err)
}

// ackedAll is the JSON of several acks: that of one, with the first's id, and each by itself.
type ackedAll struct {
	*result
	Acked []*result `json:"acked"`
}

// forEach calls do with all messages that are named, once all are found, and returns what it did. Its error lists every
// failure of do.
func forEach[T any](c *cli.Context, s *command.Scope, find func(*cli.Context, *command.Scope, string) (heldMessage, error),
	do func(heldMessage) (T, string, error)) (done []T, lines string, err error) {
	var found []heldMessage
	for _, word := range c.Args().Slice() {
		m, err := find(c, s, word)
		if err != nil {
			return nil, "", err
		}
		found = append(found, m)
	}
	var failed *failure.Error
	for _, m := range found {
		one, line, doErr := do(m)
		if doErr == nil {
			done, lines = append(done, one), lines+line+"\n"
			continue
		}
		e := command.Explain(c, doErr)
		if short := m.ID.Short(6); len(found) > 1 && !strings.Contains(e.Message, short) {
			e.Message = short + ": " + e.Message
		}
		e.Hint = strings.Replace(e.Hint, " ID ", " "+m.ID.Short(6)+" ", 1)
		if failed != nil {
			failed.Message += "; " + e.Message
		} else {
			failed, err = e, e
		}
	}
	return done, lines, err
}

func ackOne(c *cli.Context, s *command.Scope, m heldMessage, text string) (r *result, line string, err error) {
	short := m.ID.Short(6)
	if m.State == mailbox.Withdrawn {
		return nil, "", withdrawnError(short)
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
		r.addDelivered(s, o.Post.To[0], o.Message, "")
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

func withdrawnError(short string) error {
	return failure.Refused("message %s %w", short, mailbox.ErrWithdrawn).WithHint("atm show %s shows it again", short)
}

var unreadCommand = &cli.Command{
	Name: "unread", ArgsUsage: "ID…", Usage: "put read messages back",
	UsageText: "atm unread 9f3a1c", Description: "A message that you took (atm take) goes back to its inbox.",
	Action: command.With(command.OpenToWrite, func(c *cli.Context, s *command.Scope) error {
		items, lines, err := forEach(c, s, findHeld, func(m heldMessage) (*mailbox.Item, string, error) { return putBack(c, s, m) })
		return command.PrintDone(c, newListing(items, s.Me), lines, err)
	}),
}

// putBack makes a message unread again or gives up its lease, and returns it as it is then.
func putBack(c *cli.Context, s *command.Scope, m heldMessage) (it *mailbox.Item, line string, err error) {
	if m.isLeased {
		line = m.ID.Short(6) + " given back to " + string(m.box.Agent())
		err = m.box.EndLease(c.Context, m.ID, s.Me.Address())
	} else {
		line = m.ID.Short(6) + " unread again"
		err = m.box.MarkUnread(c.Context, m.ID)
	}
	if err = warnUnlogged(c, err); err == nil {
		it, err = m.box.Get(m.ID)
	}
	return it, line, err
}

// warnUnlogged turns an *UnloggedError into a warning: only its event is missing, the work is done.
func warnUnlogged(c *cli.Context, err error) error {
	if unlogged, ok := errors.AsType[*mailbox.UnloggedError](err); ok {
		command.Warn(c, "%v", unlogged)
		return nil
	}
	return err
}

// A heldMessage is a message of mine: in my inbox, or in the shared one from which I took it.
type heldMessage struct {
	*mailbox.Item
	box      *mailbox.Box
	isLeased bool
}

var errNotMine = errors.New("is not in your inbox")

// findHeld finds a message that I hold. With errNotMine it returns the message alone.
func findHeld(_ *cli.Context, s *command.Scope, word string) (m heldMessage, err error) {
	it, box, err := s.Find(word)
	if err != nil {
		return m, err
	}
	short, isMine := it.ID.Short(6), box.Address() == s.Me.Address()
	from, err := s.Root.FindLease(box, it.Message, s.Me.Address()) // a box and an error: somebody else took it
	switch {
	case from != nil && err == nil:
		return heldMessage{it, from, true}, nil
	case isMine && it.State != "" && it.Lease == nil:
		return heldMessage{it, s.Me, false}, nil
	case err != nil:
		return m, heldByOther(err, short)
	}
	err = failure.Refused("message %s %w", short, errNotMine).WithHint("atm trace %s shows where it is", short)
	return heldMessage{Item: it}, err
}

func heldByOther(err error, short string) error {
	return failure.Refused("%w", err).WithHint("atm trace %s says who has it", short)
}

// findToAck is findHeld, but also finds a leased message that I have acknowledged or answered already.
func findToAck(c *cli.Context, s *command.Scope, word string) (heldMessage, error) {
	m, err := findHeld(c, s, word)
	if !errors.Is(err, errNotMine) {
		return m, err
	}
	sender, senderErr := s.Root.Mailbox(m.From)
	if senderErr != nil {
		return m, err
	}
	isReplied := len(teams.Replies(c.Context, sender, m.ID, s.Me.Address())) > 0
	for _, to := range m.To {
		ack, ackErr := teams.AckOf(sender, m.ID, to)
		isAcked := ackErr == nil && ack.From == s.Me.Address()
		if box, boxErr := s.Root.Mailbox(to); boxErr == nil && (isAcked || isReplied) {
			return heldMessage{m.Item, box, false}, nil
		}
	}
	return m, err
}

var withdrawCommand = &cli.Command{
	Name: "withdraw", Aliases: []string{"unsend", "recall", "retract", "undo"}, ArgsUsage: "ID", Usage: "take back a message that you sent",
	UsageText: "atm withdraw 9f3a1c",
	Description: "If it is unread, it is removed from the inbox. If it is read, or sent to another machine, the\n" +
		"recipient gets a notice. If it is acked or taken (atm take), nothing changes: exit 5.",
	Action: command.With(command.OpenToWrite, withdraw),
}

func withdraw(c *cli.Context, s *command.Scope) error {
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
	return r.report(c, s, "withdrawn", "from")
}

func withdrawFrom(c *cli.Context, s *command.Scope, m *wire.Message, to wire.Address) (delivered, error) {
	d := delivered{To: to.String(), State: "withdrawn", note: "unread"}
	state, err := s.Root.Withdraw(c.Context, s.Me, m, to, s.Origin())
	if err = warnUnlogged(c, err); err == nil && state == "" {
		err = failure.Refused("message %s is acknowledged", m.ID.Short(6)).
			WithHint("atm reply %s \"…\"%s", m.ID.Short(6), s.Flags())
	}
	isLate, isRemote := state != mailbox.Withdrawn && state != mailbox.Unread, to.Host != ""
	switch {
	case isLate && isRemote:
		d.State, d.note = "notified", "it was on its way to that host already: a notice follows"
	case isLate:
		d.State, d.note = "notified", "read: a notice was sent"
	case isRemote: // the members of a host share an outbox
		d.note = "not sent yet"
	case state == mailbox.Withdrawn:
		d.note = "before"
	}
	return d, err
}

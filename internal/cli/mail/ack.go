package mail

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/cmdline"
	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/mailbox/letter"
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
	return command.PrintDone(c, map[string]any{"acked": acked}, lines, err)
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
	a, err := s.Root.Ack(c.Context, m.box, s.Me.Address(), m.Message, text, s.Origin())
	if err != nil {
		return nil, "", repeatable(err)
	}
	for _, note := range a.Notes {
		command.Warn(c, "%s", note)
	}
	r = newResult(wire.AckID(m.ID, m.box.Address()))
	if a.Post != nil {
		r.addDelivered(s, a.Post.To[0], a.Post.Message, "")
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

var takeCommand = &cli.Command{
	Name: "take", Aliases: []string{"claim", "lease"}, ArgsUsage: "[AGENT]", Usage: "take the next message from a shared inbox",
	UsageText: "atm take jobs\natm take jobs --wait 10m --lease 30m\natm take --renew 9f3a1c",
	Description: "The oldest unread message is yours until the lease ends; nobody else can take it.\n" +
		"atm ack or atm reply finishes it, atm unread gives it back. To create such an inbox:\n" +
		"atm team add jobs --shared. Exit 0 if it is empty.",
	Flags: []cli.Flag{
		cmdline.DurationFlag("lease", 10*time.Minute, "lease it for `D` (default 10m, at most 24h)"),
		&cli.StringFlag{Name: "renew", Aliases: []string{"extend"}, Usage: "renew the lease of `ID`"},
		&cli.BoolFlag{Name: "wait", Aliases: []string{"w", "block"}, Usage: "wait for a message"},
		cmdline.TimeoutFlag(),
	},
	Action: command.With(command.OpenToWrite, take),
}

func take(c *cli.Context, s *command.Scope) error {
	if err := cmdline.NotBoth(c, "renew wait"); err != nil {
		return err
	}
	lease, timeout := cmdline.Duration(c, "lease"), cmdline.Duration(c, "timeout")
	if lease <= 0 || lease > mailbox.MaxLease {
		return failure.Usage("--lease %s: must be above 0 and at most %s", lease, mailbox.MaxLease).WithHint("--lease 10m; atm take --renew ID extends it")
	}
	if c.IsSet("renew") {
		return renewLease(c, s, lease)
	}
	s.WarnUnaccepted()
	if file := c.Args().First(); strings.ContainsAny(file, "./") {
		return failure.Usage("%s is not the name of an inbox", file).WithHint("%s", cmdline.HintFor("lock"))
	}
	box, err := s.MemberOrMe(c.Args().First())
	if err != nil {
		return err
	}
	if team := box.Address().Team; team != s.Me.Address().Team {
		return failure.Refused("only members of team %s may take from its inboxes", team).
			WithHint("to put something into it: atm send %s \"…\"", box.Address())
	}
	if err := teams.CheckMayTake(box, s.Me.Address()); errors.Is(err, teams.ErrNotShared) && box.Agent() != s.Me.Agent() {
		return failure.Refused("%w", err).WithHint("atm team add %s --shared", box.Agent())
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
	err = s.Await(func(ctx context.Context) error {
		return await(ctx, timeout, []*mailbox.Box{box}, false, func(entry) (bool, error) {
			return takeOne(ctx, c, s, box, lease)
		})
	})
	if errors.Is(err, errTimeout) {
		return failure.Timeout("nothing to take within %s", timeout).
			WithHint("do other work, or wait again: atm take %s --wait%s", box.Agent(), s.Flags())
	}
	return err
}

// takeOne leases and prints a message, if there is one. The lease counts once the reader of stdout has received it.
func takeOne(ctx context.Context, c *cli.Context, s *command.Scope, box *mailbox.Box, lease time.Duration) (bool, error) {
	it, err := box.Lease(ctx, s.Me.Address(), lease, false, func(it *mailbox.Item, l mailbox.Lease) (bool, error) {
		r := s.Renderer()
		id := r.Short(it.ID) + s.Flags()
		text := fmt.Appendf(r.Render(it.Message, letter.Flags{TimesTaken: it.TimesHandedOut, SupersededBy: it.SupersededBy}),
			"yours until %s: atm ack %s when it is done, atm unread %s gives it back, atm take --renew %s extends it\n",
			letter.Stamp(l.Until), id, id, id)
		times := it.TimesHandedOut + 1 // including now
		document := map[string]any{"message": message{Item: it}, "until": l.Until.UTC(), "times": times}
		n, err := printReceived(ctx, c, s, true, document, text)
		return n > 0, err
	})
	if errors.Is(err, mailbox.ErrNotHeld) { // given back or taken by somebody else while it was printed
		err = heldByOther(err, it.ID.Short(6))
	}
	return it != nil, err
}

func renewLease(c *cli.Context, s *command.Scope, lease time.Duration) error {
	m, err := findHeld(c, s, c.String("renew"))
	if err != nil {
		return err
	}
	if !m.isLeased {
		return heldByOther(fmt.Errorf("message %s %w", m.ID.Short(6), mailbox.ErrNotHeld), m.ID.Short(6))
	}
	until, err := m.box.RenewLease(c.Context, m.ID, s.Me.Address(), lease)
	return command.PrintUnlessError(c, err, map[string]any{"id": m.ID, "until": until.UTC()}, m.ID.Short(6)+" is yours until "+letter.Stamp(until))
}

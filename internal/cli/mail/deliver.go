package mail

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/internal/cli/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// deliver sends a prepared message and, if the flags say so, waits for its ack and answer. With --json all is one
// document at the end.
func deliver(c *cli.Context, s *command.Scope, o *teams.Outgoing) error {
	if !isAwaited(c) {
		return post(c.Context, c, s, o).report(c, s, "sent", "to")
	}
	var r *result
	var failed error
	err := s.Await(func(ctx context.Context) error {
		r = post(ctx, c, s, o)
		if failed = r.report(c, s, "sent", "to"); failed != nil && r.Error == nil { // nobody has it, or nobody reads this
			return failed
		}
		return r.awaitAnswers(ctx, c, s, o.Message)
	})
	if err != nil && err != failed {
		err = fmt.Errorf("sent %s, but %w", r.ID.Short(6), err)
	}
	if err == nil || len(r.Delivered) == 0 || !c.Bool("json") { // without --json stdout says that it was sent
		return cmp.Or(err, failed)
	}
	if errors.Is(err, context.Canceled) {
		flag := "--acked"
		if c.Bool("wait-reply") {
			flag = "--reply"
		}
		err = s.Interrupted(r.ID, flag)
	}
	e := command.Explain(c, err)
	e.Done = r
	return e
}

// prepare completes a message. It refuses an ack, an answer to a question, which atm approve checks, and session input
// that the session's own commands would refuse.
func prepare(s *command.Scope, o *teams.Outgoing) error {
	_, _, notInput := wire.HumanText(o.Message.Payload)
	switch {
	case o.Message.Type == wire.TypeAck:
		return failure.Usage("an ack cannot be sent as a message").WithHint("atm ack ID --text \"…\"")
	case o.Message.Type == wire.TypePermissionReply:
		return failure.Usage("an answer to a question cannot be sent as a message").WithHint("atm pending; atm approve NAME")
	case o.Message.Type == wire.TypeHumanInput && notInput != nil:
		return failure.Usage("the payload is not human input: %v", notInput).WithHint("atm help session")
	}
	input, _ := session.InputOf(o.Message)
	for _, to := range o.To {
		var err error
		switch input.Kind {
		case "abort":
			err = s.MayAct("abort", to.Agent)
		case "approve", "reject":
			err = s.MayAnswer(policy.Question{Agent: to.Agent, Kind: policy.KindDraft})
		}
		if err != nil {
			return err
		}
	}
	return s.Root.Prepare(o)
}

// post sends a prepared message. Everything that goes wrong is in the result, or a warning.
func post(ctx context.Context, c *cli.Context, s *command.Scope, o *teams.Outgoing) *result {
	unmarked := s.Root.Deliver(ctx, o)
	r, retry := newResult(o.Message.ID), retryHint(c, o)
	for _, out := range o.Post.Outcomes {
		switch {
		case out.Err != nil:
			e := r.addFailed(c, out.Box.Address(), out.Err)
			if out.Stored {
				e.Hint = "" // it says not to send it again; with its id that is safe
			}
			e.Hint = command.JoinFilled("; ", e.Hint, retry)
		case out.AlreadyStored:
			r.addKnown(c, s, out.Box, o.Message)
		default:
			r.addDelivered(s, out.Box, o.Message, "")
		}
	}
	for _, f := range o.Failed {
		r.addFailed(c, f.To, f.Err)
	}
	warnUnmarked(c, s, o.Parent, unmarked)
	if err := o.Post.SentIndexErr; err != nil {
		command.Warn(c, "sent, but atm ls --sent shows it only after atm doctor --fix: %v", err)
	}
	return r
}

// retryHint says how to send a message again that a recipient has already; "": nobody has it.
func retryHint(c *cli.Context, o *teams.Outgoing) string {
	if !slices.ContainsFunc(o.Post.Outcomes, func(out mailbox.Outcome) bool { return out.Stored }) {
		return ""
	}
	again := c.Command.HelpName + " … --id " + string(o.Message.ID)
	if c.IsSet("once") { // which excludes --id
		again = "the same command"
	}
	return "retry with " + again + ": it stays one message"
}

// warnUnmarked warns of why the message that was answered is not marked, if it is not.
func warnUnmarked(c *cli.Context, s *command.Scope, answered *wire.Message, why error) {
	why = warnUnlogged(c, why)
	_, isLeased := errors.AsType[*mailbox.LeasedError](why)
	switch {
	case why == nil:
	case isLeased || errors.Is(why, mailbox.ErrNotHeld):
		command.Warn(c, "%v", teams.DescribeUnmarked(why))
	default:
		hint := "your reply was sent, do not send it again: atm ack %s%s"
		failure.Failed("%s", teams.DescribeUnmarked(why)).WithHint(hint, answered.ID.Short(6), s.Flags()).Print()
	}
}

func isAwaited(c *cli.Context) bool { return c.Bool("wait-ack") || c.Bool("wait-reply") }

// awaitAnswers waits for the ack and the answer that the flags ask for, prints them and marks them as read.
func (r *result) awaitAnswers(ctx context.Context, c *cli.Context, s *command.Scope, m *wire.Message) error {
	var wanted []*condition
	if c.Bool("wait-ack") {
		wanted = append(wanted, ackCondition(ctx, s, m))
	}
	reply := replyCondition(ctx, s, m, wire.Address{})
	if c.Bool("wait-reply") {
		wanted = append(wanted, reply)
	}
	w := waiting{conditions: wanted, wantsEvery: true} // each agent's state was printed when it was sent
	if err := w.await(ctx, c, s); err != nil {
		return err
	}
	read, letters := acksOf(c, s, m)
	var text []byte
	if c.Bool("wait-ack") {
		text = fmt.Appendf(text, "acked %s\n", m.ID.Short(6))
	}
	if c.Bool("wait-reply") {
		if len(m.To) > 1 {
			command.Warn(c, "the first answer; atm wait --reply %s --every waits for all", m.ID.Short(6))
		}
		r.Reply = reply.match.Message
		read, letters = append(read, r.Reply.ID), append(letters, r.Reply.Item)
	}
	renderer := s.Renderer()
	renderer.LimitToPage()
	text = append(text, bytes.Join(command.Letters(renderer, letters, nil), nil)...)
	_, err := s.Me.Read(ctx, mailbox.ReadOptions{IDs: read}, func(b mailbox.Batch) (int, error) {
		n, err := printToMark(ctx, c, s, r, text)
		return n * len(b.Items), err
	})
	return err
}

// acksOf returns the acks of a message that are to be marked as read, and those of them with a text, which is to be
// shown. With --json the document has no room for a text: such an ack stays unread.
func acksOf(c *cli.Context, s *command.Scope, m *wire.Message) (read []wire.ID, letters []*mailbox.Item) {
	read = []wire.ID{} // not nil, which would be all
	for _, a := range m.To {
		ack, err := s.Me.Get(wire.AckID(m.ID, a))
		if err != nil || ack.Body != "" && c.Bool("json") {
			continue
		}
		read = append(read, ack.ID)
		if ack.Body != "" {
			letters = append(letters, ack)
		}
	}
	return read, letters
}

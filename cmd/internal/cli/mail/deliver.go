package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// deliver sends a message and, if the flags say so, waits for its ack and answer. With --json all is one document at the
// end.
func deliver(c *cli.Context, s *app.Scope, m *app.Message) error {
	if m.IsAwaited { // from now on an interrupt is answered with what was sent
		_, stop := app.Interruptible(c.Context)
		defer stop()
	}
	r, err := s.Send(c.Context, m)
	if err != nil {
		return err
	}
	warn(c, r)
	failed, text := r.Err("sent to"), r.Text("sent to")
	if !m.IsAwaited || text == "" {
		return command.PrintDone(c, r, text, failed)
	}
	if !c.Bool("json") {
		if err := command.PrintAs(c, r, text); err != nil {
			return err
		}
		if failed != nil {
			s.Given.Explain(failed).Print()
			failed = failure.Exit(failure.ExitPartial)
		}
	}
	err = s.Await(func(ctx context.Context) error { return awaitAnswers(ctx, c, s, m.Content, r) })
	if err != nil {
		e := s.Given.Explain(fmt.Errorf("sent %s, but %w", r.Short, err))
		if errors.Is(err, context.Canceled) {
			e = command.InterruptedWait(s, r.ID, awaited(c)...)
		}
		e.Done = r
		return e
	}
	return failed
}

// warn prints what else there is to say about what was sent.
func warn(c *cli.Context, r *app.Outcome) {
	for _, w := range r.Warnings {
		command.Warn(c, "%s", w)
	}
}

// awaited returns what the flags say to wait for, as atm wait calls it.
func awaited(c *cli.Context) (kinds []string) {
	for _, flag := range [][2]string{{"wait-read", "read"}, {"wait-ack", "acked"}, {"wait-reply", "reply"}} {
		if c.Bool(flag[0]) {
			kinds = append(kinds, flag[1])
		}
	}
	return kinds
}

// awaitAnswers waits until the message is read, for the ack and for the answer, as the flags ask, prints them and marks them as read. An ack with
// a text stays unread if a JSON document has no room for it.
func awaitAnswers(ctx context.Context, c *cli.Context, s *app.Scope, m *wire.Message, r *app.Outcome) error {
	var wanted []*condition
	var text []byte
	for _, kind := range awaited(c) {
		if kind == "reply" {
			wanted = append(wanted, replyCondition(ctx, c, s, m, wire.Address{}))
			continue
		}
		wanted = append(wanted, stageCondition(ctx, s, kind, m))
		text = fmt.Appendf(text, "%s %s\n", kind, m.ID.Short(6))
	}
	met, err := await(ctx, c, s, wanted, true)
	if err != nil {
		return err
	}
	read, letters := []wire.ID{}, []*mailbox.Item{} // not nil, which would be all
	for _, a := range m.To {
		ack, err := s.Root.AckOf(m, a)
		hasText := err == nil && ack.Body != ""
		if err == nil && !(hasText && c.Bool("json")) {
			read = append(read, ack.ID)
		}
		if hasText {
			letters = append(letters, ack)
		}
	}
	if last := met[len(met)-1]; last.Matched == "reply" {
		r.Reply = last.Message
		read, letters = append(read, last.Message.ID), append(letters, last.Message.Item)
	}
	renderer := command.Renderer(s)
	renderer.LimitToPage()
	text = append(text, bytes.Join(command.Letters(renderer, letters, nil), nil)...)
	_, err = s.Me.Read(ctx, mailbox.ReadOptions{IDs: read}, func(b mailbox.Batch) (int, error) {
		n, err := printReceived(ctx, c, s, r, text)
		return n * len(b.Items), err
	})
	return err
}

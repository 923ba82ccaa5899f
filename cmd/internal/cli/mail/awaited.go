package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// waitFor waits for what the options say of a message that was sent, and prints it.
func waitFor(c *cli.Context, s *app.Scope, o *sendOptions, r *app.Outcome) error {
	m := o.Content
	w := app.Wait{Every: true, Timeout: o.timeout, IsToldOff: true}
	for _, kind := range o.waits {
		if kind != "reply" {
			w.Conditions = append(w.Conditions, s.WhenReached(kind, m))
			continue
		}
		reply := s.WhenReplied(m, wire.Address{})
		reply.EndsWithTurn = true
		w.Conditions = append(w.Conditions, reply)
	}
	err := s.Await(func(ctx context.Context) error {
		met, err := s.Wait(ctx, w)
		if err != nil {
			return err
		}
		return printAwaited(ctx, c, s, m, met, r)
	})
	if err == nil {
		return nil
	}
	e := s.Given.Explain(fmt.Errorf("sent %s, but %w", r.Short, err))
	if errors.Is(err, context.Canceled) {
		e = s.InterruptedWait(m.ID, o.waits...)
	}
	e.Done = r
	return e
}

// printAwaited prints what was waited for, and marks the acks and the answer as read. An ack with a text stays unread if
// a JSON document has no room for it.
func printAwaited(ctx context.Context, c *cli.Context, s *app.Scope, m *wire.Message, met []*app.Match, r *app.Outcome) error {
	var text []byte
	read, letters := []wire.ID{}, []*maildir.Item{} // not nil, which would be all
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
	for _, one := range met {
		if one.Kind != "reply" {
			text = fmt.Appendf(text, "%s %s\n", one.Kind, m.ID.Short(6))
			continue
		}
		r.Reply = &message{Item: one.Item}
		read, letters = append(read, one.Item.ID), append(letters, one.Item)
	}
	renderer := command.PrinterOf(c).Renderer(s)
	renderer.LimitToPage()
	text = append(text, bytes.Join(command.Letters(renderer, letters, nil), nil)...)
	_, err := s.Me.Read(ctx, maildir.ReadOptions{IDs: read}, func(b maildir.Batch) (int, error) {
		n, err := printReceived(ctx, c, s, r, text)
		return n * len(b.Items), err
	})
	return err
}

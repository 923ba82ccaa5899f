package mail

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// deliver sends a message and, if the flags say so, waits for its ack and answer. With --json all is one document at the
// end.
func deliver(ctx context.Context, s *app.Scope, p *command.Printer, o *sendOptions) error {
	if len(o.waits) > 0 { // from now on an interrupt is answered with what was sent
		var stop func()
		ctx, stop = app.Interruptible(ctx)
		defer stop()
	}
	closeFiles, err := s.Attach(&o.Message, o.files...)
	defer closeFiles()
	if err != nil {
		return err
	}
	r, err := s.Send(ctx, &o.Message)
	if err != nil {
		return err
	}
	warn(p, r)
	failed, text := r.Err("sent to"), r.Text("sent to")
	if len(o.waits) == 0 || text == "" {
		return p.Confirming().PrintDone(r, text, failed)
	}
	if !p.IsJSON {
		if err := p.Confirming().PrintAs(r, text); err != nil {
			return err
		}
		if failed != nil {
			s.Given.Explain(failed).Print(p.Err)
			failed = failure.Exit(failure.ExitPartial)
		}
	}
	return cmp.Or(waitFor(ctx, s, p, o, r), failed)
}

// Submit sends a message with files, and prints what became of it.
func Submit(ctx context.Context, s *app.Scope, p *command.Printer, m *teams.Message, files []string) error {
	return deliver(ctx, s, p, &sendOptions{Message: *m, files: files})
}

// warn prints what else there is to say about what was sent.
func warn(p *command.Printer, r *app.Outcome) {
	for _, w := range r.Warnings {
		p.Warn("%s", w)
	}
}

// waitFor waits for what the options say of a message that was sent, and prints it. ctx has ended if an interrupt came
// while it was sent.
func waitFor(ctx context.Context, s *app.Scope, p *command.Printer, o *sendOptions, r *app.Outcome) error {
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
	err := s.Await(func(waiting context.Context) error {
		waiting, cancel := context.WithCancel(waiting)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		met, err := s.Wait(waiting, w)
		if err != nil {
			return err
		}
		return printAwaited(waiting, s, p, m, met, r)
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

// printAwaited prints what was waited for, and marks the acks and the answer as read.
func printAwaited(ctx context.Context, s *app.Scope, p *command.Printer, m *wire.Message, met []*app.Match, r *app.Outcome) error {
	var text []byte
	var read, letters []*wire.Item
	answers := post.AnswersTo(ctx, s.Root, m)
	for _, a := range m.To {
		ack := answers.At(m, a).Ack()
		if ack == nil {
			continue
		}
		read = append(read, ack)
		if ack.Body != "" {
			letters = append(letters, ack)
		}
		for i := range r.Delivered {
			if d := &r.Delivered[i]; d.To == a.String() {
				d.Outcome, d.Text = ack.Outcome(), ack.Body
			}
		}
	}
	for _, one := range met {
		if one.Kind != "reply" {
			line := one.Kind + " " + m.ID.Short(6)
			if len(one.Acks) > 0 {
				line += ": " + outcomesText(p.Renderer(s), one.Acks)
			}
			text = append(text, line+"\n"...)
			continue
		}
		if r.Reply = (&message{Item: one.Item}); one.Item.Type == wire.TypeAck { // which is among the letters if it has a text
			if one.Item.Body == "" {
				text = append(text, post.SaidOf(m, one.Item)+"\n"...)
			}
			continue
		}
		read, letters = append(read, one.Item), append(letters, one.Item)
	}
	renderer := p.Renderer(s)
	renderer.LimitToPage()
	text = append(text, bytes.Join(command.Letters(renderer, letters, nil), nil)...)
	received, err := printReceived(ctx, s, p, r, text)
	if received > 0 {
		err = errors.Join(err, inbox.MarkShown(ctx, s.Me, "", read...))
	}
	return err
}

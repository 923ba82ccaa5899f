package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/outlook"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/reply"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/wire"
)

// Ask sends a question and waits for its answer, at most for a timeout (0: for ever) that begins when it is sent. sent is
// called then, with when it will be seen. An error says whether it was sent, and how to go on. A member of another
// host or project answers with a reply: what it says at the end of a turn stays there.
func (s *Scope) Ask(ctx context.Context, o *post.Outgoing, timeout time.Duration, sent func(outlook.Outlook)) (*reply.Response, error) {
	if o.To[0].Host != "" {
		return s.askElsewhere(ctx, o, timeout, sent)
	}
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	to, isSent := o.To[0], false
	r, err := reply.Ask(limited, s.Root, o, reply.Observer{Other: s.warnNoAnswer, Sent: func(r *reply.Response) {
		isSent = true
		seen := outlook.Of(ctx, s.Root, r.To, o.Message)
		if r.To.WasDelivered {
			seen.Text = s.alreadySent(r.To, o.Message)
		}
		sent(seen)
		time.AfterFunc(cmp.Or(timeout, 1<<62), cancel) // from here: however short it is, the question is sent
	}})
	short := r.ID.Short(6)
	switch {
	case err == nil || !isSent:
		return r, err
	case errors.Is(err, context.Canceled) && ctx.Err() == nil:
		late := failure.Timeout("sent %s, but no answer from %s within %s", short, to.Agent, timeout).
			WithHint("wait on: `atm wait --any --reply %s --turn-done %[1]s`; `atm trace %[1]s` says what holds it up", short)
		late.Done = map[string]any{"id": r.ID}
		return r, late
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case errors.Is(err, post.ErrDeclined):
		return r, err
	case errors.Is(err, mailbox.ErrNoMailbox): // it was retired meanwhile
		return r, fmt.Errorf("sent %s, but %w", short, err)
	}
	return r, failure.Failed("%w", err).WithHint("`atm trace %s` says what became of the question", short)
}

func (s *Scope) askElsewhere(ctx context.Context, o *post.Outgoing, timeout time.Duration, sent func(outlook.Outlook)) (*reply.Response, error) {
	posted, unknown, err := post.Prepare(s.Root, o)
	if err == nil && len(unknown) > 0 {
		err = unknown[0].Err
	}
	if err != nil {
		return &reply.Response{}, err
	}
	r := &reply.Response{Answer: history.Answer{ID: o.Message.ID, Status: "replied"}}
	if r.To = post.Deliver(ctx, s.Root, posted)[0]; r.To.Err != nil {
		return r, r.To.Err
	}
	sent(outlook.Of(ctx, s.Root, r.To, o.Message))
	answered := s.WhenReplied(o.Message, wire.Address{})
	answered.EndsWithTurn = true
	met, err := s.Wait(ctx, Wait{Conditions: []*Condition{answered}, Timeout: timeout, IsToldOff: true})
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case err != nil:
		e := s.Given.Explain(fmt.Errorf("sent %s, but %w", r.ID.Short(6), err))
		e.Done = map[string]any{"id": r.ID}
		return r, e
	}
	r.Reply = met[0].Item
	r.From, r.Text, r.Took = r.Reply.From, r.Reply.Body, max(r.Reply.SentAt.Sub(o.Message.SentAt), 0)
	return r, nil
}

// InterruptedWait is the error of an interrupt after a message was sent. kinds are the flags of atm wait that wait on.
func (s *Scope) InterruptedWait(id wire.ID, kinds ...string) *failure.Error {
	again := "atm wait"
	for _, kind := range kinds {
		again += " --" + kind + " " + id.Short(6)
	}
	if slices.Contains(kinds, "turn-done") { // which is an alternative to a reply
		again += " --any"
	}
	e := failure.Failed("sent %s, but the wait was interrupted", id.Short(6)).WithHint("`%s`", again)
	e.Exit = failure.ExitInterrupted
	return e
}

// warnNoAnswer shows a reply that does not count as the answer that is awaited.
func (s *Scope) warnNoAnswer(other post.NoAnswer) {
	s.Given.Warn("%s from %s does not count: %s: %s", other.ID.Short(6), s.Who(other.From), other.Reason, letter.Clip(letter.Escape(other.Title()), 80))
}

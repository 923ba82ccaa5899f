package room

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// Actions return what is to be said of it. Their errors have a hint: see Explain.

// Explain is an error of an action with its hint, and with its code as the command line has it.
func (r *Room) Explain(err error) *command.Error { return r.scope.Explain(err) }

// mayAct refuses who only looks, and who may not write as me.
func (r *Room) mayAct() error {
	if r.scope.Me == nil {
		return command.Usage("nobody has said who you are").WithHint("begin again with --as NAME, or ATM_AGENT")
	}
	return r.scope.MayWrite()
}

// Approve allows what a question asks: the option, which may be its number, or the one that says so once.
// What I was not shown I do not allow: the question is of the snapshot.
func (r *Room) Approve(ctx context.Context, q Question, option string) (string, error) {
	return r.decide(ctx, q, command.Answer{Option: option})
}

// Reject refuses it, and tells the asker why, if there is a reason.
func (r *Room) Reject(ctx context.Context, q Question, reason string) (string, error) {
	return r.decide(ctx, q, command.Answer{IsDeny: true, Reason: reason})
}

func (r *Room) decide(ctx context.Context, asked Question, a command.Answer) (string, error) {
	if err := r.mayAct(); err != nil {
		return "", err
	}
	acting, err := r.scope.Acting()
	if err != nil {
		return "", err
	}
	s, _ := r.Snapshot()
	for _, q := range s.Waiting {
		if q.ID != "" && q.Is(asked) {
			o, err := acting.Decide(ctx, q.Question, a)
			return said(q.Agent, o), err
		}
	}
	return "", fmt.Errorf("%s: %w", asked.ID, policy.ErrNoQuestion)
}

// said is an outcome in a line; "" where there is none.
func said(name wire.Name, o control.Outcome) string {
	if o.Done == "" {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %s (%s)", name, o.Done, o.Detail), " ()")
}

// Send sends a message to members as `atm send` names them: bob, bob,carol, all.
func (r *Room) Send(ctx context.Context, to, text string) (string, error) {
	if err := r.mayAct(); err != nil {
		return "", err
	}
	addresses, err := r.scope.Addresses([]string{to})
	if err != nil {
		return "", err
	}
	return r.post(ctx, &teams.Outgoing{To: addresses}, text)
}

// Reply answers a message, which is then read, and acknowledged if that was wanted.
func (r *Room) Reply(ctx context.Context, parent *wire.Message, text string) (string, error) {
	if err := r.mayAct(); err != nil {
		return "", err
	}
	return r.post(ctx, &teams.Outgoing{To: teams.ReplyTo(parent, r.scope.Me.Address(), false), Parent: parent}, text)
}

func (r *Room) post(ctx context.Context, o *teams.Outgoing, text string) (string, error) {
	if err := command.CheckText(text); err != nil {
		return "", err
	}
	o.From, o.Person = r.scope.Me, command.Person()
	o.Message = &wire.Message{Body: text, Origin: r.scope.Origin(), SentAt: time.Now().UTC()}
	if err := r.scope.Root.Prepare(o); err != nil {
		return "", err
	}
	unmarked := r.scope.Root.Deliver(ctx, o)
	var to []string
	var errs []error
	for _, f := range o.Failed {
		errs = append(errs, f.Err)
	}
	for _, out := range o.Post.Outcomes {
		a := out.Box.Address()
		if out.Err != nil {
			errs = append(errs, fmt.Errorf("not sent to %s: %w", r.scope.Renderer().Who(a), out.Err))
			continue
		}
		_, note := r.scope.Root.Forecast(a, false)
		to = append(to, fmt.Sprintf("%s (%s)", r.scope.Renderer().Who(a), note))
	}
	line := ""
	if len(to) > 0 {
		line = "sent " + o.Message.ID.Short(6) + " to " + strings.Join(to, ", ")
	}
	if unmarked != nil {
		line += "; " + teams.Unmarked(unmarked)
	}
	return line, errors.Join(errs...)
}

// Ack acknowledges a message of mine.
func (r *Room) Ack(ctx context.Context, id wire.ID) (string, error) {
	it, err := r.mine(id)
	if err != nil {
		return "", err
	}
	if it.State == mailbox.Withdrawn {
		return "", fmt.Errorf("message %s %w", id.Short(6), mailbox.ErrWithdrawn)
	}
	a, err := r.scope.Root.Ack(ctx, r.scope.Me, r.scope.Me.Address(), it.Message, "", r.scope.Origin())
	if err != nil {
		return "", err
	}
	return strings.Join(append([]string{"acked " + id.Short(6)}, a.Notes...), "; "), nil
}

// MarkRead marks a message of mine as read.
func (r *Room) MarkRead(ctx context.Context, id wire.ID) (string, error) {
	if _, err := r.mine(id); err != nil {
		return "", err
	}
	if err := r.scope.Me.MarkRead(ctx, id); err != nil {
		return "", err
	}
	return "read " + id.Short(6), nil
}

// mine is a message in my mailbox that I may change.
func (r *Room) mine(id wire.ID) (*mailbox.Item, error) {
	if err := r.mayAct(); err != nil {
		return nil, err
	}
	return r.scope.Me.Get(id)
}

// Interrupt breaks off a member's turn.
func (r *Room) Interrupt(ctx context.Context, name wire.Name) (string, error) {
	if err := r.mayAct(); err != nil {
		return "", err
	}
	if _, err := r.scope.Member(string(name)); err != nil {
		return "", err
	}
	o, err := r.scope.Interrupt(ctx, name)
	return said(name, o), err
}

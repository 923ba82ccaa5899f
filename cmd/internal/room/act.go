package room

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/cli/command"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/teams/policy"
	"github.com/agentteammail/atm/wire"
)

// Each action returns a line about its result. Scope.Explain gives the hint for its error.

// checkMayAct refuses a room without an identity, and a process that may not write as me.
func (r *Room) checkMayAct() error {
	if r.Scope.Me == nil {
		return failure.Usage("nobody has said who you are").WithHint("start again with --as NAME, or set ATM_AGENT")
	}
	return cmp.Or(r.Scope.Me.CheckPresent(), r.Scope.MayWrite())
}

// Decide answers a question as `atm approve` and `atm reject` do; to choose an option that denies is to reject. The
// question must be in the snapshot, so that nobody allows what they have not seen.
func (r *Room) Decide(ctx context.Context, asked Question, a app.Answer) (string, error) {
	acting, err := r.Scope.Acting()
	if err := cmp.Or(r.checkMayAct(), err); err != nil {
		return "", err
	}
	s, _ := r.Snapshot()
	for _, q := range s.Waiting {
		if q.ID != "" && q.Is(asked) {
			for _, o := range q.Options {
				a.IsDeny = a.IsDeny || o.ID == a.Option && o.Denies()
			}
			o, err := acting.Decide(ctx, q.Question, a)
			return outcomeLine(q.Agent, o), err
		}
	}
	return "", fmt.Errorf("%s: %w", asked.ID, policy.ErrNoQuestion)
}

// AnswerText answers a question that takes a text, as `atm send --type human_input` does. The question must be in the
// snapshot.
func (r *Room) AnswerText(ctx context.Context, asked Question, text string) (string, error) {
	if err := r.checkMayAct(); err != nil {
		return "", err
	}
	s, _ := r.Snapshot()
	for _, q := range s.Waiting {
		switch {
		case !q.TakesText() || !q.Is(asked):
		case q.Agent == r.Scope.Me.Agent():
			return "", failure.Refused("nobody answers a question of their own")
		default:
			return r.send(ctx, string(q.Agent), nil, &wire.Message{Type: wire.TypeHumanInput, Body: text})
		}
	}
	return "", fmt.Errorf("%s: %w", asked.Agent, policy.ErrNoQuestion)
}

// outcomeLine renders a runner's outcome, "" if there is none.
func outcomeLine(name wire.Name, o control.Outcome) string {
	if o.Done == "" {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %s (%s)", name, o.Done, o.Detail), " ()")
}

// NotSentError says which recipients a message did not reach.
type NotSentError struct {
	To  string // named as for Send
	Err error
}

func (e *NotSentError) Error() string { return e.Err.Error() }
func (e *NotSentError) Unwrap() error { return e.Err }

// Send sends a message to members, named as for `atm send` (bob, bob,carol, all), if all of them are known. With a
// parent it replies to that, which marks the parent as read, and acknowledges it if it asked for that. With a
// *NotSentError it has reached the others.
func (r *Room) Send(ctx context.Context, to string, parent *wire.Message, text string) (string, error) {
	return r.send(ctx, to, parent, &wire.Message{Body: text})
}

func (r *Room) send(ctx context.Context, to string, parent, m *wire.Message) (string, error) {
	err := cmp.Or(r.checkMayAct(), command.CheckText(m.Body))
	if err != nil {
		return "", err
	}
	m.Origin, m.SentAt = r.Scope.Origin(), time.Now().UTC()
	o := &teams.Outgoing{From: r.Scope.Me, Message: m, Parent: parent, Person: app.Person()}
	if parent != nil {
		o.To = r.Scope.Root.ReplyTo(ctx, parent, r.Scope.Me, false)
	} else if o.To, o.All, err = r.Scope.Addresses([]string{to}); err != nil {
		return "", err
	}
	if err := r.Scope.Root.PrepareAll(o); err != nil {
		return "", err
	}
	unmarked := r.Scope.Root.Deliver(ctx, o)
	line, reached, missed, errs := "", []string{}, []string{}, []error{}
	for _, out := range o.Post.Outcomes {
		who := command.Renderer(r.Scope).Who(out.Box.Address())
		if out.Err != nil {
			missed, errs = append(missed, who), append(errs, fmt.Errorf("not sent to %s: %w", who, out.Err))
			continue
		}
		_, note := r.Scope.Root.Forecast(out.Box.Address(), o)
		reached = append(reached, fmt.Sprintf("%s (%s)", who, note))
	}
	if len(reached) > 0 {
		line = "sent " + o.Message.ID.Short(6) + " to " + strings.Join(reached, ", ")
	}
	if unmarked != nil {
		line += "; " + teams.DescribeUnmarked(unmarked)
	}
	if err := o.Post.SentIndexErr; err != nil {
		line += fmt.Sprintf("; atm ls --sent shows it only after atm doctor --fix: %v", err)
	}
	if err := errors.Join(errs...); err != nil {
		return line, &NotSentError{strings.Join(missed, ","), err}
	}
	return line, nil
}

// Ack acknowledges a message of mine.
func (r *Room) Ack(ctx context.Context, id wire.ID) (string, error) {
	it, err := r.ownMessage(id)
	if err != nil {
		return "", err
	}
	if it.State == mailbox.Withdrawn {
		return "", fmt.Errorf("message %s %w", id.Short(6), mailbox.ErrWithdrawn)
	}
	a, err := r.Scope.Root.Ack(ctx, r.Scope.Me, &teams.Outgoing{From: r.Scope.Me, Parent: it.Message, Message: &wire.Message{Origin: r.Scope.Origin()}})
	if err != nil {
		return "", err
	}
	return strings.Join(append([]string{"acked " + id.Short(6)}, a.Notes...), "; "), nil
}

// MarkRead marks a message of mine as read.
func (r *Room) MarkRead(ctx context.Context, id wire.ID) (string, error) {
	if _, err := r.ownMessage(id); err != nil {
		return "", err
	}
	if err := r.Scope.Me.MarkRead(ctx, id); err != nil {
		return "", err
	}
	return "read " + id.Short(6), nil
}

func (r *Room) ownMessage(id wire.ID) (*mailbox.Item, error) {
	if err := r.checkMayAct(); err != nil {
		return nil, err
	}
	return r.Scope.Me.Get(id)
}

// Interrupt interrupts a member's turn.
func (r *Room) Interrupt(ctx context.Context, name wire.Name) (string, error) {
	_, unknown := r.Scope.Member(string(name))
	if err := cmp.Or(r.checkMayAct(), unknown); err != nil {
		return "", err
	}
	o, err := r.Scope.Interrupt(ctx, name)
	return outcomeLine(name, o), err
}

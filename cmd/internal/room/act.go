package room

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/agentteammail/atm/cmd/internal/app"
	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/outlook"
	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/policy"
	"github.com/agentteammail/atm/internal/teamdir/notices"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/teams"
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
func (r *Room) Decide(ctx context.Context, asked Question, a ask.Answer) (string, error) {
	acting, err := r.Scope.Acting()
	if err := cmp.Or(r.checkMayAct(), err); err != nil {
		return "", err
	}
	s, _ := r.Snapshot()
	for _, q := range s.Waiting {
		if q.ID != "" && q.Is(asked) {
			for _, o := range q.Options {
				a.Deny = a.Deny || o.ID == a.Option && o.Denies()
			}
			o, err := acting.Decide(ctx, q.Question, a)
			return outcomeLine(q.Agent, o), err
		}
	}
	return "", fmt.Errorf("%s: %w", asked.ID, ask.ErrNoQuestion)
}

// AnswerText answers a question that takes a text, with a message of type human_input, or as `atm reply` does. The question must
// be in the snapshot.
func (r *Room) AnswerText(ctx context.Context, asked Question, text string) (string, error) {
	if err := r.checkMayAct(); err != nil {
		return "", err
	}
	s, _ := r.Snapshot()
	for _, q := range s.Waiting {
		switch {
		case !q.TakesText() && !q.IsMail() || !q.Is(asked):
		case q.IsMail():
			o, err := r.Scope.AnswerMail(ctx, q.Question, text)
			return outcomeLine(q.Agent, o), err
		case q.Agent == r.Scope.Me.Agent():
			return "", failure.Refused("nobody answers a question of their own")
		default:
			return r.Send(ctx, &teams.Message{To: []string{string(q.Agent)}, Content: &wire.Message{Type: wire.TypeHumanInput, Body: text}})
		}
	}
	return "", fmt.Errorf("%s: %w", asked.Agent, ask.ErrNoQuestion)
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

// Send sends a message to members, named as for `atm send` (bob, bob,carol, @reviewers, all). An answer marks
// what it answers as read, and acknowledges it if that asked for it. files are paths. With a *NotSentError it has reached the others.
func (r *Room) Send(ctx context.Context, m *teams.Message, files ...string) (string, error) {
	if err := cmp.Or(r.checkMayAct(), app.CheckText(m.Content.Body)); err != nil {
		return "", err
	}
	closeFiles, err := r.Scope.Attach(m, files...)
	defer closeFiles()
	if err != nil {
		return "", err
	}
	out, err := r.Scope.Send(ctx, m)
	if err != nil {
		return "", err
	}
	const did = "sent to"
	if err = out.Err(did); err != nil {
		var missed []string
		for _, f := range out.Failed {
			missed = append(missed, out.Called(f.To))
		}
		err = &NotSentError{strings.Join(missed, ","), err}
	}
	return withWarnings(out.Text(did), out), err
}

func withWarnings(did string, out *app.Outcome) string {
	for _, w := range out.Warnings {
		did += "; " + w.String()
	}
	return did
}

// MayWithdraw reports whether a message is mine, and somebody has not read it, or has not answered it in time: then that ends too.
func (r *Room) MayWithdraw(it *wire.Item) bool {
	me := r.Scope.Me
	if me == nil || it.From != me.Address() {
		return false
	}
	s, _ := r.Snapshot()
	isLate := slices.ContainsFunc(s.Overdue, func(o notices.OverdueAnswer) bool { return o.ID == it.ID })
	_, unread, _ := r.readers(it)
	return unread > 0 || isLate
}

// Withdraw takes back a message that I sent, as `atm withdraw` does.
func (r *Room) Withdraw(ctx context.Context, id wire.ID) (string, error) {
	if err := r.checkMayAct(); err != nil {
		return "", err
	}
	m, err := r.Scope.FindSent(string(id))
	if err != nil {
		return "", err
	}
	const did = "withdrawn from"
	out, err := r.Scope.Withdraw(ctx, m)
	if err != nil {
		return "", err
	}
	return withWarnings(out.Text(did), out), out.Err(did)
}

// Ack acknowledges a message of mine.
func (r *Room) Ack(ctx context.Context, id wire.ID) (string, error) {
	if _, err := r.ownMessage(id); err != nil {
		return "", err
	}
	done := r.Scope.AckAll(ctx, []wire.ID{id}, "", "")[0]
	if done.Err != nil {
		return "", done.Err
	}
	return withWarnings(done.Did, done.Outcome), nil
}

// MarkRead marks messages of mine as read.
func (r *Room) MarkRead(ctx context.Context, ids ...wire.ID) (string, error) {
	for _, id := range ids {
		if _, err := r.ownMessage(id); err != nil {
			return "", err
		}
		if err := r.Scope.Me.MarkRead(ctx, id); err != nil {
			return "", err
		}
	}
	return "read " + these(ids), nil
}

// MarkUnread puts messages of mine that were read back.
func (r *Room) MarkUnread(ctx context.Context, ids ...wire.ID) (string, error) {
	defer r.changed.send()
	for _, id := range ids {
		if _, err := r.ownMessage(id); err != nil {
			return "", err
		}
		if err := r.Scope.Me.MarkUnread(ctx, id); err != nil {
			return "", err
		}
	}
	return "unread again: " + these(ids), nil
}

func these(ids []wire.ID) string {
	if len(ids) == 1 {
		return ids[0].Short(6)
	}
	return letter.Many(len(ids), "message")
}

// SayInSession sends a message to the agent of an interactive session, as `atm session message` does.
func (r *Room) SayInSession(ctx context.Context, id wire.UUID, text string) (string, error) {
	if err := cmp.Or(r.checkMayAct(), app.CheckText(text)); err != nil {
		return "", err
	}
	s, err := r.Scope.Team.Sessions().Get(id)
	if err != nil {
		return "", err
	}
	out, err := r.Scope.SayInSession(ctx, s, text)
	if err != nil {
		return "", err
	}
	seen := outlook.Of(ctx, r.Scope.Root, out.To, out.Message)
	return fmt.Sprintf("sent %s to %s (%s)", out.Message.ID.Short(6), s.AgentID, seen.Text), nil
}

func (r *Room) ownMessage(id wire.ID) (*wire.Item, error) {
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

// MayType reports whether I may type to a member that runs here.
func (r *Room) MayType(m presence.Member) bool {
	return m.Running && m.Host == "" && r.Scope.MayAct(policy.Type, m.Name) == nil
}

// Type types a text into a member's terminal and presses return, as `atm type --enter` does.
func (r *Room) Type(ctx context.Context, name wire.Name, text string) (string, error) {
	_, unknown := r.Scope.Member(string(name))
	if err := cmp.Or(r.checkMayAct(), unknown, app.CheckText(text), app.CheckTyped(text)); err != nil {
		return "", err
	}
	o, err := r.Scope.Type(ctx, name, control.TypeRequest{Text: []byte(text), Enter: true})
	return outcomeLine(name, o), err
}

// MayStart reports whether Start can start a member: it does not run here, and team.toml says how.
func (r *Room) MayStart(m presence.Member) bool {
	return !m.Running && m.Host == "" && m.Kind != "person" && !m.Shared && strings.HasPrefix(app.RunCommand(r.Scope.Team, m.Name), "atm up ")
}

// Start starts a member as `atm up` does.
func (r *Room) Start(ctx context.Context, name wire.Name) (string, error) {
	return r.run(ctx, policy.Start, "up", name)
}

// Stop stops a member as `atm stop` does.
func (r *Room) Stop(ctx context.Context, name wire.Name) (string, error) {
	return r.run(ctx, policy.Stop, "stop", name)
}

// run has the verb act on a member, if I may. The verb looks at the same rights.
func (r *Room) run(ctx context.Context, act policy.Act, verb string, name wire.Name) (string, error) {
	_, unknown := r.Scope.Member(string(name))
	if err := cmp.Or(r.checkMayAct(), r.Scope.MayAct(act, name), unknown); err != nil {
		return "", err
	}
	atm, err := app.Companion("atm")
	if err != nil {
		return "", failure.Failed("atm is neither next to this program nor on PATH").WithHint("`atm %s %s`", verb, name)
	}
	words := []string{verb, string(name), "--root", r.Scope.Root.Path, "--team", string(r.Scope.Team.Name)}
	out, err := exec.CommandContext(ctx, atm, words...).CombinedOutput()
	said := strings.Join(strings.Split(strings.TrimSpace(string(out)), "\n"), "; ")
	if err != nil {
		return "", errors.New(strings.TrimPrefix(said, "atm: "))
	}
	return said, nil
}

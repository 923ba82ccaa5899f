// Package input delivers what people say in sessions with agents, and their verdicts on drafts.
package input

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// SessionInput is human input to a session.
type SessionInput struct {
	From   *maildir.Box
	Input  foreign.HumanInput
	Origin *wire.Origin // nil: a command's

	check func() error // called under the team lock; nil: no check
}

// SessionResult is the result of human input.
type SessionResult struct {
	Message *wire.Message
	To      post.Recipient   // what became of the message
	Session *session.Session // after the input; nil: there is none, or it is unknown
}

// SendInput delivers human input to a session's agent durably and notes it in the session. An abort also ends the
// session, in the same step. Other input to a session that has ended is refused with a *session.Error.
func SendInput(ctx context.Context, t *teamdir.Team, id wire.UUID, in SessionInput) (out SessionResult, err error) {
	isAbort := in.Input.Kind == foreign.HumanAbort
	to, push := &post.Recipient{}, func() {}
	out.Session, err = t.Sessions().Change(ctx, id, func(s *session.Session) error {
		agent := wire.Name(s.AgentID)
		var err error
		if isAbort {
			trial := s.InteractiveSession
			err = trial.Transition(session.Aborted, time.Now())
		} else if err = t.CheckHumanInput(agent); err == nil && !s.State.Alive() {
			short := wire.ID(s.SessionID).Short(6)
			err = &session.Error{Reason: fmt.Sprintf("session %s is %s and accepts no more input", short, s.State)}
		}
		if err == nil && in.check != nil {
			err = in.check()
		}
		if err != nil {
			return err
		}
		out.Message, to, push, err = storeInput(ctx, t, id, agent, in)
		if err != nil && !(isAbort && errors.Is(err, maildir.ErrNoMailbox)) { // the session of a retired agent can be aborted
			return err
		}
		if out.Message != nil {
			s.Receive(in.Input, out.Message.SentAt)
		}
		if isAbort {
			return s.Move(session.Aborted, "by "+string(in.From.Agent()), time.Now())
		}
		return nil
	})
	push()
	out.To = *to
	if err != nil && out.Message != nil { // it was delivered, and the session is as it was
		out.Session, err = nil, nil
	}
	return out, err
}

// storeInput delivers human input under the lock that its caller holds. push is for later, as in package post, and never nil.
func storeInput(ctx context.Context, t *teamdir.Team, id wire.UUID, agent wire.Name, in SessionInput) (m *wire.Message, to *post.Recipient, push func(), err error) {
	to, push = &post.Recipient{}, func() {}
	m, err = session.Message(id, in.Input)
	if err == nil {
		m.Origin, m.From = post.OrCommand(in.Origin), in.From.Address()
		err = t.CheckInput(agent, m) // else it would be sent, and not count
		if _, counts := t.Sessions().InputOf(agent, m); err == nil && !counts {
			err = &session.Error{Reason: fmt.Sprintf("%s speaks in its own session with events, not as a person", agent)}
		}
	}
	if err == nil {
		to, push, err = post.StoreFor(ctx, t, in.From, agent, m)
	}
	if err != nil {
		m = nil
	}
	return m, to, push, err
}

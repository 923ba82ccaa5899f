package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/internal/letter"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer/history"
	"github.com/agentteammail/atm/teams"
	"github.com/agentteammail/atm/wire"
)

// Ask sends a question to one member and waits for its answer, at most for a timeout (0: for ever) that begins when it is
// sent. sent is called then. An error says whether it was sent, and how to go on.
func (s *Scope) Ask(ctx context.Context, m *teams.Message, timeout time.Duration, sent func(Delivered)) (history.Answer, error) {
	out, err := s.Send(ctx, m)
	if err == nil {
		err = out.Err("sent to")
	}
	if err != nil {
		return history.Answer{}, err
	}
	sent(out.Delivered[0])
	limited, stop := limit(ctx, timeout)
	defer stop()
	answer, err := s.Opened().Await(limited, m.Content, teams.Observer{Other: s.warnNoAnswer})
	short, to := out.Short, m.Content.To[0]
	switch {
	case err == nil, errors.Is(err, teams.ErrDeclined), ctx.Err() != nil:
		return answer, err
	case errors.Is(err, ErrTimeout):
		late := failure.Timeout("sent %s, but no answer from %s within %s", short, s.Who(to), timeout).
			WithHint("wait on: `atm wait --any --reply %s --turn-done %[1]s`; `atm trace %[1]s` says what holds it up", short)
		late.Done = map[string]any{"id": out.ID}
		return answer, late
	case to.Host != "" && answer.Status != "": // what it said at the end of the turn stays there, and a reply may come yet
		over := failure.Timeout("sent %s, but %w", short, err).WithHint("`atm trace %s` shows how far it got; wait on: `atm wait --reply %[1]s`", short)
		over.Done = map[string]any{"id": out.ID}
		return answer, over
	case errors.Is(err, maildir.ErrWithdrawn):
		return answer, withdrawnError(out.ID)
	case errors.Is(err, mailbox.ErrNoMailbox): // it was retired meanwhile
		return answer, fmt.Errorf("sent %s, but %w", short, err)
	}
	return answer, failure.Failed("%w", err).WithHint("`atm trace %s` says what became of the question", short)
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
func (s *Scope) warnNoAnswer(other *wire.Item, why error) {
	s.Given.Warn("%s from %s does not count: %s: %s", other.ID.Short(6), s.Who(other.From), why, letter.Clip(letter.Escape(other.Title()), 80))
}

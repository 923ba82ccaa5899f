package input

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// ErrAnswered says that a draft was already approved or rejected.
var ErrAnswered = errors.New("already")

// AnswerDraft approves or rejects a draft, or one of its artifacts. Of several answers to the whole draft, also
// concurrent ones, the first counts, and the others get ErrAnswered.
func AnswerDraft(ctx context.Context, t *teamdir.Team, q ask.Question, in SessionInput) (out SessionResult, err error) {
	in.Input.DraftID = wire.UUID(q.ID)
	in.check = func() error {
		answers, err := presence.DraftAnswers(ctx, t, q.Agent, q)
		if a, isAnswered := answers[q.ID]; err == nil && isAnswered {
			verdict := map[string]string{"approve": "approved", "reject": "rejected"}[a.Kind]
			err = fmt.Errorf("draft %s was %w %s by %s", q.ID, ErrAnswered, verdict, cmp.Or(string(a.From.Agent), "somebody"))
		}
		return err
	}
	if q.Session != "" {
		return SendInput(ctx, t, q.Session, in)
	}
	if err := t.CheckHumanInput(q.Agent); err != nil {
		return out, err
	}
	to, push := &post.Recipient{}, func() {}
	err = t.Sessions().Exclusive(ctx, func() error {
		if err := in.check(); err != nil {
			return err
		}
		out.Message, to, push, err = storeInput(ctx, t, "", q.Agent, in)
		return err
	})
	push()
	out.To = *to
	return out, err
}

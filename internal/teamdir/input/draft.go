package input

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// ErrAnswered says that a draft was already approved or rejected.
var ErrAnswered = errors.New("already answered")

// AnswerDraft approves or rejects a draft, or one of its artifacts. Of several answers to the whole draft, also
// concurrent ones, the first counts, and the others get ErrAnswered.
func AnswerDraft(ctx context.Context, t *teamdir.Team, q ask.Question, in SessionInput) (out SessionResult, err error) {
	in.Input.DraftID = wire.UUID(q.ID)
	looked := map[wire.ID]bool{}
	in.check = func() error {
		answers, err := presence.DraftAnswers(ctx, t, q.Agent, looked, q)
		if a, isAnswered := answers[q.ID]; err == nil && isAnswered {
			verdict := map[string]string{"approve": "approved", "reject": "rejected"}[a.Kind]
			err = fmt.Errorf("draft %s was %w: %s by %s", q.ID, ErrAnswered, verdict, cmp.Or(string(a.From.Agent), "somebody"))
		}
		return err
	}
	if err := in.check(); err != nil { // under the lock it only opens what has arrived since
		return out, err
	}
	if q.Session != "" {
		return SendInput(ctx, t, q.Session, in)
	}
	if err := t.CheckHumanInput(q.Agent); err != nil {
		return out, err
	}
	unlock, err := t.Store.Lock(ctx, "team", lockfile.Exclusive, nil)
	if err != nil {
		return out, err
	}
	to, push := &post.Recipient{}, func() {}
	if err = in.check(); err == nil {
		out.Message, to, push, err = storeInput(ctx, t, "", q.Agent, in)
	}
	unlock()
	push()
	out.To = *to
	return out, err
}

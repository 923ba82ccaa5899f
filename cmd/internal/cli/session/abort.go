package session

import (
	"cmp"
	"context"
	"fmt"

	"github.com/agentteammail/atm/wire/foreign"
)

func abort(ctx context.Context, k *call) error {
	out, err := k.say(ctx, foreign.HumanInput{Kind: foreign.HumanAbort})
	if err != nil {
		return err
	}
	sess := cmp.Or(out.Session, k.session)
	if out.Message == nil {
		return printSession(k.p.Confirming(), sess, "", "aborted; its agent is gone")
	}
	return printSession(k.p.Confirming(), sess, out.Message.ID, fmt.Sprintf("aborted; sent %s to %s", out.Message.ID.Short(6), sess.AgentID))
}

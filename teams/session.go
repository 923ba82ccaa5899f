package teams

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/agentteammail/atm/internal/teamdir/input"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/session"
	"github.com/agentteammail/atm/wire"
	"github.com/agentteammail/atm/wire/foreign"
)

// Sessions returns the sessions of the team's members with people.
func (t *Team) Sessions() *session.Store { return t.in().Sessions() }

// Say delivers what a member says in a session, durably, and notes it in the session. A verdict (approve or reject) is on
// the draft that it names, of whichever session; it counts where atm approve or atm reject by that member would, and an
// abort where atm stop would: else it is an error, and nothing is sent. Of several verdicts on a whole draft the first
// counts: the others get ErrAnswered, or mailbox.ErrNotFound since it waits no more.
func (t *Team) Say(ctx context.Context, from wire.Name, id wire.UUID, in foreign.HumanInput) error {
	box, err := t.in().Member(from)
	if err != nil {
		return err
	}
	said := input.SessionInput{From: box, Input: in, Origin: programs.Origin(t.in(), "library")}
	if in.Kind != foreign.HumanApprove && in.Kind != foreign.HumanReject {
		_, err = input.SendInput(ctx, t.in(), id, said)
		return err
	}
	members, membersErr := presence.Members(ctx, t.in())
	drafts, err := presence.Drafts(ctx, t.in(), members)
	i := slices.IndexFunc(drafts, func(q ask.Question) bool { return q.ID == string(in.DraftID) })
	if i < 0 {
		return fmt.Errorf("%s draft %s: %w", in.Kind, in.DraftID, orNotFound(cmp.Or(err, membersErr)))
	}
	_, err = input.AnswerDraft(ctx, t.in(), drafts[i], said)
	return err
}

func orNotFound(err error) error {
	if err == nil {
		return mailbox.ErrNotFound
	}
	return err
}

package outlook

import (
	"context"
	"fmt"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Of is Sent for a recipient that has not been looked at.
func Of(ctx context.Context, r *teamdir.Root, to post.Recipient, sent *wire.Message) Outlook {
	m := presence.At(ctx, r, to.Address)[to.Address] // what cannot be read has no State
	return Sent(r, &m, to, sent)
}

// Sent returns the outlook of a message that has just been sent, by what is known of its recipient.
func Sent(r *teamdir.Root, m *presence.Member, to post.Recipient, sent *wire.Message) Outlook {
	isPushed := isPushed(to.Push)
	if t, err := r.Team(sent.From.Team); err == nil && !post.IsDue(t, sent) {
		return later(t, sent)
	}
	if t, err := r.Team(to.Address.Team); !isPushed && r.IsRemote(to.Address) && err == nil {
		return bridged(t, to.Address.Host)
	}
	if !isPushed && m.Running && !sent.Urgent() && isHandedOver(r, to.Address, sent) { // what the member does by now may come of it
		before := *m
		before.State, before.AtPrompt, before.WaitingOn, before.Runner.Gate = reducer.WordIdle, "", nil, control.GateOpen
		m = &before
	}
	x := mail{message: sent, to: m.ToMail(), push: to.Push}
	t, err := r.TeamOf(to.Address)
	if err != nil || r.IsRemote(to.Address) {
		return x.outlook()
	}
	box := t.Box(to.Address.Agent)
	x.hold = t.HoldReason(box.MessageThere(sent), to.Address.Agent)
	x.isShared, _ = claim.Shared(box)
	out := x.outlook()
	if out.When.isInTurn() {
		if n := box.UnreadBefore(sent.ID, mostBefore); n >= mostBefore-1 {
			out.Text += fmt.Sprintf("; %d or more before it", n)
		} else if n > 0 {
			out.Text += fmt.Sprintf("; %d before it", n)
		}
	}
	return out
}

// mostBefore is how many messages are looked at for how many come before one.
const mostBefore = 100

// isHandedOver reports whether the runner of a member has begun to give it the message.
func isHandedOver(r *teamdir.Root, to wire.Address, sent *wire.Message) bool {
	t, err := r.TeamOf(to)
	if err != nil {
		return false
	}
	turns, err := t.HistorySince(to.Agent, sent.SentAt)
	return err == nil && turns.Delivery(sent.ID).IsHanded
}

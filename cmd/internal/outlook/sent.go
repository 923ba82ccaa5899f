package outlook

import (
	"context"
	"fmt"

	"github.com/agentteammail/atm/internal/control"
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
	if t, err := r.Team(to.Address.Team); !isPushed && r.IsRemote(to.Address) && err == nil {
		if presence.IsBridged(t, to.Address.Host) {
			return Outlook{When: Bridge, Text: "the bridge sends it"}
		}
		return Outlook{When: Bridge, Text: "bridge is off: goes out when it runs"}
	}
	if !isPushed && m.Running && !sent.Urgent() && isHandedOver(r, to.Address, sent) { // what the member does by now may come of it
		before := *m
		before.State, before.AtPrompt, before.WaitingOn, before.Runner.Gate = reducer.WordIdle, "", nil, control.GateOpen
		m = &before
	}
	out := mail{message: sent, to: m.ToMail(), push: to.Push, hold: holdOf(r, to.Address, sent)}.outlook()
	if box, err := r.Mailbox(to.Address); err == nil && out.When.isInTurn() {
		if n := box.UnreadBefore(sent.ID, mostBefore); n >= mostBefore-1 {
			out.Text += fmt.Sprintf("; %d or more before it", n)
		} else if n > 0 {
			out.Text += fmt.Sprintf("; %d before it", n)
		}
	}
	return out
}

// holdOf says why a message is withheld from a member on this machine.
func holdOf(r *teamdir.Root, a wire.Address, m *wire.Message) (h teamdir.Hold) {
	t, err := r.TeamOf(a)
	if err != nil || r.IsRemote(a) {
		return h
	}
	if box, err := r.Mailbox(a); err == nil {
		h = t.HoldReason(box.MessageThere(m), a.Agent)
	}
	return h
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

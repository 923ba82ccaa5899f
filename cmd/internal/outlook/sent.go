package outlook

import (
	"context"
	"fmt"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/post"
	"github.com/agentteammail/atm/internal/teamdir/presence"
	"github.com/agentteammail/atm/reducer"
	"github.com/agentteammail/atm/wire"
)

// Of is Sent for a recipient that has not been looked at.
func Of(ctx context.Context, r *teamdir.Root, to post.Recipient, sent *wire.Message) Outlook {
	m, _ := presence.SummaryAt(ctx, r, to.Address) // what cannot be read has no State
	return Sent(r, &m, to, sent)
}

// Sent returns the outlook of a message that has just been sent, by what is known of its recipient.
func Sent(r *teamdir.Root, m *presence.Member, to post.Recipient, sent *wire.Message) Outlook {
	isPushed := isPushed(to.Push)
	if t, err := r.Team(to.Address.Team); !isPushed && to.Address.Host != "" && err == nil {
		if r.IsLink(to.Address.Host) {
			return linked(t, to, sent)
		}
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

// linked is the outlook of a message to another root on this machine, which was carried there at once unless it waits here.
func linked(t *teamdir.Team, to post.Recipient, sent *wire.Message) Outlook {
	it, err := t.Store.Outbox(to.Address).Get(sent.ID)
	switch why := presence.HeldReason(t, to.Address.Host); {
	case err != nil || it.State == maildir.Withdrawn:
		return Outlook{When: Bridge, Text: "handed over"}
	case why != "":
		return Outlook{When: Bridge, Text: "waits: " + why}
	}
	return Outlook{When: Bridge, Text: "goes out with the next command"}
}

// holdOf says why a message is withheld from a member here.
func holdOf(r *teamdir.Root, a wire.Address, m *wire.Message) (h teamdir.Hold) {
	if t, err := r.Team(a.Team); err == nil && a.Host == "" {
		h = t.HoldReason(m, a.Agent)
	}
	return h
}

// mostBefore is how many messages are looked at for how many come before one.
const mostBefore = 100

// isHandedOver reports whether the runner of a member has begun to give it the message.
func isHandedOver(r *teamdir.Root, to wire.Address, sent *wire.Message) bool {
	t, err := r.Team(to.Team)
	if err != nil {
		return false
	}
	turns, err := t.HistorySince(to.Agent, sent.SentAt)
	return err == nil && turns.Delivery(sent.ID).IsHanded
}

package agents

import (
	"context"
	"slices"
	"strings"

	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/internal/maildir/claimfile"
	"github.com/agentteammail/atm/internal/maildir/inbox"
	"github.com/agentteammail/atm/wire"
)

// Settle settles what earlier calls gave to the program: what this one proves received is read, and what may be lost is
// handed over once more, also what a session has whose program has ended (isGone; nil: that is not known). It returns the
// events message_read for the caller to append. Without such mail no lock is taken.
func (c *Call) Settle(ctx context.Context, isGone func(session string) bool) ([]wire.Event, error) {
	var received, lost []claim.Given
	for _, g := range claim.AllGiven(c.Box, c.Now) {
		switch _, effect := delivery.Next(delivery.Sent, c.eventOf(g, isGone)); effect {
		case delivery.Repeat:
			lost = append(lost, g)
		case delivery.MarkRead:
			received = append(received, g)
		}
	}
	return claim.Settle(ctx, c.Box, received, lost, c.Now)
}

// HandOver claims unread mail for the call. The Claim is never nil; without mail no lock is taken.
func (c *Call) HandOver(ctx context.Context, opt inbox.ReadOptions) (*claim.Claim, error) {
	return claim.HandOver(ctx, c.Box, c.recipient(), opt)
}

func (c *Call) recipient() claim.Recipient {
	owner := claimfile.OfSession(c.Session)
	if c.IsPush {
		owner = claimfile.PushedTo(c.Session)
	}
	return claim.Recipient{Owner: owner, Call: c.Name, IsAmbiguous: c.IsAmbiguous, Now: c.Now}
}

// eventOf returns what the call says of a message that an earlier one gave to the program; "": nothing.
func (c *Call) eventOf(g claim.Given, isGone func(session string) bool) delivery.Event {
	switch {
	case g.To.Session() != c.Session:
		if g.IsLive && isGone != nil && isGone(g.To.Session()) {
			return delivery.Ended
		}
	case g.IsOf(c.recipient()): // this call gave it
	case c.mayLose(g):
		return delivery.Ended
	case c.shows(g.ID), c.ProvesReceipt && g.IsSent && !g.To.IsPush():
		return delivery.Receipt
	}
	return ""
}

func (c *Call) shows(id wire.ID) bool {
	return slices.ContainsFunc(c.Shown, func(short string) bool { return id.Short(len(short)) == short })
}

// mayLose reports whether the call says that its session may have lost the message.
func (c *Call) mayLose(g claim.Given) bool {
	isForgotten := c.Forgets != "" && strings.HasPrefix(g.To.Call, c.Forgets)
	return c.EndsSession || isForgotten || c.IsNewProgram && !(g.To.IsPush() && c.KeepsPushed)
}

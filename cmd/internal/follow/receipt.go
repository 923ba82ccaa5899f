package follow

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/agents/codex/appserver"
	"github.com/agentteammail/atm/internal/maildir/claim"
	"github.com/agentteammail/atm/wire"
)

// reread finds out what the server has of ours, and settles what the agent has.
func (f *follower) reread(ctx context.Context) error {
	queued, err := f.client.QueueList(ctx, f.thread) // first: what leaves it meanwhile is among the items
	if err != nil {
		return err
	}
	f.inside = map[wire.ID]bool{}
	for _, q := range queued {
		if f.isMail(q.ClientID) {
			f.inside[wire.ID(q.ClientID)] = true
		}
	}
	return f.settle(ctx, "")
}

// isMail reports whether an id that the server has is of a message to the member. Codex has ids of that form as well, for
// what its person writes.
func (f *follower) isMail(id string) bool {
	if !wire.IsID(id) {
		return false
	}
	_, err := f.box.Get(wire.ID(id))
	return err == nil
}

// settle marks messages as read that the thread's items show.
func (f *follower) settle(ctx context.Context, turn string) error {
	items, err := f.client.Items(ctx, f.thread, appserver.MaxItems)
	if appserver.IsRefusal(err) { // it has none yet
		return nil
	}
	if err != nil {
		return err
	}
	return f.settleItems(ctx, turn, items)
}

func (f *follower) settleItems(ctx context.Context, turn string, items []appserver.Item) error {
	var received []claim.Given
	given := claim.AllGiven(f.box, time.Now())
	for _, item := range items {
		if item.Type != appserver.UserMessage || !f.isMail(item.ClientID) {
			continue
		}
		delete(f.inside, wire.ID(item.ClientID))
		first := slices.IndexFunc(given, func(g claim.Given) bool { return string(g.ID) == item.ClientID && g.To.Session() == f.thread })
		for _, g := range given {
			if first >= 0 && g.To.Owner == given[first].To.Owner && g.To.Call == given[first].To.Call { // in one text
				received = append(received, g)
			}
		}
	}
	events, err := claim.Settle(ctx, f.box, received, nil, time.Now())
	for i := range events {
		if f.ofRun == "" { // else nobody may have told of the turn by this name
			events[i].TurnID = turn
		}
	}
	err = errors.Join(err, f.box.Log().Append(ctx, events...))
	if f.isUnsettled = err != nil; f.isUnsettled && ctx.Err() == nil {
		f.log.Error("noting what the agent has read", "err", err)
	}
	return nil
}

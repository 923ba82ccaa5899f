package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/push/codex"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/wire"
)

func (f *follower) giveUrgent(ctx context.Context) (again time.Duration, err error) {
	if f.turn == "" {
		turns, err := f.client.Turns(ctx, f.thread, 1)
		if err != nil || len(turns) == 0 || turns[0].Status != "inProgress" {
			return retry, ignoreRefusal(err)
		}
		f.turn = turns[0].ID
	}
	return f.give(ctx, func(m *maildir.Item) bool { return m.Urgent() }, f.steer)
}

func (f *follower) queueUp(ctx context.Context, id wire.ID, text string) (place string, err error) {
	queued, err := f.client.QueueAdd(ctx, f.thread, string(id), text)
	return queued.ID, err
}

func (f *follower) steer(ctx context.Context, id wire.ID, text string) (place string, err error) {
	return "", f.client.Steer(ctx, f.thread, f.turn, string(id), text)
}

// give puts one message into the thread. The hooks add the others to the turn that it begins.
func (f *follower) give(ctx context.Context, matches func(*maildir.Item) bool, put func(context.Context, wire.ID, string) (string, error)) (again time.Duration, err error) {
	p, _ := f.team.Conversation(f.box.Agent(), f.thread)
	h, err := f.team.Push(ctx, f.box.Agent(), p, teamdir.PushOptions{
		Limit: 1, Match: matches, Has: f.isInside,
		Put: func(ctx context.Context, items []*maildir.Item, text string) error {
			place, err := put(ctx, items[0].ID, text)
			if err != nil && !isRefusal(err) {
				return fmt.Errorf("%w: %w", teamdir.ErrUnconfirmed, err)
			}
			if err == nil {
				f.inside[items[0].ID] = place
			}
			return err
		},
	})
	switch {
	case errors.Is(err, codex.ErrGone):
		return 0, err
	case errors.Is(err, teamdir.ErrUnconfirmed):
		f.untaken = err
		return 0, err
	case isRefusal(err) && f.status.Type == codex.Active: // the turn may have ended
		f.turn = ""
		return retry, nil
	case isRefusal(err):
		f.untaken = err
		return lookEvery, f.note(err)
	case err != nil:
		f.log.Error("giving mail", "err", err)
		return retry, nil
	case len(h.Items) > 0:
		f.untaken = nil
		return 0, f.note(nil)
	case h.More > 0 || h.Repeated: // claimed by another call: a hook's, or ours before a kill
		return retry, nil
	}
	return lookEvery, nil
}

// takeBack removes from the server's queue what is not unread any more.
func (f *follower) takeBack(ctx context.Context, unread []wire.ID) error {
	for id, place := range f.inside {
		if slices.Contains(unread, id) {
			continue
		}
		if place != "" {
			deleted, err := f.client.QueueDelete(ctx, f.thread, place)
			if err = ignoreRefusal(err); err != nil {
				return err
			}
			if deleted { // the agent never saw it, so it need not be told that it was withdrawn
				f.box.Withdraw(ctx, wire.Derive("withdrawn", id, f.box.Address()), f.box.Address())
			}
		}
		delete(f.inside, id)
	}
	return nil
}

func isRefusal(err error) bool {
	_, is := errors.AsType[*codex.RefusedError](err)
	return is
}

func ignoreRefusal(err error) error {
	if isRefusal(err) {
		return nil
	}
	return err
}

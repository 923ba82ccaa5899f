package follow

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/agentteammail/atm/internal/agents/codex/appserver"
	"github.com/agentteammail/atm/internal/delivery"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir/programs"
	"github.com/agentteammail/atm/internal/teamdir/push"
	"github.com/agentteammail/atm/wire"
)

// giveInTurn gives what is urgent, and what the hooks have not handed over for a while.
func (f *follower) giveInTurn(ctx context.Context) (again time.Duration, err error) {
	if f.turn == "" {
		turns, err := f.client.Turns(ctx, f.thread, 1)
		if err != nil || len(turns) == 0 || turns[0].Status != "inProgress" {
			return retry, ignoreRefusal(err)
		}
		f.turn = turns[0].ID
	}
	now, isQueued := time.Now(), slices.Contains(slices.Collect(maps.Values(f.inside)), true)
	again, err = f.give(ctx, f.turn, func(m *maildir.Item) bool {
		// Nothing overtakes what is in the queue. In a run mail waits for the end of a turn, since it may cut an answer off.
		isDue := !isQueued && f.ofRun == "" && now.Sub(m.ID.Time()) >= steerNow
		return m.Urgent() || isDue
	})
	return min(again, steerNow), err
}

// A threadWay is the way into the thread. It notes where a message lies, and settles what the agent has.
type threadWay struct {
	appserver.Way
	f *follower
}

func (w threadWay) Put(ctx context.Context, t delivery.Text) error {
	err := w.Way.Put(ctx, t)
	if err == nil {
		w.f.inside[t.ID] = w.Turn == ""
	}
	return err
}

// Has also settles the message, if the agent has it.
func (w threadWay) Has(ctx context.Context, id wire.ID) (bool, error) {
	has, err := w.Way.Has(ctx, id)
	if has {
		err = w.f.reread(ctx)
	}
	return has, err
}

// give puts mail into the thread, by its queue or into a turn.
func (f *follower) give(ctx context.Context, turn string, matches func(*maildir.Item) bool) (again time.Duration, err error) {
	p, _ := programs.Conversation(f.team, f.box.Agent(), f.thread)
	h, err := push.Into(ctx, f.team, f.box.Agent(), p, push.Options{Limit: f.limit, Match: matches, Way: threadWay{f.way(turn), f}})
	switch {
	case errors.Is(err, appserver.ErrGone):
		return 0, err
	case errors.Is(err, delivery.ErrUnsure):
		f.untaken = err
		return 0, err
	case appserver.IsRefusal(err) && f.status.Type == appserver.Active: // the turn may have ended
		f.turn = ""
		return retry, nil
	case appserver.IsRefusal(err):
		f.untaken = err
		return lookEvery, f.note(err)
	case err != nil:
		f.log.Error("giving mail", "err", err)
		return retry, nil
	case len(h.Items) > 0:
		f.untaken = nil
		return 0, f.note(nil)
	case h.More > 0 || h.IsRepeated: // claimed by another call: a hook's, or ours before a kill
		return retry, nil
	}
	return lookEvery, nil
}

func (f *follower) way(turn string) appserver.Way {
	return appserver.Way{Client: f.client, Thread: f.thread, Turn: turn}
}

// takeBack removes from the server's queue what is not unread any more.
func (f *follower) takeBack(ctx context.Context, unread []wire.ID) error {
	for id, isQueued := range f.inside {
		if slices.Contains(unread, id) {
			continue
		}
		if isQueued {
			isBack, err := f.way("").TakeBack(ctx, id)
			if err != nil {
				return err
			}
			if isBack { // the agent never saw it, so it need not be told that it was withdrawn
				f.box.Withdraw(ctx, wire.Derive("withdrawn", id, f.box.Address()), f.box.Address())
			}
		}
		delete(f.inside, id)
	}
	return nil
}

func ignoreRefusal(err error) error {
	if appserver.IsRefusal(err) {
		return nil
	}
	return err
}

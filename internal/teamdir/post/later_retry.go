package post

import (
	"context"
	"errors"
	"io/fs"

	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/teamdir"
	"github.com/agentteammail/atm/internal/teamdir/push"
)

// RetryLater has a message that could not be delivered delivered again: those that have it do not get it twice. If that is
// not possible still, the error is a *maildir.BadError with the reason.
func RetryLater(ctx context.Context, t *teamdir.Team, l Later) error {
	err := sendAgain(ctx, t, l)
	if err == nil {
		l.State = ToBeSent
		var posts []*maildir.Post
		_, posts, err = deliverSome(ctx, t, []Later{l}, t.LockWait())
		push.All(ctx, t.Root(), posts)
	}
	if now, _ := FindLater(t, l.ID); err == nil && now != nil && now.State == Undelivered {
		err = &maildir.BadError{Name: l.ID.Short(6), Reason: LaterReason(t, *now)}
	}
	return err
}

// sendAgain moves a message that could not be delivered to those that are to be sent, unless another process has done so.
func sendAgain(ctx context.Context, t *teamdir.Team, l Later) error {
	if err := t.Store.MayAct(ctx); err != nil {
		return err
	}
	lock, err := lockLater(ctx, t, t.LockWait())
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := moveLater(t, l, ToBeSent); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

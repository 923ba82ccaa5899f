package teamdir

import (
	"context"
	"errors"
	"io/fs"

	"github.com/agentteammail/atm/internal/maildir"
)

// RetryLater has a message that could not be delivered delivered again: those that have it do not get it twice. The error
// is why it could not be this time.
func (t *Team) RetryLater(ctx context.Context, l Later) error {
	lock, err := t.lockLater(ctx, t.lockTimeout())
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := t.moveLater(l, ToBeSent); errors.Is(err, fs.ErrNotExist) {
		return nil // another process has tried it
	} else if err != nil {
		return err
	}
	l.State = ToBeSent
	_, _, err = t.deliverSome(ctx, []Later{l})
	return err
}

var _ = maildir.ErrNotFound

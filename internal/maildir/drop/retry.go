package drop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// DeliveredError says that the mailbox has got the message that a bad file is: it must not come twice.
type DeliveredError struct {
	ID    wire.ID
	State wire.State
}

func (e *DeliveredError) Error() string {
	return fmt.Sprintf("message %s was delivered before, and is %s", e.ID.Short(6), e.State)
}

// Retry has a file in bad tried again. A whole message gets back into new under its id, and anything else is taken in as
// if it had been dropped again. If the mailbox has the message, the error is a *DeliveredError; if the file is still
// none, a *BadError. id is "" if it became an event.
func Retry(ctx context.Context, b *maildir.Box, name string) (id wire.ID, err error) {
	m, err := readBad(b, name)
	if err != nil {
		return "", err
	}
	if m != nil {
		if it, err := b.Get(m.ID); err == nil {
			return "", &DeliveredError{it.ID, it.State}
		}
	}
	if err := b.Store().MayAct(ctx); err != nil {
		return "", err
	}
	if beforeDot, _, _ := strings.Cut(name, "."); m == nil || string(m.ID) != beforeDot {
		return dropAgain(ctx, b, name)
	}
	return m.ID, b.Locked(ctx, "inbox", func() error {
		if p, isThere, err := b.Locate(m.ID); err != nil {
			return err
		} else if isThere {
			return &DeliveredError{m.ID, p.State}
		}
		return moveBad(b, name, b.Unread().File(m.ID))
	})
}

// readBad returns the message that a file in bad is, nil if it is none.
func readBad(b *maildir.Box, name string) (*wire.Message, error) {
	data, err := b.Store().Dir().ReadFile(b.In("inbox/bad", name), wire.MaxFile)
	switch {
	case durable.IsAbsent(err):
		return nil, fmt.Errorf("%s in inbox/bad of %s: %w", name, b.Agent(), maildir.ErrNotFound)
	case errors.Is(err, durable.ErrNotRegular):
		return nil, &maildir.BadError{Name: name, Reason: "it is no file, and so never mail"}
	case err != nil:
		return nil, nil
	}
	m, err := wire.Decode(data)
	if err != nil {
		return nil, nil
	}
	return m, nil
}

// moveBad durably moves a file out of bad. A kill leaves at most its reason.
func moveBad(b *maildir.Box, name, to string) error {
	root, file := b.Store().Dir(), b.In("inbox/bad", name)
	if f, err := root.Open(file); err == nil { // whoever wrote it need not have synced it
		err = root.SyncFile(f)
		f.Close()
		if err != nil {
			return err
		}
	}
	if err := root.Move(file, to); err != nil {
		return err
	}
	root.Remove(file + ".reason")
	return cmp.Or(root.Sync(path.Dir(to)), root.Sync(b.In("inbox/bad")))
}

// dropAgain takes in a file of bad under an id that it has before it is read: whoever goes on after a kill makes the same
// message of it.
func dropAgain(ctx context.Context, b *maildir.Box, name string) (id wire.ID, err error) {
	id = wire.NewID()
	err = b.Locked(ctx, "drops", func() error {
		d := File{Path: b.In("inbox/tmp", string(id)+"."+maildir.CutName(name)+".drop"), IsBegun: true}
		err := cmp.Or(b.Mkdir(b.In("inbox/tmp")), moveBad(b, name, d.Path))
		if err == nil {
			d.info, err = b.Store().Dir().Lstat(d.Path)
		}
		if err == nil {
			time.Sleep(time.Until(maildir.SettlesAt(d.info))) // who has just mended it has finished
			_, err = d.take(ctx, b)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	if _, err := b.Get(id); err != nil { // it is an event
		return "", nil
	}
	return id, nil
}

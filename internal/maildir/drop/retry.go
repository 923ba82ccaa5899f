package drop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// DeliveredError says that the mailbox has got the message that a bad file is, or was: it must not come twice.
type DeliveredError struct {
	ID    wire.ID
	State maildir.State
}

func (e *DeliveredError) Error() string {
	return fmt.Sprintf("message %s was delivered before, and is %s", e.ID.Short(6), e.State)
}

// changedReason begins the reason of a dropped file that changed while it was ingested as the message whose id follows.
const changedReason = "changed while it was ingested as "

// Retry has a file in bad tried again. A whole message gets back into new under its id, and anything else is ingested as
// if it had been dropped again. If the mailbox has the message, the error is a *DeliveredError; if the file is still none, a
// *BadError. id is "" if it became an event.
func Retry(ctx context.Context, b *maildir.Box, name string) (id wire.ID, err error) {
	file := b.In("inbox/bad", name)
	if info, err := b.Store().Dir().Lstat(file); err == nil && !info.Mode().IsRegular() {
		return "", &maildir.BadError{Name: name, Reason: "it is no file, and so never mail"}
	}
	reason, _ := b.Store().Dir().ReadFile(file+".reason", 4096)
	if before, ok := strings.CutPrefix(strings.TrimSpace(string(reason)), changedReason); ok && wire.IsID(before) {
		if it, err := b.Get(wire.ID(before)); err == nil {
			return "", &DeliveredError{it.ID, it.State}
		}
	}
	data, err := b.Store().Dir().ReadFile(file, wire.MaxFile)
	if durable.IsAbsent(err) {
		return "", fmt.Errorf("%s in inbox/bad of %s: %w", name, b.Agent(), maildir.ErrNotFound)
	}
	m, notMessage := (*wire.Message)(nil), err
	if err == nil {
		m, notMessage = wire.Decode(data)
	}
	if err := b.Store().MayAct(ctx); err != nil {
		return "", err
	}
	if beforeDot, _, _ := strings.Cut(name, "."); notMessage != nil || string(m.ID) != beforeDot {
		if notMessage == nil {
			if it, err := b.Get(m.ID); err == nil {
				return "", &DeliveredError{it.ID, it.State}
			}
		}
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

// dropAgain ingests a file of bad under an id that it has before it is read: whoever goes on after a kill ingests it once.
func dropAgain(ctx context.Context, b *maildir.Box, name string) (wire.ID, error) {
	id := wire.NewID()
	err := b.Mkdir(b.In("inbox/tmp"))
	if err == nil {
		err = moveBad(b, name, b.In("inbox/tmp", string(id)+"."+maildir.CutName(name)+".drop"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s in inbox/bad of %s: %w", name, b.Agent(), maildir.ErrNotFound)
	}
	if err != nil {
		return "", err
	}
	if _, err := Ingest(ctx, b); err != nil {
		return "", err
	}
	if _, err := b.Get(id); err == nil {
		return id, nil
	}
	files, err := BadFiles(b)
	for _, f := range files {
		if f.Dir == "inbox/bad" && (f.Name == name || strings.HasPrefix(f.Name, maildir.CutName(name)+".")) {
			return "", &maildir.BadError{Name: f.Name, Reason: f.Reason}
		}
	}
	found, _ := List(b)
	for _, d := range found.Drops {
		if before, _, _ := parseIngestFile(d.file); before == id {
			return "", fmt.Errorf("%s is taken in at the next look: somebody may be writing it", name)
		}
	}
	return "", err
}

package maildir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/wire"
)

// DeliveredError says that the mailbox has got the message that a bad file is, or was: it must not come twice.
type DeliveredError struct {
	ID    wire.ID
	State State
}

func (e *DeliveredError) Error() string {
	return fmt.Sprintf("message %s was delivered before, and is %s", e.ID.Short(6), e.State)
}

// changedReason begins the reason of a dropped file that changed while it was ingested as the message whose id follows.
const changedReason = "changed while it was ingested as "

// RetryBad has a file in bad tried again. A whole message gets back into new under its id, and anything else is ingested as
// if it had been dropped again. If the mailbox has the message, the error is a *DeliveredError; if the file is still none, a
// *BadError. id is "" if it became an event.
func (b *Box) RetryBad(ctx context.Context, name string) (id wire.ID, err error) {
	file := b.in("inbox/bad", name)
	if info, err := b.store.root.Lstat(file); err == nil && !info.Mode().IsRegular() {
		return "", &BadError{Name: name, Reason: "it is no file, and so never mail"}
	}
	mayAct := b.store.BeforeLook()
	reason, _ := b.store.root.ReadFile(file+".reason", 4096)
	if before, ok := strings.CutPrefix(strings.TrimSpace(string(reason)), changedReason); ok && wire.IsID(before) {
		if it, err := b.Get(wire.ID(before)); err == nil {
			return "", &DeliveredError{it.ID, it.State}
		}
	}
	data, err := b.store.root.ReadFile(file, wire.MaxFile)
	if durable.IsAbsent(err) {
		return "", fmt.Errorf("%s in inbox/bad of %s: %w", name, b.agent, ErrNotFound)
	}
	m, notMessage := (*wire.Message)(nil), err
	if err == nil {
		m, notMessage = wire.Decode(data)
	}
	if err := mayAct(ctx); err != nil {
		return "", err
	}
	if beforeDot, _, _ := strings.Cut(name, "."); notMessage != nil || string(m.ID) != beforeDot {
		if notMessage == nil {
			if it, err := b.Get(m.ID); err == nil {
				return "", &DeliveredError{it.ID, it.State}
			}
		}
		return b.dropAgain(ctx, name)
	}
	return m.ID, b.locked(ctx, "inbox", func() error {
		if p, isThere, err := b.locate(m.ID); err != nil {
			return err
		} else if isThere {
			return &DeliveredError{m.ID, p.state}
		}
		return b.moveBad(name, b.unread().file(m.ID))
	})
}

// moveBad durably moves a file out of bad. A kill leaves at most its reason.
func (b *Box) moveBad(name, to string) error {
	root, file := b.store.root, b.in("inbox/bad", name)
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
	return cmp.Or(root.Sync(path.Dir(to)), root.Sync(b.in("inbox/bad")))
}

// dropAgain ingests a file of bad under an id that it has before it is read: whoever goes on after a kill ingests it once.
func (b *Box) dropAgain(ctx context.Context, name string) (wire.ID, error) {
	id := wire.NewID()
	err := b.mkdir(b.in("inbox/tmp"))
	if err == nil {
		err = b.moveBad(name, b.in("inbox/tmp", string(id)+"."+cutName(name)+".drop"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s in inbox/bad of %s: %w", name, b.agent, ErrNotFound)
	}
	if err != nil {
		return "", err
	}
	if _, err := b.Ingest(ctx); err != nil {
		return "", err
	}
	if _, err := b.Get(id); err == nil {
		return id, nil
	}
	files, err := b.BadFiles()
	for _, f := range files {
		if f.Dir == "inbox/bad" && (f.Name == name || strings.HasPrefix(f.Name, cutName(name)+".")) {
			return "", &BadError{Name: f.Name, Reason: f.Reason}
		}
	}
	found, _ := b.listInbox()
	for _, d := range found.drops {
		if before, _, _ := parseIngestFile(d.file); before == id {
			return "", fmt.Errorf("%s is taken in at the next look: somebody may be writing it", name)
		}
	}
	return "", err
}

package drop

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir/filestore"
	"github.com/agentteammail/atm/wire"
)

// attachDropped makes an attachment of a dropped file. If it is certain that no process is writing the file, the file
// itself gets a second name in .files, and nothing is copied. Otherwise it is copied, to the same temp file each time.
func attachDropped(ctx context.Context, dir *durable.Root, name string, d *openDrop) (a wire.Attachment, err error) {
	temp := filestore.Dir + "/." + string(d.id) + ".tmp"
	wasTried, err := dir.Exists(temp) // and its sync may have failed: see Adopt
	if err = cmp.Or(err, dir.MkdirAll(filestore.Dir), dir.Remove(temp)); err != nil {
		return a, err
	}
	if d.certain && !wasTried {
		a, err = filestore.Describe(name, d.content(ctx), func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err })
		if err == nil && d.hasChanged() {
			err = errBeingWritten
		}
		if err != nil {
			return a, err
		}
		if stored, err := dir.Lstat(filestore.Path(a)); err == nil && os.SameFile(stored, d.info) { // before a kill
			return a, errors.Join(dir.Sync(filestore.Dir), dir.Sync("."))
		}
		err = dir.Adopt(d.File, d.path, temp)
		if err == nil {
			err = filestore.MoveIn(dir, temp, a)
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return a, err
		}
	}
	return filestore.AddAs(dir, name, temp, d.content(ctx))
}

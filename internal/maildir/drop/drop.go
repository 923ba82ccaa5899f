// Package drop makes messages and events of files that were dropped into a mailbox by hand, and says which are none.
package drop

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/maildir/claimfile"
	"github.com/agentteammail/atm/wire"
)

// Ingested is the result of Ingest.
type Ingested struct {
	Waiting int // files that are not ingested yet: look again in a second
	Left    int // files that are left where they are: BadFiles says why

	Unread *maildir.Listing // the unread messages, if nothing was ingested; else nil
}

// ingestLockTimeout is how long Ingest waits for a lock: a delivery holds one for an instant.
const ingestLockTimeout = 20 * time.Millisecond

// ingestTime is how long one call of Ingest goes on: it begins no file after that. A caller with little time is asked
// after brieflyTime. Tests shorten them.
var ingestTime, brieflyTime = 2 * time.Second, 500 * time.Millisecond

// MaxSize is the size of the largest dropped file that is ingested. A larger one is set aside without being read.
const MaxSize = 256 << 20

// parseIngestFile splits the path of a dropped file that is being ingested: inbox/tmp/<id>.<original name>.drop
func parseIngestFile(file string) (id wire.ID, original string, ok bool) {
	name, isDrop := strings.CutSuffix(path.Base(file), ".drop")
	before, original, _ := strings.Cut(name, ".")
	return wire.ID(before), original, isDrop && wire.IsID(before)
}

// Ingest ingests the files that were dropped into the mailbox by hand: files in inbox/ and, under foreign names, in
// inbox/new/. Each becomes a message, an event, or a file in bad with the reason. Each is ingested exactly once, even
// after a kill at any point, because it is renamed to the id that it will have before it is read.
//
// If the store may not act, all files stay where they are, and the error says why.
//
// A file that a process has open for writing waits. So does the rest after two seconds or at a lock that is held, also
// by another process that ingests. Large files come last: they are read to their end.
func Ingest(ctx context.Context, b *maildir.Box) (result Ingested, err error) {
	return ingestDrops(ctx, b, func() bool { return true })
}

// IngestBriefly is Ingest for a caller that only looks, perhaps at many mailboxes: what takes long waits for another.
func IngestBriefly(ctx context.Context, b *maildir.Box) (result Ingested, err error) {
	return ingestDrops(ctx, b, func() bool { return false })
}

// IngestUnlessMail is Ingest for a caller that hands mail over: what takes long waits as long as there is other mail.
func IngestUnlessMail(ctx context.Context, b *maildir.Box) (result Ingested, err error) {
	return ingestDrops(ctx, b, func() bool {
		unread, _ := b.UnreadIDs()
		claimed := b.Claims()
		return !slices.ContainsFunc(unread, func(id wire.ID) bool { return claimed[id].Owner == claimfile.Owner{} })
	})
}

// ingestDrops is Ingest. It asks whether to go on before the first large file, and once it has gone on for a while.
func ingestDrops(ctx context.Context, b *maildir.Box, goOn func() bool) (result Ingested, err error) {
	if err := b.CheckPresent(); err != nil || b.Host() != "" || !wire.IsName(string(b.Agent())) { // a retired mailbox is read-only
		return result, err
	}
	impatient := *b.Store()
	impatient.LockTimeout = min(cmp.Or(b.Store().LockTimeout, ingestLockTimeout), ingestLockTimeout)
	b = impatient.Box(b.Agent())
	found, err := List(b)
	result.Left = len(found.left)
	if err != nil {
		return result, err
	}
	if len(found.Drops) == 0 {
		result.Unread = found.unread
		return result, nil
	}
	if found, err = List(b); err == nil {
		err = b.Store().MayAct(ctx) // before the lock: it may ask git
	}
	if err != nil {
		return result, err
	}
	l, err := b.Store().Locks().Lock(ctx, b.LockName("drops"), lockfile.Exclusive, 0, b.CheckPresent)
	if isHeld(err) || maildir.IsUnwritable(err) {
		result.Waiting = len(found.Drops)
		return result, nil
	}
	if err != nil {
		return result, err
	}
	defer l.Unlock()
	may := found.Drops
	if found, err = List(b); err != nil {
		return result, err
	}
	began, hasAsked := time.Now(), false
	drops := slices.DeleteFunc(found.Drops, func(d File) bool { // another process may have ingested some meanwhile
		return !slices.Contains(may, d) // nobody has been asked about one that is new or was replaced: the next look takes it
	})
	result.Waiting = len(found.Drops) - len(drops)
	for i, d := range drops {
		isFirstLarge := d.isLarge() && (i == 0 || !drops[i-1].isLarge())
		isLate := i > 0 && time.Since(began) > brieflyTime && !hasAsked
		hasAsked = hasAsked || isLate
		if (isFirstLarge || isLate) && !goOn() {
			result.Waiting += len(drops) - i
			break
		}
		err := ingest(ctx, b, d.file, &result)
		if err != nil {
			result.Waiting++
		}
		if isHeld(err) || ctx.Err() != nil || time.Since(began) > ingestTime {
			result.Waiting += len(drops) - i - 1
			break
		}
	}
	return result, nil
}

func isHeld(err error) bool {
	_, isHeld := errors.AsType[*lockfile.HeldError](err)
	return isHeld
}

// File is a file that was dropped into the mailbox.
type File struct {
	file    string
	size    int64
	Written time.Time // zero: its ingestion was interrupted
}

// Path is the path of the file, below the team's directory.
func (d File) Path() string { return d.file }

// isLarge reports whether a dropped file becomes an attachment, which takes long, rather than a message or an event. A
// file that is too large to be ingested is set aside at once.
func (d File) isLarge() bool { return d.size > wire.MaxFile && d.size <= MaxSize }

// Listing is what inbox and inbox/new have.
type Listing struct {
	// Drops are the files whose ingestion was interrupted, and then those that were dropped, oldest first. Large files
	// come last, the smallest first.
	Drops  []File
	left   []BadFile // what stays where it is, because it is no file, empty or unfinished for long
	unread *maildir.Listing
}

// List lists what inbox and inbox/new have.
func List(b *maildir.Box) (found Listing, err error) {
	var drops []File
	names, err := b.Store().Dir().Names(b.In("inbox/tmp"))
	for _, name := range names {
		if _, _, isInterrupted := parseIngestFile(name); isInterrupted {
			d := File{file: b.In("inbox/tmp", name)}
			if info, err := b.Store().Dir().Lstat(d.file); err == nil {
				d.size = info.Size()
			}
			drops = append(drops, d)
		}
	}
	for _, dir := range []string{"inbox", "inbox/new"} {
		names, e := namesIn(b, dir, &found)
		err = cmp.Or(err, e)
		for _, name := range names {
			if dir == "inbox" && slices.Contains(InboxDirs, name) || IsLitter(name) {
				continue
			}
			info, err := b.Store().Dir().Lstat(b.In(dir, name))
			if err != nil {
				continue
			}
			why, isOld := WhyLeft(info, names)
			switch {
			case why == "":
				drops = append(drops, File{b.In(dir, name), info.Size(), info.ModTime()})
			case isOld:
				found.left = append(found.left, BadFile{Name: name, Reason: leftReasons[why], Size: info.Size(), Dir: dir})
			}
		}
	}
	slices.SortFunc(drops, func(x, y File) int {
		switch {
		case x.isLarge() && y.isLarge():
			return cmp.Or(cmp.Compare(x.size, y.size), strings.Compare(x.file, y.file))
		case x.isLarge():
			return 1
		case y.isLarge():
			return -1
		}
		return cmp.Or(x.Written.Compare(y.Written), strings.Compare(x.file, y.file))
	})
	found.Drops = drops
	return found, err
}

// namesIn lists inbox, or what inbox/new has beside the messages, which are listed too.
func namesIn(b *maildir.Box, dir string, found *Listing) (names []string, err error) {
	if dir == "inbox" {
		return b.Store().Dir().Names(b.In(dir))
	}
	found.unread, err = b.List(b.Unread())
	return found.unread.Others, err
}

// Count counts the dropped files that wait to be ingested.
func Count(b *maildir.Box) int {
	found, _ := List(b) // what cannot be read does not count
	return len(found.Drops)
}

// InboxDirs are the directories of an inbox. A file with such a name is not a dropped one.
var InboxDirs = []string{"tmp", "new", "cur", "done", "withdrawn", "bad"}

// ingest ingests one dropped file that no process is writing: it renames the file to the id that it will have, and then
// reads and publishes it. An interrupted file was renamed before. An error says why the file waits.
func ingest(ctx context.Context, b *maildir.Box, file string, result *Ingested) error {
	root, tmp := b.Store().Dir(), b.In("inbox/tmp")
	f, err := root.Open(file)
	if err != nil { // it is gone, or not ours to open
		if errors.Is(err, fs.ErrPermission) {
			result.Left++
		}
		return nil
	}
	defer f.Close()
	writing, certain := durable.BeingWritten(f)
	if writing {
		return errBeingWritten
	}
	if path.Dir(file) == tmp { // by a process that may have been killed before it synced
		err = cmp.Or(root.Sync(tmp), root.Sync(b.In("inbox")), root.Sync(b.In("inbox/new")))
	} else {
		if err := b.Mkdir(tmp); err != nil {
			return err
		}
		renamed := tmp + "/" + string(wire.NewID()) + "." + maildir.CutName(path.Base(file)) + ".drop"
		if err = root.Move(file, renamed); err == nil {
			// Otherwise, after a power cut, both the message and its original could be there, which would then be
			// ingested again under another id.
			err = errors.Join(root.Sync(tmp), root.Sync(path.Dir(file)))
		}
		file = renamed
	}
	if err == nil && certain && !durable.HasReadLease(f) { // a process began to open it under its old name: it is waited for
		err = errBeingWritten
	}
	f.Close() // which ends the lease
	if err != nil {
		return err
	}
	return finishIngest(ctx, b, file, certain)
}

var errBeingWritten = errors.New("somebody may still be writing it")

// finishIngest publishes a file under the id in its name, and then removes the original, or keeps it in the archive if
// a process may still be writing it (not certain). After a kill another process may repeat any step. An error says why
// the file waits.
func finishIngest(ctx context.Context, b *maildir.Box, file string, certain bool) error {
	root := b.Store().Dir()
	id, name, _ := parseIngestFile(file)
	f, err := root.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return err
	}
	d := &openDrop{File: f, info: before, path: file, id: id, name: name, certain: certain}
	err = publishDropped(ctx, b, d)
	if err == nil && d.hasChanged() || errors.Is(err, maildir.ErrIDTaken) {
		err = &maildir.BadError{Reason: changedReason + string(id)}
	}
	bad, isBad := errors.AsType[*maildir.BadError](err)
	switch {
	case isBad:
		err = b.MoveToBad(file, name, bad.Reason)
	case err != nil: // as on a full disk
	case certain:
		root.Remove(file)
	default:
		if kept := b.Archived("drops"); b.Mkdir(kept) == nil {
			root.Move(file, kept+"/"+strings.TrimSuffix(path.Base(file), ".drop"))
		}
	}
	return err
}

// openDrop is a dropped file that is being ingested.
type openDrop struct {
	*os.File
	info    fs.FileInfo // as it was before it was read
	path    string      // in the mailbox's tmp
	id      wire.ID     // of the message that it becomes
	name    string      // under which it was dropped
	certain bool        // no process has it open for writing
}

// content reads the file, until the context ends.
func (d *openDrop) content(ctx context.Context) io.Reader {
	return durable.ReadUntil(ctx, io.NewSectionReader(d, 0, MaxSize))
}

func (d *openDrop) hasChanged() bool {
	now, err := d.Stat()
	return err != nil || now.Size() != d.info.Size() || !now.ModTime().Equal(d.info.ModTime())
}

// publishDropped delivers a dropped file as a message or appends it as an event, under the id in its name: whoever
// repeats it after a kill publishes nothing twice. A *BadError says that the file is neither.
func publishDropped(ctx context.Context, b *maildir.Box, d *openDrop) error {
	m, e, err := parseDropped(ctx, b, d)
	if err != nil {
		return err
	}
	if e != nil {
		return b.Log().AppendSync(ctx, *e)
	}
	p := &maildir.Post{Message: m, To: []*maildir.Box{b}, Given: true, Temp: string(d.id) + ".message"}
	maildir.Deliver(ctx, p)
	return p.Outcomes[0].Err
}

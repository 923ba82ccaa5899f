package maildir

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
	"github.com/agentteammail/atm/wire"
)

// Ingested is the result of Ingest.
type Ingested struct {
	Bad     int // files moved to bad
	Waiting int // files that are not ingested yet: look again in a second
	Left    int // files that are left where they are: BadFiles says why

	unread []wire.ID // all unread messages, if nothing was ingested; else nil
}

// ingestLockTimeout is how long Ingest waits for a lock: a delivery holds one for an instant.
const ingestLockTimeout = 20 * time.Millisecond

// ingestTime is how long one call of Ingest goes on: it begins no file after that. A caller with little time is asked
// after brieflyTime. Tests shorten them.
var ingestTime, brieflyTime = 2 * time.Second, 500 * time.Millisecond

// MaxDrop is the size of the largest dropped file that is ingested. A larger one is set aside without being read.
const MaxDrop = 256 << 20

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
func (b *Box) Ingest(ctx context.Context) (result Ingested, err error) {
	return b.ingestDrops(ctx, func() bool { return true })
}

// TakeIn is Ingest for a watcher: it reports whether to look again in a second.
func (b *Box) TakeIn(ctx context.Context) (isWaiting bool) {
	in, _ := b.Ingest(ctx) // a file that fails stays for the next time
	return in.Waiting > 0
}

// ingestBriefly is Ingest for a caller that only looks, perhaps at many mailboxes: what takes long waits for another.
func (b *Box) ingestBriefly(ctx context.Context) (result Ingested, err error) {
	return b.ingestDrops(ctx, func() bool { return false })
}

// ingestUnlessMail is Ingest for a caller that hands mail over: what takes long waits as long as there is other mail.
func (b *Box) ingestUnlessMail(ctx context.Context) (result Ingested, err error) {
	return b.ingestDrops(ctx, func() bool {
		unread, _ := b.UnreadIDs()
		claimed := b.claims()
		return !slices.ContainsFunc(unread, func(id wire.ID) bool { return claimed[id].Owner == Owner{} })
	})
}

// ingestDrops is Ingest. It asks whether to go on before the first large file, and once it has gone on for a while.
func (b *Box) ingestDrops(ctx context.Context, goOn func() bool) (result Ingested, err error) {
	if err := b.CheckPresent(); err != nil || b.host != "" || !wire.IsName(string(b.agent)) { // a retired mailbox is read-only
		return result, err
	}
	impatient := *b.store
	impatient.LockTimeout = min(cmp.Or(b.store.LockTimeout, ingestLockTimeout), ingestLockTimeout)
	b = impatient.Box(b.agent)
	found, err := b.listInbox()
	result.Left = len(found.left)
	if err != nil {
		return result, err
	}
	if len(found.drops) == 0 {
		result.unread = found.unread
		return result, nil
	}
	mayAct := b.store.BeforeLook()
	if found, err = b.listInbox(); err == nil {
		err = mayAct(ctx) // before the lock: it may ask git
	}
	if err != nil {
		return result, err
	}
	l, err := b.store.locks.Lock(ctx, b.lockName("drops"), lockfile.Exclusive, 0, b.CheckPresent)
	if isHeld(err) || isUnwritable(err) {
		result.Waiting = len(found.drops)
		return result, nil
	}
	if err != nil {
		return result, err
	}
	defer l.Unlock()
	may := found.drops
	if found, err = b.listInbox(); err != nil {
		return result, err
	}
	began, hasAsked := time.Now(), false
	drops := slices.DeleteFunc(found.drops, func(d droppedFile) bool { // another process may have ingested some meanwhile
		return !slices.Contains(may, d) // nobody has been asked about one that is new or was replaced: the next look takes it
	})
	result.Waiting = len(found.drops) - len(drops)
	for i, d := range drops {
		isFirstLarge := d.isLarge() && (i == 0 || !drops[i-1].isLarge())
		isLate := i > 0 && time.Since(began) > brieflyTime && !hasAsked
		hasAsked = hasAsked || isLate
		if (isFirstLarge || isLate) && !goOn() {
			result.Waiting += len(drops) - i
			break
		}
		err := b.ingest(ctx, d.file, &result)
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

// droppedFile is a file that was dropped into the mailbox.
type droppedFile struct {
	file    string
	size    int64
	written time.Time // zero: its ingestion was interrupted
}

// isLarge reports whether a dropped file becomes an attachment, which takes long, rather than a message or an event. A
// file that is too large to be ingested is set aside at once.
func (d droppedFile) isLarge() bool { return d.size > wire.MaxFile && d.size <= MaxDrop }

// inboxListing is what inbox and inbox/new have.
type inboxListing struct {
	// drops are the files whose ingestion was interrupted, and then those that were dropped, oldest first. Large files
	// come last, the smallest first.
	drops  []droppedFile
	left   []BadFile // what stays where it is, because it is no file, empty or unfinished for long
	unread []wire.ID // oldest first
}

func (b *Box) listInbox() (found inboxListing, err error) {
	var drops []droppedFile
	names, err := b.store.root.Names(b.in("inbox/tmp"))
	for _, name := range names {
		if _, _, isInterrupted := parseIngestFile(name); isInterrupted {
			d := droppedFile{file: b.in("inbox/tmp", name)}
			if info, err := b.store.root.Lstat(d.file); err == nil {
				d.size = info.Size()
			}
			drops = append(drops, d)
		}
	}
	for _, dir := range []string{"inbox", "inbox/new"} {
		names, e := b.store.root.Names(b.in(dir))
		err = cmp.Or(err, e)
		for _, name := range names {
			if id, ok := messageID(name); ok && dir == "inbox/new" {
				found.unread = append(found.unread, id)
				continue
			}
			if dir == "inbox" && slices.Contains(inboxDirs, name) || isLitter(name) {
				continue
			}
			info, err := b.store.root.Lstat(b.in(dir, name))
			if err != nil {
				continue
			}
			why, isOld := whyLeft(info, names)
			switch {
			case why == "":
				drops = append(drops, droppedFile{b.in(dir, name), info.Size(), info.ModTime()})
			case isOld:
				found.left = append(found.left, BadFile{Name: name, Reason: leftReasons[why], Size: info.Size(), Dir: dir})
			}
		}
	}
	slices.SortFunc(drops, func(x, y droppedFile) int {
		switch {
		case x.isLarge() && y.isLarge():
			return cmp.Or(cmp.Compare(x.size, y.size), strings.Compare(x.file, y.file))
		case x.isLarge():
			return 1
		case y.isLarge():
			return -1
		}
		return cmp.Or(x.written.Compare(y.written), strings.Compare(x.file, y.file))
	})
	found.drops = drops
	return found, err
}

// Dropped counts the dropped files that wait to be ingested.
func (b *Box) Dropped() int {
	found, _ := b.listInbox() // what cannot be read does not count
	return len(found.drops)
}

// inboxDirs are the directories of an inbox. A file with such a name is not a dropped one.
var inboxDirs = []string{"tmp", "new", "cur", "done", "withdrawn", "bad"}

// beingWritten reports whether some process has the file open for writing. If the system does not tell (certain is
// false), a file counts as being written until it has not changed for a second. Until f is closed, a process that opens
// it for writing waits.
func beingWritten(f *os.File) (writing, certain bool) {
	certain, busy := readLease(f)
	if certain || busy {
		return busy, certain
	}
	info, err := f.Stat()
	return err != nil || time.Since(info.ModTime()).Abs() < time.Second, false
}

// ingest ingests one dropped file that no process is writing: it renames the file to the id that it will have, and then
// reads and publishes it. An interrupted file was renamed before. An error says why the file waits.
func (b *Box) ingest(ctx context.Context, file string, result *Ingested) error {
	root, tmp := b.store.root, b.in("inbox/tmp")
	f, err := root.Open(file)
	if err != nil { // it is gone, or not ours to open
		if errors.Is(err, fs.ErrPermission) {
			result.Left++
		}
		return nil
	}
	defer f.Close()
	writing, certain := beingWritten(f)
	if writing {
		return errBeingWritten
	}
	if path.Dir(file) == tmp { // by a process that may have been killed before it synced
		err = cmp.Or(root.Sync(tmp), root.Sync(b.in("inbox")), root.Sync(b.in("inbox/new")))
	} else {
		if err := b.mkdir(tmp); err != nil {
			return err
		}
		renamed := tmp + "/" + string(wire.NewID()) + "." + cutName(path.Base(file)) + ".drop"
		if err = root.Move(file, renamed); err == nil {
			// Otherwise, after a power cut, both the message and its original could be there, which would then be
			// ingested again under another id.
			err = errors.Join(root.Sync(tmp), root.Sync(path.Dir(file)))
		}
		file = renamed
	}
	if err == nil && certain && !hasLease(f) { // a process began to open it under its old name: it is waited for
		err = errBeingWritten
	}
	f.Close() // which ends the lease
	if err != nil {
		return err
	}
	return b.finishIngest(ctx, file, certain, result)
}

var errBeingWritten = errors.New("somebody may still be writing it")

// finishIngest publishes a file under the id in its name, and then removes the original, or keeps it in the archive if
// a process may still be writing it (not certain). After a kill another process may repeat any step. An error says why
// the file waits.
func (b *Box) finishIngest(ctx context.Context, file string, certain bool, result *Ingested) error {
	root := b.store.root
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
	err = b.publishDropped(ctx, d)
	if err == nil && d.hasChanged() {
		err = &BadError{Reason: changedReason + string(id)}
	}
	bad, isBad := errors.AsType[*BadError](err)
	switch {
	case isBad:
		if err = b.moveToBad(file, name, bad.Reason); err == nil {
			result.Bad++
		}
	case err != nil: // as on a full disk
	case certain:
		root.Remove(file)
	default:
		if kept := b.archived("drops"); b.mkdir(kept) == nil {
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
	return durable.ReadUntil(ctx, io.NewSectionReader(d, 0, MaxDrop))
}

func (d *openDrop) hasChanged() bool {
	now, err := d.Stat()
	return err != nil || now.Size() != d.info.Size() || !now.ModTime().Equal(d.info.ModTime())
}

// publishDropped delivers a dropped file as a message or appends it as an event, under the id in its name: whoever
// repeats it after a kill publishes nothing twice. A *BadError says that the file is neither.
func (b *Box) publishDropped(ctx context.Context, d *openDrop) error {
	m, e, err := b.parseDropped(ctx, d)
	if err != nil {
		return err
	}
	if e != nil {
		return b.Log().AppendSync(ctx, *e)
	}
	p := &Post{Message: m, To: []*Box{b}, Given: true, temp: string(d.id) + ".message"}
	Deliver(ctx, p)
	return p.Outcomes[0].Err
}

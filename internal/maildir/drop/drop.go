// Package drop makes messages and events of files that were dropped into a mailbox by hand, and says which are none.
//
// A dropped file is a regular file in inbox/, or in inbox/new/ under a name that is not a message's, unless it is hidden
// or its name is one of an unfinished file. A whole JSON message or event is taken in at once, any other file when it has
// not changed for maildir.Settling. The oldest comes first.
package drop

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/wire"
)

// Ingested is the result of Ingest.
type Ingested struct {
	Again time.Time // when the first of the files that are not taken in yet can be looked at again; zero: there are none
	Left  int       // files that are left where they are: BadFiles says why

	Unread *maildir.Listing // what is in inbox/new, if no file was taken in; else nil
}

// MaxSize is the size of the largest dropped file that is taken in. A larger one is set aside without being read.
const MaxSize = 256 << 20

const (
	lockTimeout = 20 * time.Millisecond // a delivery holds a lock for an instant
	lockPause   = 50 * time.Millisecond // before the next look if a lock was held, or nothing could be written
)

// Patience is how long a caller waits that shows mail: who has just dropped a file expects to see it.
const Patience = maildir.Settling

// lookTime is how long one look goes on: it begins no file after that. Tests shorten it.
var lookTime = 2 * time.Second

// Ingest takes in the files that were dropped into the mailbox. Each becomes a message, an event, or a file in bad with
// the reason: exactly one of them, also after a kill at any point, since it is renamed to the id that it will have before
// it is published. Without dropped files Ingest only lists three directories.
//
// Ingest waits for files that are still unsettled, or at a lock, until patience is over.
//
// If the store may not act, all files stay where they are, and the error says why.
func Ingest(ctx context.Context, b *maildir.Box, patience time.Duration) (in Ingested, err error) {
	if err := b.CheckPresent(); err != nil || b.Host() != "" || !wire.IsName(string(b.Agent())) { // a retired mailbox is read-only
		return in, err
	}
	impatient := *b.Store()
	impatient.LockTimeout = min(cmp.Or(impatient.LockTimeout, lockTimeout), lockTimeout)
	b = impatient.Box(b.Agent())
	for end := time.Now().Add(patience); ; {
		in, err = ingestOnce(ctx, b)
		if err != nil || in.Again.IsZero() || in.Again.After(end) {
			return in, err
		}
		select {
		case <-ctx.Done():
			return in, nil
		case <-time.After(time.Until(in.Again)):
		}
	}
}

// ingestOnce looks at the dropped files once, and takes in those that are settled.
func ingestOnce(ctx context.Context, b *maildir.Box) (in Ingested, err error) {
	found, err := List(b)
	in.Left, in.Unread = len(found.Left), found.unread
	if err != nil || len(found.Drops) == 0 {
		return in, err
	}
	if err := b.Store().MayAct(ctx); err != nil { // about the files that are listed, and before the lock: it may ask git
		return in, err
	}
	l, err := b.Store().Locks().Lock(ctx, b.LockName("drops"), lockfile.Exclusive, 0, b.CheckPresent)
	_, isHeld := errors.AsType[*lockfile.HeldError](err)
	if isHeld || maildir.IsUnwritable(err) {
		in.Again = time.Now().Add(lockPause)
		return in, nil
	}
	if err != nil {
		return in, err
	}
	defer l.Unlock()
	began := time.Now()
	for i, d := range found.Drops {
		if i > 0 && time.Since(began) > lookTime {
			in.lookAgain(time.Now())
			break
		}
		again, err := d.take(ctx, b)
		if again.IsZero() {
			in.Unread = nil
		} else {
			in.lookAgain(again)
		}
		if _, isHeld := errors.AsType[*lockfile.HeldError](err); isHeld || ctx.Err() != nil {
			break
		}
	}
	return in, nil
}

func (in *Ingested) lookAgain(at time.Time) {
	if in.Again.IsZero() || at.Before(in.Again) {
		in.Again = at
	}
}

// File is a file that was dropped into the mailbox.
type File struct {
	Path    string      // below the team's directory
	IsBegun bool        // it was being taken in when its process was killed
	info    os.FileInfo // as it was listed
}

// Listing is what inbox and inbox/new have.
type Listing struct {
	Drops  []File    // the oldest first
	Left   []BadFile // what stays where it is
	unread *maildir.Listing
}

// InboxDirs are the directories of an inbox. A file with such a name is not a dropped one.
var InboxDirs = []string{"tmp", "new", "cur", "held", "done", "withdrawn", "bad"}

// List lists what inbox and inbox/new have.
func List(b *maildir.Box) (found Listing, err error) {
	for _, dir := range []string{"inbox/tmp", "inbox", "inbox/new"} {
		names, e := found.namesIn(b, dir)
		err = cmp.Or(err, e)
		for _, name := range names {
			found.add(b, dir, name)
		}
	}
	slices.SortStableFunc(found.Drops, func(x, y File) int { return x.info.ModTime().Compare(y.info.ModTime()) })
	return found, err
}

// namesIn lists a directory, of inbox/new what it has beside the messages, which are listed too.
func (l *Listing) namesIn(b *maildir.Box, dir string) (names []string, err error) {
	if dir != "inbox/new" {
		return b.Store().Dir().Names(b.In(dir))
	}
	l.unread, err = b.List(b.Unread())
	return l.unread.Others, err
}

// add adds an entry of a directory of the mailbox.
func (l *Listing) add(b *maildir.Box, dir, name string) {
	_, _, isBegun := parseBegun(name)
	switch {
	case dir == "inbox/tmp" && !isBegun, dir == "inbox" && slices.Contains(InboxDirs, name), name[0] == '.':
		return
	}
	file := b.In(dir, name)
	info, err := b.Store().Dir().Lstat(file)
	if err != nil { // it is gone
		return
	}
	d := File{file, dir == "inbox/tmp", info}
	switch code, isNamed := whyLeft(b, d); {
	case code == "":
		l.Drops = append(l.Drops, d)
	case isNamed:
		l.Left = append(l.Left, BadFile{name, leftReasons[code], info.Size(), dir, code})
	}
}

// parseBegun splits the name of a dropped file that is being taken in: <id>.<original name>.drop in inbox/tmp.
func parseBegun(file string) (id wire.ID, original string, ok bool) {
	name, isDrop := strings.CutSuffix(file, ".drop")
	before, original, _ := strings.Cut(name, ".")
	return wire.ID(before), original, isDrop && wire.IsID(before)
}

// take makes a message, an event or a bad file of a dropped one. It returns when the file can be looked at again if it
// stays. After a kill another process may repeat any step.
func (d File) take(ctx context.Context, b *maildir.Box) (again time.Time, err error) {
	o, err := d.open(b)
	if err != nil { // it is gone
		return again, err
	}
	defer o.Close()
	if o.hasChanged() { // the store was not asked about what it is now
		return time.Now().Add(maildir.Settling), nil
	}
	m, e, notJSON := o.parse()
	isWhole := m != nil || e != nil
	if again = maildir.SettlesAt(o.info); !isWhole && !again.IsZero() {
		return again, nil
	}
	err = o.begin(d)
	if err == nil && !isWhole {
		if m, err = o.plain(ctx, notJSON); o.hasChanged() {
			err = cmp.Or(err, errors.New("it is being written again"))
		}
	}
	if err == nil {
		err = o.publish(ctx, m, e)
	}
	if err = o.finish(err, isWhole); err == nil || isBad(err) {
		return time.Time{}, err
	}
	return time.Now().Add(lockPause), err
}

func isBad(err error) bool { _, isBad := errors.AsType[*maildir.BadError](err); return isBad }

// opened is a dropped file that is being taken in.
type opened struct {
	*os.File
	box  *maildir.Box
	info os.FileInfo // as it was listed
	path string      // where it is now
	id   wire.ID     // of the message that it becomes
	name string      // under which it was dropped, cut
}

// open opens a dropped file.
func (d File) open(b *maildir.Box) (*opened, error) {
	f, err := b.Store().Dir().Open(d.Path)
	if err != nil {
		return nil, err
	}
	o := &opened{File: f, box: b, info: d.info, path: d.Path, id: wire.NewID(), name: maildir.CutName(path.Base(d.Path))}
	if d.IsBegun {
		o.id, o.name, _ = parseBegun(o.name)
	}
	return o, nil
}

// hasChanged reports whether the file is another one than was listed, or has been written to since.
func (o *opened) hasChanged() bool {
	now, err := o.Stat()
	return err != nil || !os.SameFile(now, o.info) || now.Size() != o.info.Size() || !now.ModTime().Equal(o.info.ModTime())
}

// begin renames the file durably to the id that it will have. Otherwise, after a power cut, both the message and its
// original could be there, and the original would be taken in again under another id.
func (o *opened) begin(d File) error {
	root, tmp := o.box.Store().Dir(), o.box.In("inbox/tmp")
	if d.IsBegun { // by a process that may have been killed before it synced
		return cmp.Or(root.Sync(tmp), root.Sync(o.box.In("inbox")), root.Sync(o.box.In("inbox/new")))
	}
	if err := o.box.Mkdir(tmp); err != nil {
		return err
	}
	o.path = tmp + "/" + string(o.id) + "." + o.name + ".drop"
	if err := cmp.Or(root.Move(d.Path, o.path), root.Sync(tmp), root.Sync(path.Dir(d.Path))); err != nil {
		return err
	}
	if now, err := root.Lstat(o.path); err != nil || !os.SameFile(now, d.info) {
		return errors.New("another file has taken its place") // which is taken in by the next look
	}
	return nil
}

// publish delivers the message or appends the event, under the id in the file's name: whoever repeats it after a kill
// publishes nothing twice.
func (o *opened) publish(ctx context.Context, m *wire.Message, e *wire.Event) error {
	if e != nil {
		return o.box.Log().AppendSync(ctx, *e)
	}
	p := &maildir.Post{Message: m, To: []*maildir.Box{o.box}, Given: true, Temp: string(o.id) + ".message"}
	maildir.Deliver(ctx, p)
	if err := p.Outcomes[0].Err; !errors.Is(err, maildir.ErrIDTaken) {
		return err
	}
	return &maildir.BadError{Name: o.name, Reason: "it was taken in as message " + o.id.Short(6) + " before, and has changed since"}
}

// finish puts the file away: into bad if it is no message. A whole JSON object ends where it ends, and is removed. Of any
// other file, somebody may still have it open and write to it later: it is kept.
func (o *opened) finish(err error, isWhole bool) error {
	bad, isBad := errors.AsType[*maildir.BadError](err)
	root, kept := o.box.Store().Dir(), o.box.Archived("drops")
	switch {
	case isBad:
		return cmp.Or(o.box.MoveToBad(o.path, o.name, bad.Reason), err)
	case err != nil: // as on a full disk
		return err
	case isWhole:
		return root.Remove(o.path)
	}
	return cmp.Or(o.box.Mkdir(kept), root.Move(o.path, kept+"/"+strings.TrimSuffix(path.Base(o.path), ".drop")))
}

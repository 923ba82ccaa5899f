package atomicfile

import (
	"errors"
	"io/fs"
	"sync"
)

// Draft is a file that has been written but has no name yet, or only one in a
// directory nobody reads. Not for concurrent use, except for Link to different
// directories.
type Draft struct {
	dir   *Dir
	f     draftFile
	label string // for messages
	name  string // "" while it has none

	mu    sync.Mutex
	links int
	spent bool // its only name has moved to where it was linked

	named    int   // how many of the links a SyncName has made durable
	namesErr error // of the SyncName that failed
}

// journal says what a file system does with the number of a file's names, which
// is 0 in a draft that has none.
type journal int

const (
	unknownJournal journal = iota
	hasJournal             // durable with the name, by a sync of the directory
	noJournal              // durable by a sync of the file only
)

// ErrNoLinks is returned by a second Link on a file system without hard links:
// another draft is needed.
var ErrNoLinks = errors.New("the file system has no hard links")

// Draft creates a draft in d's file system. Where the system has no unnamed
// files it is called name, in d, until Close.
func (d *Dir) Draft(name string) (*Draft, error) {
	if !oneComponent(name) {
		return nil, d.wrap("create", name, fs.ErrInvalid)
	}
	if err := d.check(OpCreate, name); err != nil {
		return nil, err
	}
	f, err := d.openUnnamed()
	dr := &Draft{dir: d, f: f, label: "(unnamed)"}
	if errors.Is(err, errUnsupported) {
		dr.name, dr.label = name, name
		dr.f, err = d.openDraft(name)
	}
	if err == nil {
		if err = d.own().fixDraft(dr.f); err != nil {
			dr.Close()
		}
	}
	if err != nil {
		return nil, d.wrap("create", name, unwrap(err))
	}
	return dr, nil
}

// Write appends b to the draft.
func (dr *Draft) Write(b []byte) (int, error) {
	if err := dr.dir.check(OpWrite, dr.label); err != nil {
		n, _ := dr.f.Write(b[:len(b)/2])
		return n, err
	}
	n, err := dr.f.Write(b)
	if err != nil {
		err = dr.dir.wrap("write", dr.label, unwrap(err))
	}
	return n, err
}

// Flush asks the system to begin writing the draft out, so that several Syncs
// that follow share the wait. It promises nothing.
func (dr *Draft) Flush() { flushHint(dr.f) }

// Sync makes the draft's content durable. After an error the draft is of no
// use: close it and write another.
func (dr *Draft) Sync() error {
	if err := dr.dir.check(OpSync, dr.label); err != nil {
		return err
	}
	if err := dr.f.Sync(); err != nil {
		return dr.dir.wrap("fsync", dr.label, unwrap(err))
	}
	return nil
}

// Link gives the draft a name in a directory: fs.ErrExist when it is taken. It
// may be called for several directories of one file system.
func (dr *Draft) Link(to *Dir, as string) error {
	if !oneComponent(as) {
		return to.wrap("link", as, fs.ErrInvalid)
	}
	if err := to.check(OpLink, as); err != nil {
		return err
	}
	dr.mu.Lock()
	defer dr.mu.Unlock()
	if dr.spent {
		return to.wrap("link", as, ErrNoLinks)
	}
	err := dr.link(to, as)
	if errors.Is(err, errUnsupported) && dr.name != "" && dr.links == 0 {
		// No hard links on this file system: the one name moves.
		if err = Move(dr.dir, dr.name, to, as); err == nil {
			dr.name, dr.spent = "", true
		}
	}
	if err != nil {
		return to.wrap("link", as, unwrap(err))
	}
	dr.links++
	return nil
}

// SyncLink makes the name durable that Link gave the draft in d, after which
// nothing else was linked into d.
func (dr *Draft) SyncLink(d *Dir) error {
	if enough, err := dr.SyncName(d); enough || err != nil {
		return err
	}
	return d.Sync()
}

// SyncName is what has to come before a Sync of d, so that the two make the name
// durable that Link gave the draft there: on most file systems nothing at all.
// enough says that it did all of it. Other drafts may be synced at the same time,
// and the same one for other directories.
func (dr *Draft) SyncName(d *Dir) (enough bool, err error) {
	dr.mu.Lock()
	defer dr.mu.Unlock()
	if dr.name != "" || dr.spent || dr.links == 0 {
		return false, nil // it had a name when it was synced
	}
	j := d.journal()
	if j == hasJournal {
		return false, nil
	}
	if dr.namesErr == nil && dr.named < dr.links {
		if dr.namesErr = dr.f.Sync(); dr.namesErr != nil {
			dr.namesErr = d.wrap("fsync", dr.label, unwrap(dr.namesErr))
		}
		dr.named = dr.links
	}
	// Without a journal ext4 syncs the directory of a file's newest name with it
	// (ext4_sync_parent in fs/ext4/fsync.c, since Linux 2.6.35).
	return j == noJournal && dr.links == 1, dr.namesErr
}

// SyncNamed is SyncName for a file that another process may have linked and not
// lived to sync.
func (d *Dir) SyncNamed(name string) error {
	if d.journal() == hasJournal {
		return nil
	}
	f, err := d.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return d.SyncFile(f)
}

// Close lets go of the draft; without a Link it is gone.
func (dr *Draft) Close() error {
	err := dr.f.Close()
	if dr.name != "" {
		err = errors.Join(err, dr.dir.Remove(dr.name))
		dr.name = ""
	}
	return err
}

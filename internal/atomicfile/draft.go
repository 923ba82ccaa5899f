package atomicfile

import (
	"errors"
	"io/fs"
	"strconv"
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

	mu     sync.Mutex
	linked bool
	moved  bool // where it was linked first it was moved to
}

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
		err = dr.openNamed(name)
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

// openNamed makes the draft under a name, or a longer one where somebody was
// killed who had it.
func (dr *Draft) openNamed(name string) (err error) {
	dr.name = name
	for n := 1; ; n++ {
		dr.f, err = dr.dir.openDraft(dr.name)
		if !errors.Is(err, fs.ErrExist) || n > 100 {
			dr.label = dr.name
			return err
		}
		dr.name = name + "." + strconv.Itoa(n)
	}
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
	err := dr.give(to, as)
	if err != nil {
		return to.wrap("link", as, unwrap(err))
	}
	dr.linked = true
	return nil
}

// give gives the draft a name. One that has another loses that where one call
// can do both, and is linked by its descriptor from then on.
func (dr *Draft) give(to *Dir, as string) error {
	if dr.name != "" && !dr.linked && dr.unnamed() {
		err := renameNoReplace(dr.dir, dr.name, to, as)
		if err == nil {
			dr.name, dr.moved = "", true
		}
		if !errors.Is(err, errUnsupported) {
			return err
		}
	}
	err := dr.link(to, as)
	if !errors.Is(err, errUnsupported) {
		return err
	}
	// No hard links on this file system.
	if dr.moved {
		return ErrNoLinks
	}
	if dr.name != "" && !dr.linked {
		if err = Move(dr.dir, dr.name, to, as); err == nil {
			dr.name, dr.moved = "", true
		}
	}
	return err
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

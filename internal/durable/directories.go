package durable

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"
)

// directories are some that a root has opened before, by their path in it. One that is no longer at its path, since an
// agent was retired or a day was archived, is never used: that is looked at each time.
type directories struct {
	mu     sync.Mutex
	byName map[string]openDir
}

type openDir struct {
	*os.Root
	info fs.FileInfo
}

// open opens a directory of the root. What isKept is not closed by the caller.
func (d *directories) open(r *Root, name string) (dir *os.Root, isKept bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.openLocked(r, path.Clean(name))
}

func (d *directories) openLocked(r *Root, name string) (dir *os.Root, isKept bool, err error) {
	if open, ok := d.byName[name]; ok {
		if now, err := os.Stat(r.Join(name)); err == nil && os.SameFile(now, open.info) {
			return open.Root, true, nil
		}
		delete(d.byName, name) // it may be in use: os.Root closes itself when nobody has it any more
	}
	if len(d.byName) >= mostKept {
		dir, err = r.root.OpenRoot(name + here)
		return dir, false, err
	}
	if dir, err = d.openFresh(r, name); err != nil {
		return dir, false, err
	}
	info, err := dir.Stat(".")
	if err != nil {
		return dir, false, nil
	}
	if d.byName == nil {
		d.byName = map[string]openDir{}
	}
	d.byName[name] = openDir{dir, info}
	return dir, true, nil
}

// openFresh opens a directory in the one above it, or from the top if there is a link on the way.
func (d *directories) openFresh(r *Root, name string) (*os.Root, error) {
	if above := path.Dir(name); above != "." && above != name { // "/" has none above it, and is not opened
		parent, isKept, err := d.openLocked(r, above)
		if err != nil {
			return nil, err
		}
		if !isKept {
			defer parent.Close()
		}
		dir, err := parent.OpenRoot(path.Base(name) + here)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return dir, err
		}
	}
	return r.root.OpenRoot(name + here)
}

// close closes those that are open. The root must not be in use.
func (d *directories) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, dir := range d.byName {
		dir.Close()
	}
	clear(d.byName)
}

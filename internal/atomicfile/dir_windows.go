package atomicfile

import (
	"io/fs"
	"os"
	"path/filepath"
)

func (d *Dir) openFile(name string, flag int, perm uint32) (*os.File, error) {
	if info, err := d.root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, d.wrap("open", name, ErrNotRegular)
	}
	f, err := d.root.OpenFile(name, flag, fs.FileMode(perm))
	if err != nil {
		return nil, d.wrap("open", name, unwrap(err))
	}
	return f, nil
}

func (d *Dir) openRead(name string) (*os.File, error) { return d.openFile(name, os.O_RDONLY, 0) }

// Windows has no fsync of a directory: NTFS journals the entry itself.
func (d *Dir) syncDir() error { return nil }

func (dr *Draft) unnamed() bool { return false }

func (dr *Draft) link(to *Dir, as string) error {
	return os.Link(filepath.Join(dr.dir.path, dr.name), filepath.Join(to.path, as))
}

// draftFile is the file of a Draft.
type draftFile = *os.File

func (d *Dir) openUnnamed() (draftFile, error) { return nil, errUnsupported }

func (d *Dir) openDraft(name string) (draftFile, error) {
	return d.openFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

func renameNoReplace(*Dir, string, *Dir, string) error { return errUnsupported }

func renameReplace(from *Dir, name string, to *Dir, as string) error {
	return os.Rename(filepath.Join(from.path, name), filepath.Join(to.path, as))
}

func flushHint(draftFile) {}

type owner struct{}

var nobody owner

func ownerOf(fs.FileInfo) owner         { return owner{} }
func (owner) fixDir(*Dir, string) error { return nil }
func (owner) fixFile(*os.File) error    { return nil }

func (owner) fixRegular(f *os.File) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotRegular
	}
	return err
}
func (owner) fixDraft(draftFile) error { return nil }

// Readable reports whether the owner of d could read a file that this process
// makes in it.
func (d *Dir) Readable() bool { return true }

// Writable reports whether this process may make entries in d; not asked here.
func (d *Dir) Writable() bool { return true }

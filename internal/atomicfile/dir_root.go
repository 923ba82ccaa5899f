//go:build !linux

package atomicfile

import (
	"io"
	"io/fs"
	"os"
)

// Elsewhere than on Linux a directory is an os.Root.

type dirFile = os.File

func (d *Dir) openPath() error {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return err
	}
	return d.take(root)
}

// take makes an opened root this directory's.
func (d *Dir) take(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		root.Close()
		return err
	}
	d.file = f
	d.rootOnce.Do(func() { d.root = root })
	return nil
}

func (d *Dir) openSub(name string, s *Dir) error {
	info, err := d.root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return ErrNotDirectory
	}
	root, err := d.root.OpenRoot(name)
	if err != nil {
		return err
	}
	if err := s.take(root); err != nil {
		return err
	}
	if now, err := s.file.Stat(); err != nil || !os.SameFile(info, now) {
		s.Close()
		return ErrNotDirectory
	}
	return nil
}

// OpenPlain would open a directory whose path has no symbolic link; here that
// cannot be asked for.
func OpenPlain(as, path string) (*Dir, error) { return nil, errUnsupported }

func (d *Dir) describe() (fs.FileInfo, error) { return d.file.Stat() }

// Still would report whether s, opened before, is the directory that Walk with
// these names would open now. Here it is always opened anew.
func (d *Dir) Still(s *Dir, names ...string) bool { return false }

func (d *Dir) walkFast([]string) (*Dir, error) { return nil, errUnsupported }

// list lists the directory through a descriptor of its own, since a listing
// has a place in it.
func (d *Dir) list(f func([]string) bool) error {
	l, err := d.root.Open(".")
	if err != nil {
		return err
	}
	defer l.Close()
	for {
		names, err := l.Readdirnames(1024)
		if len(names) > 0 && !f(names) {
			return nil
		}
		if err == io.EOF || err == nil && len(names) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (d *Dir) openRoot() (*os.Root, error) { return os.OpenRoot(d.path) }

func (d *Dir) mkdir(name string) error {
	if err := d.root.Mkdir(name, 0o700); err != nil {
		return err
	}
	return d.own().fixDir(d, name)
}

func (d *Dir) remove(name string) error { return d.root.Remove(name) }

func (d *Dir) lstat(name string) (fs.FileInfo, error) { return d.root.Lstat(name) }

// size is that of a regular file, ErrNotRegular for what is none.
func (d *Dir) size(name string) (int64, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return 0, unwrap(err)
	}
	if !info.Mode().IsRegular() {
		return 0, ErrNotRegular
	}
	return info.Size(), nil
}

// SameFile reports whether two descriptions, from here or from os, are of one
// file.
func SameFile(a, b fs.FileInfo) bool { return os.SameFile(a, b) }

// Identity tells directories apart, whatever they are called.
type Identity struct{}

// Identity is the directory's own; false where the system has none.
func (d *Dir) Identity() (Identity, bool) { return Identity{}, false }

func (d *Dir) leads(path string, to fs.FileInfo, size int64) bool {
	now, err := d.root.Lstat(path)
	return err == nil && os.SameFile(now, to) && now.Size() == size
}

// whole is never asked where locks have no stamps.
func whole(*os.File, int64) bool { return false }

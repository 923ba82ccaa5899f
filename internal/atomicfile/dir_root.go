//go:build !linux

package atomicfile

import (
	"io/fs"
	"os"
)

// Elsewhere than on Linux a directory is an os.Root.

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

// again opens the directory once more, for a listing of its own.
func (d *Dir) again() (*os.File, error) { return d.root.Open(".") }

func (d *Dir) openRoot() (*os.Root, error) { return os.OpenRoot(d.path) }

func (d *Dir) mkdir(name string) error {
	if err := d.root.Mkdir(name, 0o700); err != nil {
		return err
	}
	return d.own().fixDir(d, name)
}

func (d *Dir) remove(name string) error { return d.root.Remove(name) }

func (d *Dir) lstat(name string) (fs.FileInfo, error) { return d.root.Lstat(name) }

// SameFile reports whether two descriptions, from here or from os, are of one
// file.
func SameFile(a, b fs.FileInfo) bool { return os.SameFile(a, b) }

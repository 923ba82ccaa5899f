package durable

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Create writes and syncs a new file; fs.ErrExist if the name is taken. It removes a file that it could not write
// whole.
func (r *Root) Create(name string, data []byte) error {
	return r.CreateFrom(name, bytes.NewReader(data))
}

// CreateFrom is Create with the content of a reader.
func (r *Root) CreateFrom(name string, content io.Reader) error { return r.create(name, content, true) }

func (r *Root) create(name string, content io.Reader, sync bool) error {
	f, err := r.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	err = r.do("write", name, func() error {
		_, err := io.Copy(f, content)
		return err
	})
	if err == nil && sync {
		err = r.SyncFile(f)
	}
	if err = cmp.Or(err, f.Close()); err != nil {
		r.root.Remove(name)
	}
	return err
}

// Write writes all of data to an open file, or returns how much it has written. A fault has half of it written.
func (r *Root) Write(f *os.File, data []byte) (int, error) {
	err := r.do("write", f.Name(), func() error { return nil })
	if err != nil {
		data = data[:len(data)/2]
	}
	n, failed := f.Write(data)
	return n, cmp.Or(err, failed)
}

// SyncFile makes the content of f survive a power cut.
func (r *Root) SyncFile(f *os.File) error { return r.do("fsync", f.Name(), f.Sync) }

// Sync makes the entries of a directory survive a power cut.
func (r *Root) Sync(dir string) error {
	return r.do("fsync directory", dir, func() error {
		d, err := r.openDirectory(dir)
		if err != nil {
			return err
		}
		defer d.Close()
		err = syncDirectory(d)
		_, e := d.Stat() // fails on an XFS that has shut down, where the sync succeeds
		return cmp.Or(err, e)
	})
}

// MoveOver renames a file and replaces one of the new name: never for messages.
func (r *Root) MoveOver(old, new string) error {
	return r.do("rename", new, func() error {
		if path.Dir(old) != path.Dir(new) {
			return r.root.Rename(old, new)
		}
		return r.above(old, func(dir *os.Root, base string) error { return dir.Rename(base, path.Base(new)) })
	})
}

// Publish writes a new file; fs.ErrExist if the name is taken. Readers see the whole file or none. With sync its
// content survives a power cut, once the caller has synced the directory. A kill leaves a temp file, as by Replace.
func (r *Root) Publish(name string, content io.Reader, sync bool) error {
	temp := tempBeside(name)
	if err := r.create(temp, content, sync); err != nil {
		return err
	}
	isRenamed := false
	err := r.do("publish", name, func() error {
		err := r.renameOnly(temp, name)
		if isRenamed = err == nil; errors.Is(err, errors.ErrUnsupported) {
			err = r.root.Link(temp, name) // no less in one step, but forbidden in Claude Code's sandbox on macOS
		}
		return err
	})
	if !isRenamed {
		r.root.Remove(temp)
	}
	return err
}

// renameOnly renames an entry in one step that never replaces another; errors.ErrUnsupported if that is not possible.
func (r *Root) renameOnly(old, new string) error {
	from, err := r.openAbove(old)
	if err != nil {
		return err
	}
	defer from.Close()
	to := from
	if path.Dir(old) != path.Dir(new) {
		if to, err = r.openAbove(new); err != nil {
			return err
		}
		defer to.Close()
	}
	switch err := renameIn(from, path.Base(old), to, path.Base(new)); err {
	case nil:
		return nil
	case syscall.EINVAL, syscall.ENOSYS, syscall.ENOTSUP:
		return errors.ErrUnsupported
	default:
		return &os.LinkError{Op: "rename", Old: old, New: new, Err: err}
	}
}

// openAbove opens the directory that an entry is in, as a file.
func (r *Root) openAbove(name string) (d *os.File, err error) {
	err = r.above(name, func(dir *os.Root, _ string) error {
		d, err = dir.OpenFile(".", os.O_RDONLY|dirOnly, 0)
		return err
	})
	return d, err
}

// Move renames an entry; fs.ErrExist if the new name is taken. Where the system cannot do that in one step, it looks
// first: the caller holds the lock that guards the directory.
func (r *Root) Move(old, new string) error {
	return r.do("rename", old, func() error {
		if err := r.renameOnly(old, new); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		if taken, err := r.Exists(new); err != nil {
			return err
		} else if taken {
			return r.pathError("rename", new, fs.ErrExist)
		}
		return r.root.Rename(old, new)
	})
}

const tempSuffix = ".tmp"

// tempBeside returns a hidden name beside a file, which nobody else uses.
func tempBeside(name string) string { return path.Join(path.Dir(name), "."+rand.Text()+tempSuffix) }

// Replace writes a small file atomically: readers see the old content or the new. With sync it survives a power cut
// once Replace returns. A kill leaves a hidden temp file beside it, which Stale lists. Never for messages.
func (r *Root) Replace(name string, data []byte, sync bool) error {
	temp := tempBeside(name)
	err := r.create(temp, bytes.NewReader(data), sync)
	if err == nil {
		err = r.MoveOver(temp, name)
	}
	if err != nil {
		r.root.Remove(temp)
		return fmt.Errorf("replace %s: %w", r.Join(name), err)
	}
	if sync {
		err = r.Sync(path.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("%s is written, but may not survive a power cut (%w)", r.Join(name), err)
	}
	return nil
}

// WritePrivate writes a file that only this user can read, as Replace with sync does. It makes the file's directory,
// which may be a symbolic link, and sets it to 0700.
func WritePrivate(file string, data []byte) error {
	dir, name := filepath.Split(file)
	if err := cmp.Or(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o700)); err != nil {
		return err
	}
	r, err := Open(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	return r.Replace(name, data, true)
}

// Stale lists what killed processes left in a directory before a point in time: temp files of Replace, and directories
// under construction (".x.making").
func (r *Root) Stale(dir string, before time.Time) (stale []string) {
	names, _ := r.Names(dir)
	for _, name := range names {
		info, err := r.root.Lstat(path.Join(dir, name))
		if err != nil || name[0] != '.' || !info.ModTime().Before(before) {
			continue
		}
		if info.Mode().IsRegular() && strings.HasSuffix(name, tempSuffix) || info.IsDir() && strings.HasSuffix(name, ".making") {
			stale = append(stale, path.Join(dir, name))
		}
	}
	return stale
}

// Package durable is a directory tree in which files appear whole or not at all.
//
//   - No name leads out of the tree: it is an os.Root. Names have slashes, as in "bob/inbox/new/x.json". A link is
//     never opened; one on the way is followed if it stays inside.
//   - Create, Publish and Move refuse to replace what is there: fs.ErrExist.
//   - New entries get the rights of their directory: 0700 and 0600 under any umask, with its group, group bits and
//     set-group-ID bit; made by root, they belong to its owner. (Windows has its own.)
//   - A file survives a power cut once it and then its directory were synced. A sync
//     that failed is never tried again on the same file: write another.
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
	"slices"
	"strings"
	"syscall"
	"time"
)

// Errors that callers tell apart, besides those of io/fs.
var (
	ErrNotRegular   = errors.New("is not a regular file")
	ErrNotDirectory = errors.New("is not a directory (links are not followed)")
	ErrTooLarge     = errors.New("file too large")
)

// Fault is asked in tests before each operation that does more than look; its error becomes the operation's (a write
// first writes half). name is below the first root, that of an open file its path.
type Fault func(op, name string) error

// Root is the opened directory. It may be used by several goroutines at once.
type Root struct {
	root  *os.Root
	path  string
	fault Fault
	below string // of one that Sub opened: its name in the first
}

// Open opens the directory at path, which may itself be a symbolic link. fault is nil but in tests.
func Open(path string, fault Fault) (*Root, error) {
	root, err := os.OpenRoot(path)
	if isNotDirectory(err) {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotDirectory}
	}
	return &Root{root: root, path: path, fault: fault}, err
}

// Sub opens a directory below as a root of its own. A link is refused.
func (r *Root) Sub(name string) (*Root, error) {
	if err := r.IsDir(name); err != nil {
		return nil, err
	}
	root, err := r.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &Root{root, r.Join(name), r.fault, path.Join(r.below, name)}, nil
}

// Close lets go of the directory.
func (r *Root) Close() error { return r.root.Close() }

// Path is where the directory was when it was opened.
func (r *Root) Path() string { return r.path }

// Join is the path of a name below the directory, for people and other programs.
func (r *Root) Join(name string) string { return filepath.Join(r.path, filepath.FromSlash(name)) }

func (r *Root) pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: r.Join(name), Err: err}
}

// whole is an error with the whole path, of which package os tells what is below the directory.
func (r *Root) whole(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok && !filepath.IsAbs(p.Path) {
		p.Path = r.Join(p.Path)
	}
	return err
}

// do runs an operation, unless a test has it fail.
func (r *Root) do(op, name string, operation func() error) error {
	if r.fault != nil {
		if !filepath.IsAbs(name) {
			name = path.Join(r.below, name)
		}
		if err := r.fault(op, name); err != nil {
			return &fs.PathError{Op: op, Path: name, Err: err}
		}
	}
	return r.whole(operation())
}

// Lstat describes an entry; a link is not followed.
func (r *Root) Lstat(name string) (fs.FileInfo, error) {
	info, err := r.root.Lstat(name)
	return info, r.whole(err)
}

// Exists reports whether there is an entry of that name, of whatever kind. Below what is no directory there is none.
func (r *Root) Exists(name string) (bool, error) {
	_, err := r.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return err == nil, err
}

// IsDir is nil for a directory, ErrNotDirectory (wrapped) for anything else that is
// there or above it, also for a link to a directory.
func (r *Root) IsDir(name string) error {
	info, err := r.Lstat(name)
	if err == nil && !info.IsDir() || isNotDirectory(err) {
		return r.pathError("open", name, ErrNotDirectory)
	}
	return err
}

// isNotDirectory reports whether something on the way is no directory. Windows says ENOTDIR where nothing is, too.
func isNotDirectory(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, fs.ErrNotExist)
}

func (r *Root) openDir(name string) (*os.File, error) {
	if err := r.IsDir(name); err != nil {
		return nil, err
	}
	return r.root.Open(name)
}

// MkdirAll makes a directory and those above it that are missing.
func (r *Root) MkdirAll(name string) error {
	err := r.Mkdir(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = r.MkdirAll(path.Dir(name)); err == nil {
			err = r.Mkdir(name)
		}
	}
	return err
}

// Mkdir makes a directory in one that is there; one that exists is fine.
func (r *Root) Mkdir(name string) error {
	if err := r.IsDir(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := r.do("mkdir", name, func() error { return r.root.Mkdir(name, 0o700) })
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	r.root.Chmod(name, 0o700) // a umask may have taken even the right to open it
	d, err := r.openDir(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return r.giveRights(d, path.Dir(name))
}

// Names lists a directory, sorted; one that is absent is empty.
func (r *Root) Names(dir string) (names []string, err error) {
	err = r.do("list", dir, func() error {
		d, err := r.openDir(dir)
		if err != nil {
			return err
		}
		defer d.Close()
		names, err = d.Readdirnames(-1)
		return err
	})
	slices.Sort(names)
	if errors.Is(err, fs.ErrNotExist) { // also one that is removed while it is read
		return nil, nil
	}
	return names, err
}

// OpenFile opens a regular file with the flags of package os. To open a FIFO or a device is already to do something to
// it: these and links are ErrNotRegular. With os.O_CREATE an existing file gets its rights too, should its maker have
// been killed before that.
func (r *Root) OpenFile(name string, flag int) (f *os.File, err error) {
	err = r.do("open", name, func() error {
		f, err = r.openRegular(name, flag)
		return err
	})
	if err == nil && flag&os.O_CREATE != 0 {
		if err = r.giveRights(f, path.Dir(name)); err != nil {
			f.Close()
		}
	}
	return f, err
}

func (r *Root) openRegular(name string, flag int) (*os.File, error) {
	if flag&os.O_EXCL == 0 { // else nothing is there to look at
		info, err := r.root.Lstat(name)
		switch {
		case err == nil && !info.Mode().IsRegular():
			return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
		case err != nil && flag&os.O_CREATE == 0:
			return nil, err
		}
	}
	return r.root.OpenFile(name, flag, 0o600)
}

// Open opens a regular file for reading.
func (r *Root) Open(name string) (*os.File, error) { return r.OpenFile(name, os.O_RDONLY) }

// ReadFile reads a regular file of at most max bytes.
func (r *Root) ReadFile(name string, max int64) (data []byte, err error) {
	f, err := r.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = r.do("read", name, func() error {
		var text bytes.Buffer
		text.Grow(4096) // most files are smaller
		_, err = text.ReadFrom(io.LimitReader(f, max+1))
		data = text.Bytes()
		return err
	})
	if int64(len(data)) > max {
		return nil, r.pathError("read", name, ErrTooLarge)
	}
	return data, err
}

// Create writes a new file and syncs it: fs.ErrExist when the name is taken. A file
// that could not be written whole is removed again.
func (r *Root) Create(name string, data []byte) error {
	return r.create(name, true, func(f *os.File) error { return r.Write(f, data) })
}

// CreateFrom is Create of what can be read.
func (r *Root) CreateFrom(name string, from io.Reader) error {
	return r.create(name, true, func(f *os.File) error {
		_, err := io.Copy(f, from)
		return err
	})
}

func (r *Root) create(name string, sync bool, write func(*os.File) error) error {
	f, err := r.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	if err = write(f); err == nil && sync {
		err = r.SyncFile(f)
	}
	if err = cmp.Or(err, f.Close()); err != nil {
		r.root.Remove(name)
	}
	return err
}

// Write writes all of data to an open file.
func (r *Root) Write(f *os.File, data []byte) error {
	err := r.do("write", f.Name(), func() error { return nil })
	if err != nil {
		data = data[:len(data)/2]
	}
	_, e := f.Write(data)
	return cmp.Or(err, e)
}

// SyncFile makes what was written to f survive a power cut.
func (r *Root) SyncFile(f *os.File) error { return r.do("fsync", f.Name(), f.Sync) }

// Sync makes the entries of a directory survive a power cut.
func (r *Root) Sync(dir string) error {
	return r.do("fsync directory", dir, func() error {
		d, err := r.openDir(dir)
		if err != nil {
			return err
		}
		defer d.Close()
		err = syncDirectory(d)
		_, e := d.Stat() // on an xfs that has shut itself down the sync succeeds and this fails
		return cmp.Or(err, e)
	})
}

// MoveOver renames a file, in the place of one that has the new name. For what may be replaced, never for messages.
func (r *Root) MoveOver(old, new string) error {
	return r.do("rename", new, func() error { return r.root.Rename(old, new) })
}

// Publish writes a file under a temporary name, and then gives it its own: fs.ErrExist when that is taken. Whoever
// reads it sees all of it. The directory is to be synced.
func (r *Root) Publish(temp, name string, from io.Reader) error {
	if err := r.CreateFrom(temp, from); err != nil {
		return err
	}
	defer r.root.Remove(temp)
	return r.do("link", name, func() error { return r.root.Link(temp, name) })
}

// Move renames an entry: fs.ErrExist when the new name is taken. The caller holds
// the lock that guards the directory, so looking first is enough.
func (r *Root) Move(old, new string) error {
	return r.do("rename", old, func() error {
		if taken, err := r.Exists(new); err != nil {
			return err
		} else if taken {
			return r.pathError("rename", new, fs.ErrExist)
		}
		return r.root.Rename(old, new)
	})
}

// Remove removes a file or an empty directory; absent is fine.
func (r *Root) Remove(name string) error {
	err := r.do("remove", name, func() error { return r.root.Remove(name) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

const tempSuffix = ".tmp"

// Replace writes a small file in one step: readers see the old one or the new one.
// With sync it survives a power cut when Replace returns. A kill leaves a hidden
// file beside it, which Stale lists. For what may be replaced, never for messages.
func (r *Root) Replace(name string, data []byte, sync bool) error {
	dir, base := path.Split(name)
	temp := dir + "." + base + "." + rand.Text() + tempSuffix
	err := r.create(temp, sync, func(f *os.File) error { return r.Write(f, data) })
	if err == nil {
		err = r.MoveOver(temp, name)
	}
	if err != nil {
		r.root.Remove(temp)
		return fmt.Errorf("replace %s: %w", r.Join(name), err)
	}
	if sync {
		return r.Sync(path.Dir(name))
	}
	return nil
}

// WritePrivate writes a file of this user's, as Replace with sync does, in a directory that it makes and keeps to
// this user alone: the file gets the directory's rights. The directory itself may be a symbolic link.
func WritePrivate(file string, data []byte) error {
	dir, name := filepath.Split(file)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o700)); err != nil {
		return err
	}
	r, err := Open(dir, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	return r.Replace(name, data, true)
}

// RemoveAll removes a file, or a directory with what is in it; absent is fine.
func (r *Root) RemoveAll(name string) error {
	return r.do("remove", name, func() error { return r.root.RemoveAll(name) })
}

// Stale lists what was left in a directory before a point in time: files by a killed Replace, and directories that
// were to be renamed when they are whole (".x.making").
func (r *Root) Stale(dir string, before time.Time) (stale []string) {
	suffixes := map[fs.FileMode]string{0: tempSuffix, fs.ModeDir: ".making"}
	names, _ := r.Names(dir)
	for _, name := range names {
		info, err := r.root.Lstat(path.Join(dir, name))
		if err != nil || !strings.HasPrefix(name, ".") || !info.ModTime().Before(before) {
			continue
		}
		if suffix := suffixes[info.Mode().Type()]; suffix != "" && strings.HasSuffix(name, suffix) {
			stale = append(stale, path.Join(dir, name))
		}
	}
	return stale
}

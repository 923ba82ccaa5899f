// Package durable is a directory tree in which files appear whole or not at all.
//
// What may be relied on:
//
//   - No name leads out of the tree: it is an os.Root. Names have slashes, as in
//     "bob/inbox/new/x.json". A link is never opened; one on the way is followed
//     if it stays inside.
//   - Link and Move refuse to replace what is there: fs.ErrExist.
//   - New entries get the rights of the directory they are made in: 0700 and 0600
//     under any umask, with the group, its bits and the set-group-ID bit where the
//     directory has them, as in git's shared repositories; made by root, they belong
//     to its owner. (Windows has its own.)
//   - Nothing survives a power cut before the file was synced, and then its
//     directory. A sync that failed is never tried again on the same file: write
//     another.
//
// A Root may be used by several goroutines at once.
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

// Fault is asked in tests before each operation that does more than look; its error
// is the operation's (a write first writes half). name is below the root, that of an
// open file its path. It must be safe for concurrent use.
type Fault func(op, name string) error

// Root is the opened directory.
type Root struct {
	root  *os.Root
	path  string
	fault Fault
	below string // of one that Sub opened: its name in the first
}

// Open opens the directory at path, which may itself be a symbolic link. fault is
// nil but in tests.
func Open(path string, fault Fault) (*Root, error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotDirectory}
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Root{root: root, path: path, fault: fault}, nil
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

func (r *Root) refuse(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: r.Join(name), Err: err}
}

func (r *Root) ask(op, name string) error {
	if r.fault != nil {
		if !filepath.IsAbs(name) {
			name = path.Join(r.below, name)
		}
		if err := r.fault(op, name); err != nil {
			return &fs.PathError{Op: op, Path: name, Err: err}
		}
	}
	return nil
}

// Lstat describes an entry; a link is not followed.
func (r *Root) Lstat(name string) (fs.FileInfo, error) { return r.root.Lstat(name) }

// Exists reports whether there is an entry of that name, of whatever kind.
func (r *Root) Exists(name string) (bool, error) {
	_, err := r.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// IsDir is nil for a directory, ErrNotDirectory (wrapped) for anything else that
// is there or above it, a link to a directory too.
func (r *Root) IsDir(name string) error {
	info, err := r.root.Lstat(name)
	if err == nil && !info.IsDir() || errors.Is(err, syscall.ENOTDIR) {
		err = r.refuse("open", name, ErrNotDirectory)
	}
	return err
}

func (r *Root) openDir(name string) (*os.File, error) {
	if err := r.IsDir(name); err != nil {
		return nil, err
	}
	return r.root.OpenFile(name, os.O_RDONLY|noWait, 0)
}

// MkdirAll makes a directory and those above it that are missing.
func (r *Root) MkdirAll(name string) error {
	if err := r.IsDir(name); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	if parent := path.Dir(name); parent != "." {
		if err := r.MkdirAll(parent); err != nil {
			return err
		}
	}
	return r.Mkdir(name)
}

// Mkdir makes a directory in one that is there; one that exists is fine.
func (r *Root) Mkdir(name string) error {
	if err := r.ask("mkdir", name); err != nil {
		return err
	}
	err := r.root.Mkdir(name, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return r.IsDir(name)
	}
	if err != nil {
		return err
	}
	r.root.Chmod(name, 0o700) // a umask may have taken even the right to open it
	d, err := r.openDir(name)
	if err != nil {
		return err
	}
	defer d.Close()
	info, err := d.Stat()
	if err != nil {
		return err
	}
	return r.giveRights(d, info, path.Dir(name), 0o700)
}

// Names lists a directory, sorted; one that is absent is empty.
func (r *Root) Names(dir string) ([]string, error) {
	if err := r.ask("list", dir); err != nil {
		return nil, err
	}
	d, err := r.openDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if errors.Is(err, fs.ErrNotExist) { // removed since it was opened
		err = nil
	}
	slices.Sort(names)
	return names, err
}

// OpenFile opens a regular file with the flags of package os, and makes it where
// they say so. Links, FIFOs, sockets and devices are refused without waiting for
// anybody: ErrNotRegular. With os.O_CREATE an existing file gets its rights too,
// should its maker have been killed before that.
func (r *Root) OpenFile(name string, flag int) (*os.File, error) {
	if err := r.ask("open", name); err != nil {
		return nil, err
	}
	if flag&os.O_EXCL == 0 {
		// Looked at first: to open a FIFO or a device is to do something to it.
		info, err := r.root.Lstat(name)
		if err == nil && !info.Mode().IsRegular() {
			return nil, r.refuse("open", name, ErrNotRegular)
		}
		if err != nil && flag&os.O_CREATE == 0 {
			return nil, err
		}
	}
	f, err := r.root.OpenFile(name, flag|noWait, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = r.refuse("open", name, ErrNotRegular)
	}
	if err == nil && flag&os.O_CREATE != 0 {
		err = r.giveRights(f, info, path.Dir(name), 0o600)
	}
	if err != nil {
		f.Close()
		if flag&os.O_EXCL != 0 {
			r.root.Remove(name)
		}
		return nil, err
	}
	return f, nil
}

// Open opens a regular file for reading.
func (r *Root) Open(name string) (*os.File, error) { return r.OpenFile(name, os.O_RDONLY) }

// ReadFile reads a regular file of at most max bytes.
func (r *Root) ReadFile(name string, max int64) ([]byte, error) {
	f, err := r.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := r.ask("read", name); err != nil {
		return nil, err
	}
	var data bytes.Buffer
	data.Grow(4 << 10) // most files are read at once
	_, err = data.ReadFrom(io.LimitReader(f, max+1))
	if err == nil && int64(data.Len()) > max {
		return nil, r.refuse("read", name, ErrTooLarge)
	}
	return data.Bytes(), err
}

// Create writes a new file and syncs it: fs.ErrExist when the name is taken. Its
// name survives a power cut once its directory is synced. A file that could not be
// written whole is removed again.
func (r *Root) Create(name string, data []byte) error {
	return r.create(name, true, func(w io.Writer) error { return all(w.Write(data)) })
}

// CreateFrom is Create of what write writes.
func (r *Root) CreateFrom(name string, write func(io.Writer) error) error {
	return r.create(name, true, write)
}

func all(_ int, err error) error { return err }

// writer is an open file whose writes may fail in tests.
type writer struct {
	root *Root
	file *os.File
}

func (w writer) Write(p []byte) (int, error) { return len(p), w.root.Write(w.file, p) }

func (r *Root) create(name string, sync bool, write func(io.Writer) error) error {
	f, err := r.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	if err = write(writer{r, f}); err == nil && sync {
		err = r.SyncFile(f)
	}
	if err = cmp.Or(err, f.Close()); err != nil {
		r.root.Remove(name)
	}
	return err
}

// Write writes all of data to an open file, or says why not.
func (r *Root) Write(f *os.File, data []byte) error {
	if err := r.ask("write", f.Name()); err != nil {
		f.Write(data[:len(data)/2])
		return err
	}
	_, err := f.Write(data)
	return err
}

// SyncFile makes what was written to f survive a power cut.
func (r *Root) SyncFile(f *os.File) error {
	if err := r.ask("fsync", f.Name()); err != nil {
		return err
	}
	return f.Sync()
}

// Sync makes the entries of a directory survive a power cut.
func (r *Root) Sync(dir string) error {
	if err := r.ask("fsync directory", dir); err != nil {
		return err
	}
	d, err := r.openDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	err = syncDirectory(d)
	_, e := d.Stat() // on an xfs that has shut itself down the sync succeeds and this fails
	return cmp.Or(err, e)
}

// Link gives a file a second name: fs.ErrExist when that is taken.
func (r *Root) Link(old, new string) error {
	if err := r.ask("link", new); err != nil {
		return err
	}
	return r.root.Link(old, new)
}

// Move renames an entry: fs.ErrExist when the new name is taken. Whoever moves
// into a directory holds the lock that guards it, so that looking first is enough.
func (r *Root) Move(old, new string) error {
	if err := r.ask("rename", old); err != nil {
		return err
	}
	if taken, err := r.Exists(new); err != nil {
		return err
	} else if taken {
		return &os.LinkError{Op: "rename", Old: old, New: new, Err: fs.ErrExist}
	}
	return r.root.Rename(old, new)
}

// Remove removes a file or an empty directory; absent is fine.
func (r *Root) Remove(name string) error {
	if err := r.ask("remove", name); err != nil {
		return err
	}
	err := r.root.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Replace writes a small file in one step: readers see the old one or the new one.
// With sync it survives a power cut when Replace returns. A kill leaves a hidden
// file beside it, which Stale lists. For what may be replaced, never for messages.
func (r *Root) Replace(name string, data []byte, sync bool) error {
	dir, base := path.Split(name)
	temp := dir + "." + base + "." + rand.Text() + tempEnd
	err := r.create(temp, sync, func(w io.Writer) error { return all(w.Write(data)) })
	if err == nil {
		err = r.ask("rename", name)
	}
	if err == nil {
		err = r.root.Rename(temp, name)
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

const tempEnd = ".tmp"

// Stale lists the files of a directory that a killed Replace left there, those
// that nobody touched since before.
func (r *Root) Stale(dir string, before time.Time) []string {
	names, _ := r.Names(dir)
	var stale []string
	for _, name := range names {
		if !strings.HasPrefix(name, ".") || !strings.HasSuffix(name, tempEnd) {
			continue
		}
		name = path.Join(dir, name)
		if info, err := r.root.Lstat(name); err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			stale = append(stale, name)
		}
	}
	return stale
}

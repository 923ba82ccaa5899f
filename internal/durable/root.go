// Package durable is a directory tree in which files appear whole or not at all.
//
//   - Names are relative, with slashes ("bob/inbox/new/x.json"), and cannot leave the tree: it is an os.Root.
//     A symbolic link is never opened; in the middle of a path it is followed if it stays inside the tree.
//   - Opening never waits, whatever is in a file's place or takes it meanwhile.
//   - Create, Publish and Move never replace a file: they return fs.ErrExist.
//   - New entries are for one user: 0700 or 0600 under any umask. What root makes belongs to its directory's owner, so
//     sudo and root in a container leave nothing that the owner cannot use. Windows has rights of its own.
//   - A file survives a power cut once it and then its directory are synced. After a failed sync the same file is
//     never synced again: the caller writes another.
package durable

import (
	"bytes"
	"cmp"
	"context"
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
	"sync"
	"syscall"
	"time"
)

// Errors that callers check for, besides those of io/fs.
var (
	ErrNotRegular   = errors.New("is not a regular file")
	ErrNotDirectory = errors.New("is not a directory (links are not followed)")
	ErrTooLarge     = errors.New("file too large")
)

// Fault lets a test fail an operation: it is called before each one, and its error becomes the operation's. name is
// relative to the outermost root; for an open file it is the file's path.
type Fault func(op, name string) error

// Root is an open directory. It is safe for concurrent use.
type Root struct {
	root  *os.Root
	path  string
	fault Fault
	below string // the name of a Sub in the outermost root
}

// faults are those of FailNext, by path.
var faults sync.Map

// FailNext lets a test fail operations of the root that is opened next at path, also behind a package that opens roots
// itself.
func FailNext(path string, fault Fault) { faults.Store(path, fault) }

// Open opens the directory at path, which may itself be a symbolic link.
func Open(path string) (*Root, error) {
	fault, _ := faults.LoadAndDelete(path)
	f, _ := fault.(Fault)
	return OpenFaulty(path, f)
}

// OpenFaulty is Open for a test: fault may be nil.
func OpenFaulty(path string, fault Fault) (*Root, error) {
	root, err := os.OpenRoot(path + here)
	if isNotDirectory(err) {
		err = ErrNotDirectory
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	if err != nil {
		err = &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &Root{root: root, path: path, fault: fault}, err
}

// Sub opens a subdirectory as a root of its own; it refuses a link.
func (r *Root) Sub(name string) (*Root, error) {
	if err := r.IsDir(name); err != nil {
		return nil, err
	}
	root, err := r.root.OpenRoot(name + here)
	if isNotDirectory(err) {
		return nil, r.pathError("open", name, ErrNotDirectory)
	}
	if err != nil {
		return nil, r.withFullPath(err)
	}
	return &Root{root, r.Join(name), r.fault, path.Join(r.below, name)}, nil
}

// Close closes the directory.
func (r *Root) Close() error { return r.root.Close() }

// Path is the path with which the directory was opened.
func (r *Root) Path() string { return r.path }

// Join returns the path of an entry, for people and other programs.
func (r *Root) Join(name string) string { return filepath.Join(r.path, filepath.FromSlash(name)) }

func (r *Root) pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: r.Join(name), Err: err}
}

// withFullPath completes the relative paths in an error of package os.
func (r *Root) withFullPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		if p.Path = filepath.Clean(p.Path); !filepath.IsAbs(p.Path) { // an open "." is called ROOT/.
			p.Path = r.Join(p.Path)
		}
	} else if l, ok := errors.AsType[*os.LinkError](err); ok {
		l.Old, l.New = r.Join(l.Old), r.Join(l.New)
	}
	return err
}

// do runs an operation, unless a test makes it fail.
func (r *Root) do(op, name string, operation func() error) error {
	if r.fault != nil {
		if !filepath.IsAbs(name) {
			name = path.Join(r.below, name)
		}
		if err := r.fault(op, name); err != nil {
			return &fs.PathError{Op: op, Path: name, Err: err}
		}
	}
	return r.withFullPath(operation())
}

// Lstat describes an entry without following a link.
func (r *Root) Lstat(name string) (fs.FileInfo, error) {
	info, err := r.root.Lstat(name)
	return info, r.withFullPath(err)
}

// Exists reports whether there is an entry of that name, of any kind.
func (r *Root) Exists(name string) (bool, error) {
	_, err := r.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	return err == nil, err
}

// IsDir returns nil for a directory, and ErrNotDirectory (wrapped) if the entry or a parent is something else, such as
// a link to a directory.
func (r *Root) IsDir(name string) error {
	info, err := r.Lstat(name)
	if err == nil && !info.IsDir() || isNotDirectory(err) {
		return r.pathError("open", name, ErrNotDirectory)
	}
	return err
}

// isNotDirectory reports whether an element of the path is not a directory. Windows also says ENOTDIR for a missing
// one.
func isNotDirectory(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, fs.ErrNotExist)
}

func (r *Root) openDir(name string) (*os.File, error) {
	if err := r.IsDir(name); err != nil {
		return nil, err
	}
	d, err := r.root.OpenFile(name, os.O_RDONLY|dirOnly, 0)
	if isNotDirectory(err) {
		err = r.pathError("open", name, ErrNotDirectory)
	}
	return d, err
}

// MkdirAll makes a directory and its missing parents.
func (r *Root) MkdirAll(name string) error {
	err := r.Mkdir(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = r.MkdirAll(path.Dir(name)); err == nil {
			err = r.Mkdir(name)
		}
	}
	return err
}

// Mkdir makes a directory; it may exist already, its parent must.
func (r *Root) Mkdir(name string) error {
	if err := r.IsDir(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := r.do("mkdir", name, func() error { return r.root.Mkdir(name, 0o700) })
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	isNew := err == nil
	r.root.Chmod(name, 0o700) // under a umask of 0777 it could not be opened
	d, err := r.openDir(name)
	if err != nil {
		return err
	}
	defer d.Close()
	if err = r.setPermissions(d, path.Dir(name)); err != nil && isNew { // others could not open it
		r.root.Remove(name)
	}
	return err
}

// Names lists a directory, sorted. A missing directory is empty.
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
	if errors.Is(err, fs.ErrNotExist) { // perhaps removed while it was read
		return nil, nil
	}
	return names, err
}

// OpenFile opens a regular file with flags of package os. Anything else is ErrNotRegular and stays unopened, since
// opening a FIFO or a device has effects, unless it takes the file's place in that moment. With os.O_CREATE it also
// sets the permissions of an existing file, whose creator may have been killed before it did.
func (r *Root) OpenFile(name string, flag int) (f *os.File, err error) {
	err = r.do("open", name, func() error {
		f, err = r.openFile(name, flag)
		if failed, ok := errors.AsType[*fs.PathError](err); ok {
			failed.Path = name
		}
		return err
	})
	if err == nil && flag&os.O_CREATE != 0 {
		if err = r.setPermissions(f, path.Dir(name)); err != nil {
			f.Close()
			if flag&os.O_EXCL != 0 { // it is new, and others could not open it
				r.root.Remove(name)
			}
		}
	}
	return f, err
}

func (r *Root) openFile(name string, flag int) (*os.File, error) {
	if flag&os.O_EXCL != 0 {
		return OpenIn(r.root, name, flag, 0o600)
	}
	dir := r.root
	if above, base := path.Split(name); above != "" { // every look through a path opens each of its directories
		var err error
		if dir, err = r.root.OpenRoot(above); err != nil {
			return nil, err
		}
		defer dir.Close()
		name = base
	}
	info, err := dir.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Err: ErrNotRegular}
	}
	if err != nil && flag&os.O_CREATE == 0 {
		return nil, err
	}
	return OpenIn(dir, name, flag, 0o600)
}

// regular returns a file that was opened with NoWait, unless it is not a regular one: then it is closed, and the error
// is ErrNotRegular (wrapped).
func regular(f *os.File, err error) (*os.File, error) {
	isSpecial := errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.EISDIR) // a socket, a FIFO to write to, a directory
	if failed, ok := errors.AsType[*fs.PathError](err); ok && isSpecial {
		failed.Err = ErrNotRegular
	}
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, cmp.Or(err, error(&fs.PathError{Op: "open", Path: f.Name(), Err: ErrNotRegular}))
	}
	return f, nil
}

// OpenIn opens a regular file as dir.OpenFile does, and never waits for what has taken its place.
func OpenIn(dir *os.Root, name string, flag int, perm fs.FileMode) (*os.File, error) {
	return regular(dir.OpenFile(name, flag|NoWait, perm))
}

// ReadIn reads a regular file of at most max bytes as OpenIn opens it.
func ReadIn(dir *os.Root, name string, max int64) ([]byte, error) {
	f, err := OpenIn(dir, name, os.O_RDONLY, 0)
	return readAll(f, err, max)
}

// OpenRegular opens a regular file anywhere, through links too, and never waits for what has taken its place.
func OpenRegular(path string, flag int) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	return regular(os.OpenFile(path, flag|NoWait, 0o600))
}

// ReadRegular reads a regular file anywhere, through links too, of at most max bytes.
func ReadRegular(path string, max int64) ([]byte, error) {
	f, err := OpenRegular(path, os.O_RDONLY)
	return readAll(f, err, max)
}

// readAll reads and closes a file of at most max bytes.
func readAll(f *os.File, err error, max int64) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	buf := bytes.NewBuffer(make([]byte, 0, min(info.Size(), max)+bytes.MinRead)) // it is read at once
	if _, err = buf.ReadFrom(io.LimitReader(f, max+1)); int64(buf.Len()) > max {
		return nil, &fs.PathError{Op: "read", Path: f.Name(), Err: ErrTooLarge}
	}
	return buf.Bytes(), err
}

// Open opens a regular file for reading.
func (r *Root) Open(name string) (*os.File, error) { return r.OpenFile(name, os.O_RDONLY) }

// ReadFile reads a regular file of at most max bytes.
func (r *Root) ReadFile(name string, max int64) (data []byte, err error) {
	f, err := r.Open(name)
	if err != nil {
		return nil, err
	}
	err = r.do("read", name, func() error {
		data, err = readAll(f, nil, max)
		return err
	})
	f.Close() // also if a fault has kept it from being read
	return data, err
}

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
		d, err := r.openDir(dir)
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
	return r.do("rename", new, func() error { return r.root.Rename(old, new) })
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
	from, err := r.root.OpenFile(path.Dir(old), os.O_RDONLY|dirOnly, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := r.root.OpenFile(path.Dir(new), os.O_RDONLY|dirOnly, 0)
	if err != nil {
		return err
	}
	defer to.Close()
	switch err := renameIn(from, path.Base(old), to, path.Base(new)); err {
	case nil:
		return nil
	case syscall.EINVAL, syscall.ENOSYS, syscall.ENOTSUP:
		return errors.ErrUnsupported
	default:
		return &os.LinkError{Op: "rename", Old: old, New: new, Err: err}
	}
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

// Adopt gives an open file, whose name is old, a second name, as if it had been created there: it is synced and gets the
// permissions of a new entry. After a failed sync it has the second name nevertheless, which tells the next caller not
// to sync it again. errors.ErrUnsupported: the file system has no second names, or somebody else may change the file,
// under a name that it has already.
func (r *Root) Adopt(f *os.File, old, new string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !isOnlyOurs(info) {
		return r.pathError("link", new, errors.ErrUnsupported)
	}
	if err := r.setPermissions(f, path.Dir(new)); err != nil {
		return err
	}
	syncErr := r.SyncFile(f)
	err = r.do("link", new, func() error { return r.root.Link(old, new) })
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EXDEV) {
		err = r.pathError("link", new, errors.ErrUnsupported)
	}
	return cmp.Or(syncErr, err)
}

// Remove removes a file or an empty directory, if there is one.
func (r *Root) Remove(name string) error {
	err := r.do("remove", name, func() error { return r.root.Remove(name) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ReadUntil returns a reader of r that fails once the context has ended.
func ReadUntil(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
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

// RemoveAll removes an entry and everything below it, if there is one.
func (r *Root) RemoveAll(name string) error {
	return r.do("remove", name, func() error { return r.root.RemoveAll(name) })
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

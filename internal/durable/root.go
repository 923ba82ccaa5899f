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
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
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
	kept  directories
}

// Open opens the directory at path, which may itself be a symbolic link.
func Open(path string) (*Root, error) { return OpenFaulty(path, nil) }

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
	return &Root{root: root, path: r.Join(name), fault: r.fault, below: path.Join(r.below, name)}, nil
}

// Close closes the directory.
func (r *Root) Close() error {
	r.kept.close()
	return r.root.Close()
}

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
		if name = filepath.Clean(name); !filepath.IsAbs(name) { // that of an open file has more than one dot
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
	var info fs.FileInfo
	err := r.above(name, func(dir *os.Root, base string) (err error) {
		info, err = dir.Lstat(base)
		return err
	})
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
	if name == "." { // it is open
		return nil
	}
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

func (r *Root) openDirectory(name string) (d *os.File, err error) {
	err = r.above(name, func(dir *os.Root, base string) error {
		if info, err := dir.Lstat(base); err != nil {
			return err
		} else if !info.IsDir() {
			return syscall.ENOTDIR
		}
		d, err = dir.OpenFile(base, os.O_RDONLY|dirOnly|NoWait, 0)
		return err
	})
	if isNotDirectory(err) {
		err = ErrNotDirectory
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	if err != nil {
		return nil, r.pathError("open", name, err)
	}
	return d, nil
}

// above calls f with the directory that an entry is in. Every look through a path opens each of its directories, so some
// stay open.
func (r *Root) above(name string, f func(dir *os.Root, base string) error) error {
	dir, base := path.Split(name)
	if dir == "" {
		return f(r.root, base)
	}
	above, isKept, err := r.kept.open(r, dir)
	if err == nil {
		err = f(above, base)
		if !isKept {
			above.Close()
		}
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		failed.Path = name
	}
	return err
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
	d, err := r.openDirectory(name)
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
func (r *Root) Names(dir string) (names []string, err error) { return r.SomeNames(dir, -1) }

// SomeNames is Names for at most so many, whichever these are: what a large directory costs too. -1: all.
func (r *Root) SomeNames(dir string, most int) (names []string, err error) {
	err = r.do("list", dir, func() error {
		d, err := r.openDirectory(dir)
		if err != nil {
			return err
		}
		defer d.Close()
		if names, err = d.Readdirnames(most); err == io.EOF { // it is empty
			err = nil
		}
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

func (r *Root) openFile(name string, flag int) (f *os.File, err error) {
	err = r.above(name, func(dir *os.Root, base string) error {
		if flag&os.O_EXCL != 0 {
			f, err = OpenIn(dir, base, flag, 0o600)
			return err
		}
		info, err := dir.Lstat(base)
		if err == nil && !info.Mode().IsRegular() {
			return &fs.PathError{Op: "open", Err: ErrNotRegular}
		}
		if err != nil && flag&os.O_CREATE == 0 {
			return err
		}
		f, err = OpenIn(dir, base, flag, 0o600)
		return err
	})
	return f, err
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

// Remove removes a file or an empty directory, if there is one.
func (r *Root) Remove(name string) error {
	err := r.do("remove", name, func() error {
		return r.above(name, func(dir *os.Root, base string) error { return dir.Remove(base) })
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// RemoveAll removes an entry and everything below it, if there is one.
func (r *Root) RemoveAll(name string) error {
	return r.do("remove", name, func() error { return r.root.RemoveAll(name) })
}

// IsAbsent reports whether an error says that a file does not exist, also because a parent is not a directory.
func IsAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

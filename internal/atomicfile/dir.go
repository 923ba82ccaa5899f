// Package atomicfile is an opened directory and the few things that a mailbox
// does in one: a file that appears whole or not at all, a move that replaces
// nothing, a listing that stays small.
//
// What may be relied on:
//
//   - A Dir is held by its descriptor: renaming the directory does not change
//     what a Dir refers to, and no name given to it climbs out, since every
//     name is one component and no symbolic link is followed.
//   - Publishing and moving refuse to replace: fs.ErrExist.
//   - New entries get the directory's rights: 0700 and 0600 under any umask,
//     with the group and its bits where the directory has them, as git's
//     shared repositories do; made by root, they belong to the directory's
//     owner.
//   - Nothing is durable before Sync of the file and then of its directory
//     returned nil. A Sync that failed is never tried again on the same file.
//
// A Dir may be used by several goroutines at once.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Op names a kind of file operation for a Fault.
type Op string

// The operations that a Fault is asked about.
const (
	OpOpen    Op = "open"
	OpCreate  Op = "create"
	OpRead    Op = "read"
	OpList    Op = "list"
	OpWrite   Op = "write"
	OpSync    Op = "fsync"
	OpLink    Op = "link"
	OpRename  Op = "rename"
	OpMkdir   Op = "mkdir"
	OpRemove  Op = "remove"
	OpSyncDir Op = "fsync directory"
)

// Fault is the fault-injecting layer of tests: asked before each operation, an
// error it returns is the operation's outcome (a write first writes half). It
// must be safe for concurrent use. Production has none.
type Fault func(op Op, name string) error

// Dir is an opened directory.
type Dir struct {
	file  *dirFile
	path  string
	fault Fault

	ownOnce  sync.Once
	ownValue owner

	rootOnce sync.Once // see Root
	root     *os.Root
	rootErr  error
}

// Open opens the directory at path. The path itself may be a symbolic link;
// nothing below is followed. fault is nil but in tests, and is handed on to
// every directory opened from this one.
func Open(path string, fault Fault) (*Dir, error) {
	if fault != nil {
		if err := fault(OpOpen, path); err != nil {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
	d := &Dir{path: path, fault: fault}
	if err := d.openPath(); err != nil {
		return nil, err
	}
	return d, nil
}

// Close lets go of the directory.
func (d *Dir) Close() error {
	err := d.file.Close()
	d.rootOnce.Do(func() { d.rootErr = fs.ErrClosed })
	if d.root != nil {
		err = errors.Join(err, d.root.Close())
	}
	return err
}

// own is what new entries get.
func (d *Dir) own() owner {
	d.ownOnce.Do(func() {
		d.ownValue = nobody
		if info, err := d.describe(); err == nil {
			d.ownValue = ownerOf(info)
		}
	})
	return d.ownValue
}

// Path is where the directory was when it was opened.
func (d *Dir) Path() string { return d.path }

// Fd is the directory's descriptor, which stays d's.
func (d *Dir) Fd() uintptr { return d.file.Fd() }

// Root is the directory as an os.Root, opened when first asked for; d closes
// it.
func (d *Dir) Root() (*os.Root, error) {
	d.rootOnce.Do(func() { d.root, d.rootErr = d.openRoot() })
	return d.root, d.rootErr
}

// Stat describes the opened directory itself.
func (d *Dir) Stat() (fs.FileInfo, error) { return d.file.Stat() }

// SameOwner reports whether new entries of both directories get the same
// owner, group and rights, so that they may share a file.
func (d *Dir) SameOwner(o *Dir) bool { return d.own() == o.own() }

func (d *Dir) check(op Op, name string) error {
	if d.fault != nil {
		if err := d.fault(op, filepath.Join(d.path, name)); err != nil {
			return d.wrap(string(op), name, err)
		}
	}
	return nil
}

func (d *Dir) wrap(op, name string, err error) error {
	path := d.path
	if name != "" {
		path = d.below(name)
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// ErrNotDirectory is returned for a symbolic link or a file where a directory
// is expected.
var ErrNotDirectory = errors.New("is not a directory (links are not followed)")

func oneComponent(name string) bool {
	if filepath.Separator == '/' {
		return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
	}
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00") && filepath.IsLocal(name) && filepath.Base(name) == name
}

// below is the path of what is called name in d, or of what lies further down:
// filepath.Join without cleaning.
func (d *Dir) below(name string) string {
	if strings.HasSuffix(d.path, string(filepath.Separator)) {
		return d.path + name
	}
	return d.path + string(filepath.Separator) + name
}

// Sub opens the directory name in d. A symbolic link is refused.
func (d *Dir) Sub(name string) (*Dir, error) {
	if !oneComponent(name) {
		return nil, d.wrap("open", name, fs.ErrInvalid)
	}
	if err := d.check(OpOpen, name); err != nil {
		return nil, err
	}
	s := &Dir{path: d.below(name), fault: d.fault}
	if err := d.openSub(name, s); err != nil {
		return nil, d.wrap("open", name, unwrap(err))
	}
	return s, nil
}

// Walk opens the directory several levels down, each as Sub does.
func (d *Dir) Walk(names ...string) (*Dir, error) {
	if d.fault == nil && len(names) > 1 && !slices.ContainsFunc(names, func(n string) bool { return !oneComponent(n) }) {
		if s, err := d.walkFast(names); err != errUnsupported {
			return s, err
		}
	}
	return d.walk((*Dir).Sub, names)
}

// Make opens the directory several levels down and makes what is missing.
func (d *Dir) Make(names ...string) (*Dir, error) { return d.walk((*Dir).makeSub, names) }

func (d *Dir) walk(step func(*Dir, string) (*Dir, error), names []string) (*Dir, error) {
	at := d
	for _, n := range names {
		next, err := step(at, n)
		if at != d {
			at.Close()
		}
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

func (d *Dir) makeSub(name string) (*Dir, error) {
	s, err := d.Sub(name)
	if !Absent(err) {
		return s, err
	}
	if err := d.Mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return d.Sub(name)
}

// Mkdir makes an empty directory with the rights that entries of d get.
func (d *Dir) Mkdir(name string) error {
	if !oneComponent(name) {
		return d.wrap("mkdir", name, fs.ErrInvalid)
	}
	if err := d.check(OpMkdir, name); err != nil {
		return err
	}
	if err := d.mkdir(name); err != nil {
		return d.wrap("mkdir", name, unwrap(err))
	}
	return nil
}

// Lstat describes an entry; a link is not followed.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) {
	if !oneComponent(name) {
		return nil, d.wrap("stat", name, fs.ErrInvalid)
	}
	return d.lstat(name)
}

// Has reports whether there is an entry of that name, of whatever kind.
func (d *Dir) Has(name string) (bool, error) {
	_, err := d.Lstat(name)
	if Absent(err) {
		return false, nil
	}
	return err == nil, err
}

// ErrNotRegular is returned for an entry that is no regular file. It was not
// opened, or not read.
var ErrNotRegular = errors.New("is not a regular file")

// ErrTooLarge is returned by ReadFile for a file over the limit.
var ErrTooLarge = errors.New("file too large")

// Open opens a regular file for reading; links, FIFOs, sockets and devices are
// refused without waiting for anybody.
func (d *Dir) Open(name string) (*os.File, error) {
	if !oneComponent(name) {
		return nil, d.wrap("open", name, fs.ErrInvalid)
	}
	if err := d.check(OpOpen, name); err != nil {
		return nil, err
	}
	// Looked at before: to open a FIFO or a device is to do something to it.
	if info, err := d.lstat(name); err != nil {
		return nil, d.wrap("open", name, unwrap(err))
	} else if !info.Mode().IsRegular() {
		return nil, d.wrap("open", name, ErrNotRegular)
	}
	f, err := d.openFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, d.wrap("stat", name, unwrap(err))
	}
	if !info.Mode().IsRegular() {
		f.Close()
		return nil, d.wrap("open", name, ErrNotRegular)
	}
	return f, nil
}

// ReadFile reads a regular file of at most max bytes.
func (d *Dir) ReadFile(name string, max int) ([]byte, error) {
	if !oneComponent(name) {
		return nil, d.wrap("open", name, fs.ErrInvalid)
	}
	for _, op := range []Op{OpOpen, OpRead} {
		if err := d.check(op, name); err != nil {
			return nil, err
		}
	}
	// Looked at before: to open a FIFO or a device is to do something to it.
	size, err := d.size(name)
	if err != nil {
		return nil, d.wrap("open", name, err)
	}
	if size > int64(max) {
		return nil, d.wrap("read", name, ErrTooLarge)
	}
	f, err := d.openRead(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// A read that does not fill the buffer met the end: one call, as a rule.
	b := make([]byte, size+1)
	n := 0
	for {
		m, err := f.Read(b[n:])
		n += m
		if n > max {
			return nil, d.wrap("read", name, ErrTooLarge)
		}
		if err == io.EOF || err == nil && n < len(b) {
			return b[:n], nil
		}
		if err != nil {
			return nil, d.wrap("read", name, unwrap(err))
		}
		b = append(b, make([]byte, len(b))...)
	}
}

// Append opens a file for appending and reading, and makes it when absent.
func (d *Dir) Append(name string) (*os.File, error) {
	if !oneComponent(name) {
		return nil, d.wrap("open", name, fs.ErrInvalid)
	}
	if err := d.check(OpCreate, name); err != nil {
		return nil, err
	}
	f, err := d.openFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := d.own().fixRegular(f); err != nil {
		f.Close()
		return nil, d.wrap("open", name, unwrap(err))
	}
	return f, nil
}

// Write writes b to a file that this package opened, all of it or an error.
func (d *Dir) Write(f *os.File, b []byte) (int, error) {
	if err := d.check(OpWrite, f.Name()); err != nil {
		n, _ := f.Write(b[:len(b)/2])
		return n, err
	}
	return f.Write(b)
}

// SyncFile makes what was written to f durable. Never call it again on the
// same file after an error.
func (d *Dir) SyncFile(f *os.File) error {
	if err := d.check(OpSync, f.Name()); err != nil {
		return err
	}
	return f.Sync()
}

// Sync makes the directory's entries durable.
func (d *Dir) Sync() error {
	if err := d.check(OpSyncDir, ""); err != nil {
		return err
	}
	return d.syncDir()
}

// Remove removes an entry; absent is fine.
func (d *Dir) Remove(name string) error {
	if !oneComponent(name) {
		return d.wrap("remove", name, fs.ErrInvalid)
	}
	if err := d.check(OpRemove, name); err != nil {
		return err
	}
	if err := d.remove(name); err != nil && !Absent(err) {
		return d.wrap("remove", name, unwrap(err))
	}
	return nil
}

// Names calls f with the names in the directory, some hundreds at a time, in
// no order, until f returns false. The slice is good during the call. Who keeps
// one name for long should clone it: names of one call may share their memory.
func (d *Dir) Names(f func([]string) bool) error {
	if err := d.check(OpList, ""); err != nil {
		return err
	}
	if err := d.list(f); err != nil && !Absent(err) {
		return d.wrap("list", "", unwrap(err))
	}
	return nil // not there: removed since it was opened, so it was empty
}

// Move renames from's entry name to to's entry as, in one step that refuses to
// replace: fs.ErrExist when as is taken.
func Move(from *Dir, name string, to *Dir, as string) error {
	if !oneComponent(name) || !oneComponent(as) {
		return from.wrap("rename", name, fs.ErrInvalid)
	}
	if err := from.check(OpRename, name); err != nil {
		return err
	}
	err := renameNoReplace(from, name, to, as)
	if errors.Is(err, errUnsupported) {
		// No such call here. Whoever moves holds the lock of the place, so
		// looking first is sound against atm itself.
		if has, e := to.Has(as); e != nil {
			err = e
		} else if has {
			err = fs.ErrExist
		} else {
			err = renameReplace(from, name, to, as)
		}
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: filepath.Join(from.path, name), New: filepath.Join(to.path, as), Err: unwrap(err)}
	}
	return nil
}

var errUnsupported = errors.New("unsupported")

func unwrap(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	var se *os.SyscallError
	switch {
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	case errors.As(err, &se):
		return se.Err
	}
	return err
}

var replacing atomic.Int64 // tells apart what one process replaces at once

// Replace writes a small file in one step: readers see the old one or the new
// one. With sync it is durable when Replace returns. For what may be replaced,
// never for messages.
func (d *Dir) Replace(name string, data []byte, sync bool) error {
	if !oneComponent(name) {
		return d.wrap("create", name, fs.ErrInvalid)
	}
	if err := d.check(OpCreate, name); err != nil {
		return err
	}
	tmp := fmt.Sprintf(".%s.%d.%d", name, os.Getpid(), replacing.Add(1))
	d.remove(tmp)
	f, err := d.openFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer d.remove(tmp)
	if err = d.own().fixFile(f); err == nil {
		_, err = d.Write(f, data)
	}
	if err == nil && sync {
		err = d.SyncFile(f)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = d.check(OpRename, name)
	}
	if err == nil {
		if err = renameReplace(d, tmp, d, name); err != nil {
			err = d.wrap("rename", tmp, unwrap(err))
		}
	}
	if err == nil && sync {
		err = d.Sync()
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", filepath.Join(d.path, name), err)
	}
	return nil
}

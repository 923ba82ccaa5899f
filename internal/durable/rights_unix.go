//go:build unix

package durable

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// NoWait is the flag with which opening a FIFO or a device does not wait.
const NoWait = syscall.O_NONBLOCK

// Nothing but a directory is opened with the flag dirOnly, or with here at the end of its path, so nothing waits.
const (
	dirOnly = syscall.O_DIRECTORY
	here    = "/."
)

// mostKept is how many directories of a root stay open: a command works in a few, and a process may open 1,024 files.
const mostKept = 96

func syncDirectory(d *os.File) error { return d.Sync() }

// setPermissions gives a file or directory to its owner alone. What root makes belongs to the owner of its directory, who
// could not use it otherwise: with sudo, and in a container.
func (r *Root) setPermissions(f *os.File, dir string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	is, me := info.Sys().(*syscall.Stat_t), os.Geteuid()
	isOthers := me != 0 && int(is.Uid) != me
	isLinked := !info.IsDir() && is.Nlink > 1 // it has another name, perhaps outside the tree
	if isOthers || isLinked {
		return nil
	}
	if me == 0 {
		err = r.giveToOwner(f, is, dir)
	}
	mode := fs.FileMode(0o600)
	if info.IsDir() {
		mode = 0o700
	}
	if err == nil && info.Mode().Perm() != mode {
		err = f.Chmod(mode)
	}
	return err
}

// giveToOwner gives a new file of root's to the owner of its directory.
func (r *Root) giveToOwner(f *os.File, is *syscall.Stat_t, dir string) error {
	return r.above(path.Join(dir, "x"), func(above *os.Root, _ string) error {
		parent, err := above.Stat(".")
		if err != nil {
			return err
		}
		if of := parent.Sys().(*syscall.Stat_t); is.Uid != of.Uid {
			return f.Chown(int(of.Uid), int(of.Gid))
		}
		return nil
	})
}

// OwnerCanRead reports whether a directory's owner can read the files that this process makes in it.
func (r *Root) OwnerCanRead(dir string) bool {
	info, err := r.root.Stat(dir)
	me := os.Geteuid()
	return err != nil || me == 0 || me == *Owner(info)
}

// Writable returns nil if this process may make entries in a directory.
func (r *Root) Writable(dir string) error {
	err := r.IsDir(dir)
	if err == nil {
		if err = syscall.Access(r.Join(dir), 3); err != nil { // W_OK|X_OK
			err = r.pathError("write to", dir, err)
		}
	}
	return err
}

// Names returns how many names a file has; on Windows always 1.
func Names(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Nlink) }

// Owner returns the user ID of a file's owner; nil on Windows.
func Owner(info fs.FileInfo) *int {
	uid := int(info.Sys().(*syscall.Stat_t).Uid)
	return &uid
}

// ID tells a file from every other that is there at the same time; "" on Windows.
func ID(info fs.FileInfo) string {
	st := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

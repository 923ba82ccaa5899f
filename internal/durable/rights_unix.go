//go:build unix

package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// NoWait is the flag with which opening a FIFO or a device does not wait.
const NoWait = syscall.O_NONBLOCK

// Nothing but a directory is opened with the flag dirOnly, or with here at the end of its path, so nothing waits.
const (
	dirOnly = syscall.O_DIRECTORY
	here    = "/."
)

func syncDirectory(d *os.File) error { return d.Sync() }

// setPermissions gives a file or directory the owner, group and mode of a new entry in dir.
func (r *Root) setPermissions(f *os.File, dir string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	parent, err := r.root.Stat(dir)
	if err != nil {
		return err
	}
	is, of, me := info.Sys().(*syscall.Stat_t), parent.Sys().(*syscall.Stat_t), os.Geteuid()
	isOthers := me != 0 && int(is.Uid) != me
	isLinked := !info.IsDir() && is.Nlink > 1 // it has another name, perhaps outside the tree
	if isOthers || isLinked {
		return nil
	}
	mode, shared := fs.FileMode(0o600), parent.Mode()&0o060
	if info.IsDir() {
		mode, shared = 0o700, parent.Mode()&(0o070|fs.ModeSetgid)
	}
	isSameGroup := is.Gid == of.Gid
	switch {
	case me == 0 && !(isSameGroup && is.Uid == of.Uid):
		err = f.Chown(int(of.Uid), int(of.Gid))
		isDenied := errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL)
		if isDenied && isSameGroup && shared&0o040 != 0 { // root of a container only: others read it as the group
			err = nil
		}
	case me != 0 && !isSameGroup && shared&0o070 != 0:
		err = f.Chown(-1, int(of.Gid))
		if errors.Is(err, fs.ErrPermission) { // not a member of the group: keep our own group out too
			shared, err = 0, nil
		}
	}
	if err == nil && info.Mode()&(fs.ModePerm|fs.ModeSetgid) != mode|shared {
		err = f.Chmod(mode | shared)
	}
	return err
}

// isOnlyOurs reports whether a file is this user's, or may be made so, and has one name only.
func isOnlyOurs(info fs.FileInfo) bool {
	is, me := info.Sys().(*syscall.Stat_t), os.Geteuid()
	return is.Nlink == 1 && (me == 0 || int(is.Uid) == me)
}

// OwnerCanRead reports whether a directory's owner can read the files that this process makes in it.
func (r *Root) OwnerCanRead(dir string) bool {
	info, err := r.root.Stat(dir)
	if err != nil {
		return true
	}
	of, me := info.Sys().(*syscall.Stat_t), os.Geteuid()
	if me == 0 || me == int(of.Uid) {
		return true
	}
	groups, _ := os.Getgroups()
	getsGroup := info.Mode()&fs.ModeSetgid != 0 || slices.Contains(append(groups, os.Getegid()), int(of.Gid))
	return getsGroup && info.Mode()&0o040 != 0
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

// HasName reports whether an open file has a name still; on Windows always.
func HasName(info fs.FileInfo) bool { return info.Sys().(*syscall.Stat_t).Nlink > 0 }

// DiskUse returns how many bytes of disk a file takes: few, if most of it is holes.
func DiskUse(info fs.FileInfo) int64 { return int64(info.Sys().(*syscall.Stat_t).Blocks) * 512 }

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

//go:build unix

package durable

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// noWait: should a FIFO have come where a file was seen, opening it waits for nobody.
const noWait = syscall.O_NONBLOCK

func syncDirectory(d *os.File) error { return d.Sync() }

// giveRights gives a file or directory the rights that a new one in dir has.
func (r *Root) giveRights(f *os.File, info fs.FileInfo, dir string, mode fs.FileMode) error {
	above, err := r.root.Stat(dir)
	if err != nil {
		return err
	}
	is, of := info.Sys().(*syscall.Stat_t), above.Sys().(*syscall.Stat_t)
	me := os.Geteuid()
	if me != 0 && int(is.Uid) != me || !info.IsDir() && is.Nlink > 1 {
		return nil // made by another user, or a link to some other file of ours
	}
	want := mode | above.Mode()&0o060
	if info.IsDir() {
		want = mode | above.Mode()&(0o070|fs.ModeSetgid)
	}
	uid, gid := -1, -1
	if me == 0 && is.Uid != of.Uid {
		uid = int(of.Uid)
	}
	if (me == 0 || want&0o070 != 0) && is.Gid != of.Gid {
		gid = int(of.Gid)
	}
	if uid >= 0 || gid >= 0 {
		err := f.Chown(uid, gid)
		if errors.Is(err, fs.ErrPermission) && uid < 0 {
			want = mode // not a member of the group: then not for our own either
		} else if err != nil {
			return err
		}
	}
	if info.Mode()&(fs.ModePerm|fs.ModeSetgid) != want {
		return f.Chmod(want)
	}
	return nil
}

// OwnerCanRead reports whether the owner of a directory could read a file that
// this process makes in it.
func (r *Root) OwnerCanRead(dir string) bool {
	info, err := r.root.Stat(dir)
	if err != nil {
		return true
	}
	of, me := info.Sys().(*syscall.Stat_t), os.Geteuid()
	if me == 0 || me == int(of.Uid) {
		return true
	}
	// The file is the group's only if we may give it to the group, or if it gets
	// there by itself.
	groups, _ := os.Getgroups()
	given := slices.Contains(append(groups, os.Getegid()), int(of.Gid)) || info.Mode()&fs.ModeSetgid != 0
	return given && info.Mode()&0o040 != 0
}

// Writable reports whether this process may make entries in a directory.
func (r *Root) Writable(dir string) bool {
	return syscall.Access(r.Join(dir), 3) == nil // W_OK|X_OK
}

// Owner is the user id of a file's owner, nil where the system has none.
func Owner(info fs.FileInfo) *int {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	uid := int(st.Uid)
	return &uid
}

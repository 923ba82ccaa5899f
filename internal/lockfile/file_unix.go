//go:build unix

package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Opened as flock needs it, no link followed, and no FIFO waited for; os adds
// O_CLOEXEC.
const openFlags = os.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// refusesLinks says that openFlags do.
const refusesLinks = true

// rights are what lock files of a directory get.
type rights struct {
	uid, gid int         // the directory's
	mode     fs.FileMode // 0600, and the group's bits where the directory has them
}

func rightsIn(dir fs.FileInfo) rights {
	r := rights{uid: -1, gid: -1, mode: 0o600}
	if st, ok := dir.Sys().(*syscall.Stat_t); ok {
		r.uid, r.gid = int(st.Uid), int(st.Gid)
		r.mode |= dir.Mode().Perm() & 0o060
	}
	return r
}

// mend gives a lock file its rights, under any umask, if it is ours.
func (d *Dir) mend(name string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	root := os.Geteuid() == 0
	if !ok || d.rights.uid < 0 || !root && int(st.Uid) != os.Geteuid() {
		return nil
	}
	want := d.rights.mode
	uid, gid := -1, -1
	if root && int(st.Uid) != d.rights.uid {
		uid = d.rights.uid
	}
	if (root || want&0o060 != 0) && int(st.Gid) != d.rights.gid {
		gid = d.rights.gid
	}
	if uid >= 0 || gid >= 0 {
		err := d.locks.Lchown(name, uid, gid)
		if errors.Is(err, fs.ErrPermission) && uid < 0 {
			want &^= 0o060 // not a member of the group: then not for our own group either
		} else if err != nil {
			return err
		}
	}
	if perm := info.Mode().Perm(); perm&want != want {
		return d.locks.Chmod(name, perm|want)
	}
	return nil
}

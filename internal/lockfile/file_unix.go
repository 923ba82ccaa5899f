//go:build unix

package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"sync"
)

// rights are what lock files of a directory get.
type rights struct {
	uid, gid int         // the directory's; -1: not known
	mode     fs.FileMode // 0600, and the group's bits where the directory has them
}

func rightsIn(dir *entry) rights {
	uid, gid := dir.owner()
	if uid < 0 {
		return rights{uid, gid, 0o600}
	}
	return rights{uid, gid, 0o600 | dir.perm()&0o060}
}

var effective struct {
	once sync.Once
	uid  int
}

// euid is asked once: nobody here changes it.
func euid() int {
	effective.once.Do(func() { effective.uid = os.Geteuid() })
	return effective.uid
}

// mend gives a lock file its rights, under any umask, if it is ours.
func (d *Dir) mend(name string, now *entry) error {
	hasUID, hasGID := now.owner()
	root := euid() == 0
	if d.rights.uid < 0 || !root && hasUID != euid() {
		return nil
	}
	want := d.rights.mode
	uid, gid := -1, -1
	if root && hasUID != d.rights.uid {
		uid = d.rights.uid
	}
	if (root || want&0o060 != 0) && hasGID != d.rights.gid {
		gid = d.rights.gid
	}
	if uid >= 0 || gid >= 0 {
		err := d.chown(name, uid, gid)
		if errors.Is(err, fs.ErrPermission) && uid < 0 {
			want &^= 0o060 // not a member of the group: then not for our own group either
		} else if err != nil {
			return err
		}
	}
	if perm := now.perm(); perm&want != want {
		return d.chmod(name, perm|want)
	}
	return nil
}

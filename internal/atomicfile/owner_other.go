//go:build unix && !linux

package atomicfile

import (
	"errors"
	"io/fs"
	"syscall"
)

func (o owner) fixDir(d *Dir, name string) error {
	info, err := d.root.Lstat(name)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if uid, gid, change := o.chown(int(st.Uid), int(st.Gid)); change {
		if err := d.root.Lchown(name, uid, gid); err != nil && !(errors.Is(err, fs.ErrPermission) && o.uid < 0) {
			return err
		}
	}
	if want := 0o700 | o.group; info.Mode().Perm() != want {
		return d.root.Chmod(name, want)
	}
	return nil
}

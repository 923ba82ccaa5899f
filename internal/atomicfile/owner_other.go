//go:build unix && !linux

package atomicfile

import (
	"errors"
	"io/fs"
)

func (o owner) fixDir(d *Dir, name string) error {
	info, err := d.root.Lstat(name)
	if err != nil {
		return err
	}
	if uid, gid, change := o.chown(info); change {
		if err := d.root.Lchown(name, uid, gid); err != nil && !(errors.Is(err, fs.ErrPermission) && o.uid < 0) {
			return err
		}
	}
	if want := 0o700 | o.group; info.Mode().Perm() != want {
		return d.root.Chmod(name, want)
	}
	return nil
}

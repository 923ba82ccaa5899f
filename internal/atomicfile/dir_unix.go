//go:build unix

package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

func (d *Dir) fd() int { return int(d.file.Fd()) }

func (d *Dir) openFile(name string, flag int, perm uint32) (*os.File, error) {
	wait := unix.O_NONBLOCK
	if flag&os.O_RDWR != 0 {
		wait = 0 // so opened, a FIFO has both ends
	}
	fd, err := d.openat(name, flag|wait, perm)
	if err != nil {
		return nil, err
	}
	if wait != 0 {
		// It was for the open alone; left on, it would put the file into the
		// poller.
		unix.SetNonblock(fd, false)
	}
	return os.NewFile(uintptr(fd), filepath.Join(d.path, name)), nil
}

// bare is a descriptor of a regular file that is read and closed at once: an
// os.File around it costs five system calls more.
type bare int

// openRead opens what was seen to be a regular file. Should it have been
// replaced by another kind since, a link is not followed and nothing is waited
// for; to ask what was opened would come too late to leave it alone.
func (d *Dir) openRead(name string) (bare, error) {
	fd, err := d.openat(name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	return bare(fd), err
}

func (f bare) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(f), b)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// Write writes all of b, or says why not.
func (f bare) Write(b []byte) (n int, err error) {
	for n < len(b) {
		m, err := unix.Write(int(f), b[n:])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return n, err
		case m == 0:
			return n, io.ErrUnexpectedEOF
		}
		n += m
	}
	return n, nil
}

func (f bare) Sync() error {
	for {
		if err := unix.Fsync(int(f)); err != unix.EINTR {
			return err
		}
	}
}

func (f bare) Close() error { return unix.Close(int(f)) }

// draftFile is the file of a Draft.
type draftFile = bare

func (d *Dir) openDraft(name string) (draftFile, error) {
	fd, err := d.openat(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return bare(fd), err
}

func (d *Dir) openat(name string, flag int, perm uint32) (int, error) {
	for {
		fd, err := unix.Openat(d.fd(), name, flag|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NOCTTY, perm)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			if err == unix.ELOOP || err == unix.EMLINK || err == unix.ENXIO || err == unix.EOPNOTSUPP {
				err2 := ErrNotRegular // a link, or a FIFO or socket nobody serves
				return -1, d.wrap("open", name, err2)
			}
			return -1, d.wrap("open", name, err)
		}
		return fd, nil
	}
}

// syncDir also asks the directory how it is: fsync of a directory on an xfs
// that has shut itself down returns success.
func (d *Dir) syncDir() error {
	if err := d.file.Sync(); err != nil {
		return err
	}
	_, err := d.file.Stat()
	return err
}

func (dr *Draft) link(to *Dir, as string) error {
	if dr.name == "" && !dr.unnamed() {
		return errUnsupported
	}
	var err error
	if dr.name == "" {
		err = dr.linkUnnamed(to, as)
	} else {
		err = unix.Linkat(dr.dir.fd(), dr.name, to.fd(), as, 0)
	}
	switch err {
	case unix.EPERM, unix.EOPNOTSUPP, unix.ENOSYS, unix.EMLINK, unix.ENOENT:
		if dr.name != "" && err != unix.ENOENT || dr.moved { // ENOENT: no /proc to link it by
			return errUnsupported
		}
	}
	return err
}

func renameReplace(from *Dir, name string, to *Dir, as string) error {
	return unix.Renameat(from.fd(), name, to.fd(), as)
}

var effective struct {
	once sync.Once
	uid  int
}

// euid is asked once: nobody here changes it. (sync.OnceValue would be made at
// every start.)
func euid() int {
	effective.once.Do(func() { effective.uid = os.Geteuid() })
	return effective.uid
}

// owner is what new entries of a directory get.
type owner struct {
	uid, gid int // -1: as they come
	group    fs.FileMode
}

var nobody = owner{uid: -1, gid: -1}

func ownerOf(info fs.FileInfo) owner {
	o := owner{uid: -1, gid: -1, group: info.Mode().Perm() & 0o070}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return o
	}
	root := euid() == 0
	if root {
		o.uid = int(st.Uid)
	}
	if o.group != 0 || root {
		o.gid = int(st.Gid)
	}
	return o
}

func (o owner) fixFile(f *os.File) error { return o.fixDraft(bare(f.Fd())) }

// fixRegular is fixFile for what may be no regular file: ErrNotRegular.
func (o owner) fixRegular(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return ErrNotRegular
	}
	return o.fix(bare(f.Fd()), &st)
}

func (o owner) fixDraft(f draftFile) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f), &st); err != nil {
		return err
	}
	return o.fix(f, &st)
}

// fix gives a file, which is as st says, the owner and rights that it is to have.
func (o owner) fix(f draftFile, st *unix.Stat_t) error {
	if euid() != 0 && int(st.Uid) != euid() {
		return nil // somebody else's, made with their rights
	}
	group := o.group & 0o060
	if uid, gid, change := o.chown(int(st.Uid), int(st.Gid)); change {
		err := unix.Fchown(int(f), uid, gid)
		if errors.Is(err, fs.ErrPermission) && o.uid < 0 {
			group = 0 // not a member of the group: then not for our own either
		} else if err != nil {
			return err
		}
	}
	if want := 0o600 | group; fs.FileMode(st.Mode)&0o777 != want {
		return unix.Fchmod(int(f), uint32(want))
	}
	return nil
}

// chown says whether what belongs to these is to be given away, and to whom
// (-1: stays).
func (o owner) chown(hasUID, hasGID int) (uid, gid int, change bool) {
	uid, gid = -1, -1
	if o.uid >= 0 && hasUID != o.uid {
		uid, change = o.uid, true
	}
	if o.gid >= 0 && hasGID != o.gid {
		gid, change = o.gid, true
	}
	return uid, gid, change
}

// Readable reports whether the owner of d could read a file that this process
// makes in it.
func (d *Dir) Readable() bool {
	info, err := d.describe()
	if err != nil {
		return true
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || euid() == 0 || int(st.Uid) == euid() {
		return true
	}
	if info.Mode().Perm()&0o040 == 0 {
		return false
	}
	// The file is the group's only if we may give it to the group, or if it
	// gets there by itself.
	if info.Mode()&fs.ModeSetgid != 0 || int(st.Gid) == os.Getegid() {
		return true
	}
	groups, err := os.Getgroups()
	return err != nil || slices.Contains(groups, int(st.Gid))
}

// Writable reports whether this process may make entries in d.
func (d *Dir) Writable() bool {
	err := unix.Faccessat(d.fd(), ".", unix.W_OK|unix.X_OK, 0)
	return err != unix.EACCES && err != unix.EROFS && err != unix.EPERM
}

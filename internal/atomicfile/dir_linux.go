package atomicfile

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// openUnnamed makes a file without a name: nothing is left of it after a
// crash, and linking it cannot replace anything.
func (d *Dir) openUnnamed() (draftFile, error) {
	if !d.unnamedIsSound() {
		return -1, errUnsupported
	}
	fd, err := unix.Openat(d.fd(), ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	switch err {
	case nil:
		return bare(fd), nil
	case unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOENT:
		// ENOENT and EISDIR: a kernel or file system older than O_TMPFILE.
		return -1, errUnsupported
	}
	return -1, err
}

func (dr *Draft) unnamed() bool { return true }

// throughProc says that descriptors cannot be linked: before Linux 6.10 that
// took a privilege.
var throughProc atomic.Bool

func (dr *Draft) linkUnnamed(to *Dir, as string) error {
	if !throughProc.Load() {
		err := unix.Linkat(int(dr.f), "", to.fd(), as, unix.AT_EMPTY_PATH)
		if err != unix.ENOENT && err != unix.EINVAL && err != unix.EPERM {
			return err
		}
	}
	err := unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(dr.f)), to.fd(), as, unix.AT_SYMLINK_FOLLOW)
	if err == nil {
		throughProc.Store(true)
	}
	return err
}

func renameNoReplace(from *Dir, name string, to *Dir, as string) error {
	err := unix.Renameat2(from.fd(), name, to.fd(), as, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL || err == unix.ENOSYS {
		return errUnsupported
	}
	return err
}

func flushHint(f draftFile) {
	unix.SyncFileRange(int(f), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
}

// On Linux a directory is its descriptor, and names go to the *at calls with
// O_NOFOLLOW: what os.Root does for one component, at one call a directory
// instead of a dozen. (`atm send` opens a dozen directories; with os.Root that
// was a fifth of its time.)

func (d *Dir) openPath() error {
	fd, err := openDir(unix.AT_FDCWD, d.path, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: d.path, Err: err}
	}
	d.file = newDirFile(fd)
	return nil
}

func (d *Dir) openSub(name string, s *Dir) error {
	fd, err := openDir(d.fd(), name, unix.O_NOFOLLOW)
	if err == unix.ENOTDIR || err == unix.ELOOP {
		return ErrNotDirectory
	}
	if err != nil {
		return err
	}
	s.file = newDirFile(fd)
	return nil
}

// dirFile is the descriptor of a directory. (An os.File around it costs a
// system call more to make.)
type dirFile struct {
	fd atomic.Int64

	once sync.Once
	was  unix.Stat_t // when it was first asked; zero: not known

	listing sync.Mutex // held during a listing
	listed  bool       // the descriptor is not at the beginning
}

// known is what fstat said when it was first asked: for what stays the same as
// long as the directory is open.
func (f *dirFile) known() *unix.Stat_t {
	f.once.Do(func() {
		if unix.Fstat(int(f.Fd()), &f.was) != nil {
			f.was = unix.Stat_t{}
		}
	})
	return &f.was
}

func newDirFile(fd int) *dirFile {
	f := &dirFile{}
	f.fd.Store(int64(fd))
	return f
}

// Fd is the descriptor; once closed, one that every call refuses.
func (f *dirFile) Fd() uintptr { return uintptr(f.fd.Load()) }

func (f *dirFile) Close() error {
	fd := f.fd.Swap(-1)
	if fd < 0 {
		return os.ErrClosed
	}
	return unix.Close(int(fd))
}

func (f *dirFile) Stat() (fs.FileInfo, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, err
	}
	return newInfo(".", &st), nil
}

func (f *dirFile) Sync() error {
	for {
		if err := unix.Fsync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}

// OpenPlain opens the directory at a path, which is not relative, if no part of
// it is a symbolic link; as is what the path is called from then on.
func OpenPlain(as, path string) (*Dir, error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return &Dir{path: as, file: newDirFile(fd)}, nil
	}
}

// describe says what the directory was when it was first asked.
func (d *Dir) describe() (fs.FileInfo, error) {
	st := d.file.known()
	if st.Ino == 0 {
		return d.file.Stat()
	}
	return newInfo(".", st), nil
}

// walkFast opens a directory several levels down in one call, none of the
// levels a link; errUnsupported where the kernel has no such call.
func (d *Dir) walkFast(names []string) (*Dir, error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	path := strings.Join(names, "/")
	for {
		fd, err := unix.Openat2(d.fd(), path, &how)
		switch err {
		case nil:
			return &Dir{path: d.below(path), fault: d.fault, file: newDirFile(fd)}, nil
		case unix.EINTR, unix.EAGAIN:
			continue
		case unix.ENOTDIR, unix.ELOOP:
			return nil, d.wrap("open", path, ErrNotDirectory)
		case unix.ENOENT, unix.EACCES:
			return nil, d.wrap("open", path, err)
		}
		return nil, errUnsupported
	}
}

func openDir(at int, name string, flag int) (fd int, err error) {
	for {
		fd, err = unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|flag, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// list lists the directory through its own descriptor where nobody else does so
// at the moment, since a listing has a place in it.
func (d *Dir) list(f func([]string) bool) error {
	if d.file.listing.TryLock() {
		defer d.file.listing.Unlock()
		if d.file.listed {
			if _, err := unix.Seek(d.fd(), 0, io.SeekStart); err != nil {
				return err
			}
		}
		d.file.listed = true
		return list(d.fd(), f)
	}
	fd, err := openDir(d.fd(), ".", 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return list(fd, f)
}

// maxEntry is the most bytes that getdents64 gives an entry.
const maxEntry = 280

// list lists a directory from where its descriptor is. Most directories here
// hold a handful of names: a large buffer, which must be cleared and for which
// the stack grows, waits until there are more.
func list(fd int, f func([]string) bool) error {
	var few [2 << 10]byte
	buf := few[:]
	var names []string
	for {
		n, err := unix.Getdents(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			return err
		}
		var end bool
		names, end = namesIn(names[:0], buf[:n])
		if len(names) > 0 && !f(names) || end {
			return nil
		}
		if len(buf) == len(few) && n > len(few)-maxEntry {
			buf = make([]byte, 32<<10)
		}
	}
}

// namesIn appends the names in what getdents64(2) returned: for each a number,
// an offset (8 bytes each), a length (2), a kind (1) and the name, which ends
// with a NUL. The names share one string.
//
// end says that nothing can follow: the last offset, which is where the next
// entry would be, is the largest there is. ext4 and btrfs end so, and need not be
// asked again.
func namesIn(names []string, b []byte) (out []string, end bool) {
	const entry = 56 // what that takes of a message, or more than of a short name
	if names == nil {
		names = make([]string, 0, 1+len(b)/entry)
	}
	text := string(b)
	for at := 0; at+19 < len(b); {
		size := int(binary.NativeEndian.Uint16(b[at+16:]))
		next := at + size
		if size < 20 || next > len(b) {
			break // not what a kernel says
		}
		name := text[at+19 : next]
		if i := strings.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		gone := binary.NativeEndian.Uint64(b[at:]) == 0 // the number of an entry that was removed
		if !gone && name != "." && name != ".." {
			names = append(names, name)
		}
		end = int64(binary.NativeEndian.Uint64(b[at+8:])) == math.MaxInt64
		at = next
	}
	return names, end
}

func (d *Dir) openRoot() (*os.Root, error) {
	if r, err := os.OpenRoot("/proc/self/fd/" + strconv.Itoa(d.fd())); err == nil {
		return r, nil
	}
	return os.OpenRoot(d.path) // no /proc here
}

func (d *Dir) mkdir(name string) error {
	if err := unix.Mkdirat(d.fd(), name, 0o700); err != nil {
		return err
	}
	info, err := d.lstat(name)
	if err != nil {
		return err
	}
	o := d.own()
	st := info.Sys().(*syscall.Stat_t)
	if uid, gid, change := o.chown(int(st.Uid), int(st.Gid)); change {
		err := unix.Fchownat(d.fd(), name, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, fs.ErrPermission) && o.uid < 0 {
			o.group = 0 // not a member of the group: then not for our own either
		} else if err != nil {
			return err
		}
	}
	if want := 0o700 | o.group; info.Mode().Perm() != want {
		// The set-group-ID bit that came from d stays: what people drop into
		// a shared team's directories gets its group by it.
		inherited := st.Mode & syscall.S_ISGID
		return unix.Fchmodat(d.fd(), name, uint32(want)|inherited, 0)
	}
	return nil
}

func (d *Dir) remove(name string) error {
	err := unix.Unlinkat(d.fd(), name, 0)
	if err == unix.EISDIR || err == unix.EPERM {
		if e := unix.Unlinkat(d.fd(), name, unix.AT_REMOVEDIR); e != unix.ENOTDIR {
			err = e
		}
	}
	return err
}

func (d *Dir) lstat(name string) (fs.FileInfo, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, d.wrap("stat", name, err)
		}
		return newInfo(name, &st), nil
	}
}

// size is that of a regular file, ErrNotRegular for what is none.
func (d *Dir) size(name string) (int64, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case st.Mode&unix.S_IFMT != unix.S_IFREG:
			return 0, ErrNotRegular
		}
		return st.Size, nil
	}
}

// info is what fstatat says of an entry.
type info struct {
	name string
	st   syscall.Stat_t
}

func newInfo(name string, st *unix.Stat_t) *info {
	return &info{name, syscall.Stat_t{
		Dev: st.Dev, Ino: st.Ino, Nlink: st.Nlink, Mode: st.Mode, Uid: st.Uid, Gid: st.Gid, Rdev: st.Rdev, Size: st.Size,
		Blksize: st.Blksize, Blocks: st.Blocks,
		Atim: syscall.Timespec(st.Atim), Mtim: syscall.Timespec(st.Mtim), Ctim: syscall.Timespec(st.Ctim),
	}}
}

func (i *info) Name() string       { return i.name }
func (i *info) Size() int64        { return i.st.Size }
func (i *info) ModTime() time.Time { return time.Unix(i.st.Mtim.Unix()) }
func (i *info) IsDir() bool        { return i.Mode().IsDir() }
func (i *info) Sys() any           { return &i.st }

func (i *info) Mode() fs.FileMode {
	m := fs.FileMode(i.st.Mode & 0o777)
	switch i.st.Mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		m |= fs.ModeDir
	case syscall.S_IFLNK:
		m |= fs.ModeSymlink
	case syscall.S_IFIFO:
		m |= fs.ModeNamedPipe
	case syscall.S_IFSOCK:
		m |= fs.ModeSocket
	case syscall.S_IFCHR:
		m |= fs.ModeDevice | fs.ModeCharDevice
	case syscall.S_IFBLK:
		m |= fs.ModeDevice
	}
	return m
}

// SameFile reports whether two descriptions, from here or from os, are of one
// file.
func SameFile(a, b fs.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, ok2 := b.Sys().(*syscall.Stat_t)
	return ok && ok2 && x.Dev == y.Dev && x.Ino == y.Ino
}

func (d *Dir) leads(path string, to fs.FileInfo, size int64) bool {
	was, ok := to.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	// Times are not asked for: who has asked makes the next write note a new one in
	// the inode, which takes as long as the rest of a short write.
	var now unix.Statx_t
	for {
		err := unix.Statx(d.fd(), path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_SIZE, &now)
		if err != unix.EINTR {
			return err == nil && unix.Mkdev(now.Dev_major, now.Dev_minor) == uint64(was.Dev) && now.Ino == was.Ino && int64(now.Size) == size
		}
	}
}

func whole(f *os.File, size int64) bool {
	var now unix.Statx_t
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_NLINK|unix.STATX_SIZE, &now)
	return err == nil && now.Nlink > 0 && int64(now.Size) == size
}

// Identity tells directories apart, whatever they are called.
type Identity struct{ dev, ino uint64 }

// Identity is the directory's own; false where the system has none.
func (d *Dir) Identity() (Identity, bool) {
	st := d.file.known()
	return Identity{uint64(st.Dev), st.Ino}, st.Ino != 0
}

// Still reports whether s, opened before, is the directory that Walk with these
// names would open now, with the owner and the rights that it had. It is as
// good as opening anew: an open directory keeps its number, so another one at
// the path has another. False says nothing.
func (d *Dir) Still(s *Dir, names ...string) bool {
	path := strings.Join(names, "/")
	if d.check(OpOpen, path) != nil {
		return false
	}
	was := s.file.known()
	var now unix.Stat_t
	for {
		err := unix.Fstatat(d.fd(), path, &now, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return false
		}
	}
	return was.Ino != 0 && now.Dev == was.Dev && now.Ino == was.Ino &&
		now.Mode == was.Mode && now.Uid == was.Uid && now.Gid == was.Gid
}

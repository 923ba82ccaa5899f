package lockfile

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// On Linux flock(2) is called here, on files that stay open between two uses:
// to open, describe and close one each time took most of a lock's time, and
// gofrs/flock offers each to the poller, which a command that lives for a
// millisecond has no use for. Elsewhere the locks are gofrs/flock's.

// maxIdle is how many lock files stay open that nobody uses just now.
const maxIdle = 32

// place is .locks, opened, and the files in it that are open and not in use.
type place struct {
	using sync.RWMutex // held for reading while fd is used
	fd    int

	mu     sync.Mutex
	idle   []*file
	closed bool
}

// file is a lock file that is open. flock(2) belongs to the open file, so who
// holds a lock has one of their own, also within a process.
type file struct {
	name string
	fd   int
	id   entry
	kept bool // it was open before
	rdwr bool
	seen time.Time // when it was last found at its path
}

// entry is what lies at a lock's path.
type entry struct{ unix.Stat_t }

func (e *entry) regular() bool         { return e.Mode&unix.S_IFMT == unix.S_IFREG }
func (e *entry) same(o *entry) bool    { return e.Dev == o.Dev && e.Ino == o.Ino }
func (e *entry) perm() fs.FileMode     { return fs.FileMode(e.Mode & 0o777) }
func (e *entry) owner() (uid, gid int) { return int(e.Uid), int(e.Gid) }

func (d *Dir) openPlace() error {
	fd, e, err := d.opened()
	if err != nil {
		return err
	}
	d.fd, d.rights = fd, rightsIn(e)
	return nil
}

// opened opens the .locks that the team has now.
func (d *Dir) opened() (fd int, e *entry, err error) {
	fd, err = openat(int(d.team.Fd()), locksDir, unix.O_DIRECTORY)
	if err == unix.ENOTDIR || err == unix.ELOOP {
		err = errNoDirectory
	}
	if err != nil {
		return -1, nil, err
	}
	if e, err = describe(fd); err != nil {
		unix.Close(fd)
	}
	return fd, e, err
}

func (d *Dir) closePlace() error {
	d.mu.Lock()
	for _, f := range d.idle {
		f.drop()
	}
	d.idle, d.closed = nil, true
	d.mu.Unlock()
	d.using.Lock()
	defer d.using.Unlock()
	err := unix.Close(d.fd)
	d.fd = -1
	return err
}

// again prepares another try for a lock whose file was not the one at its path.
// Either the whole team is another one, or it has another .locks, which somebody
// has made anew.
func (d *Dir) again() error {
	var now unix.Stat_t
	team, err := describe(int(d.team.Fd()))
	if err == nil {
		err = unix.Stat(d.path, &now)
	}
	if err != nil || now.Dev != team.Dev || now.Ino != team.Ino {
		return fmt.Errorf("%s is another directory than before", d.path)
	}
	fd, e, err := d.opened()
	if err != nil {
		return err
	}
	d.using.Lock()
	defer d.using.Unlock()
	if old, err := describe(d.fd); err != nil || old.same(e) {
		return unix.Close(fd)
	}
	unix.Close(d.fd)
	d.fd = fd
	return nil
}

// look describes what is at a lock's path.
func (d *Dir) look(name string) (e entry, err error) {
	path := d.path + "/" + locksDir + "/" + name
	for {
		err := unix.Lstat(path, &e.Stat_t)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return e, &fs.PathError{Op: "lstat", Path: path, Err: err}
		}
		return e, nil
	}
}

// open returns the lock's file: one that is open, else a new one.
func (d *Dir) open(name string) (*file, error) {
	d.mu.Lock()
	for i := len(d.idle) - 1; i >= 0; i-- {
		if f := d.idle[i]; f.name == name {
			d.idle = slices.Delete(d.idle, i, i+1)
			d.mu.Unlock()
			return f, nil
		}
	}
	d.mu.Unlock()
	return d.openNew(name)
}

func (d *Dir) openNew(name string) (*file, error) {
	d.using.RLock()
	fd, err := openat(d.fd, name, unix.O_NONBLOCK) // no FIFO is waited for
	d.using.RUnlock()
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: d.filePath(name), Err: err}
	}
	e, err := describe(fd)
	if err == nil && !e.regular() {
		err = d.irregular(name)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &file{name: name, fd: fd, id: *e}, nil
}

// keep leaves a file that is not locked for the next who wants that lock.
func (d *Dir) keep(f *file) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		f.drop()
		return
	}
	if len(d.idle) >= maxIdle {
		d.idle[0].drop()
		d.idle = slices.Delete(d.idle, 0, 1)
	}
	f.kept = true
	d.idle = append(d.idle, f)
}

// stale reports whether a file that was open before is not the one at the
// lock's path.
func (d *Dir) stale(f *file) bool {
	if !f.kept {
		return false
	}
	now, err := d.look(f.name)
	return err != nil || !f.is(&now)
}

func (f *file) is(e *entry) bool { return f.id.same(e) }

// looked notes that the file was found at its path.
func (f *file) looked(now *entry) { f.id, f.seen = *now, time.Now() }

// trusted reports whether the file was at its path a moment ago and has not
// been linked, unlinked, renamed or touched since: each would show in its change
// time.
func (f *file) trusted() bool {
	if !f.kept || time.Since(f.seen) > Trust {
		return false
	}
	var now entry
	return unix.Fstat(f.fd, &now.Stat_t) == nil && now.Nlink > 0 && now.Ctim == f.id.Ctim
}

func (f *file) stamp() Stamp { return Stamp{f.id.Ctim.Sec, f.id.Ctim.Nsec} }

// touch changes the file's times, and so its change time.
func (f *file) touch() {
	now := unix.Timespec{Nsec: unix.UTIME_NOW}
	_ = unix.UtimesNanoAt(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(f.fd), []unix.Timespec{now, now}, 0)
}

// try locks the file, or returns errHeld.
func (f *file) try(m Mode) error {
	err := f.flock(how(m) | unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return errHeld
	}
	return err
}

// wait locks the file, however long it takes.
func (f *file) wait(m Mode) error { return f.flock(how(m)) }

func (f *file) unlock() error {
	for {
		if err := unix.Flock(f.fd, unix.LOCK_UN); err != unix.EINTR {
			return err
		}
	}
}

// drop closes the file, and so lets go of it.
func (f *file) drop() { unix.Close(f.fd) }

func how(m Mode) int {
	if m == Shared {
		return unix.LOCK_SH
	}
	return unix.LOCK_EX
}

func (f *file) flock(how int) error {
	err := unix.Flock(f.fd, how)
	if err != unix.EBADF && err != unix.EIO || f.rdwr {
		return err
	}
	// NFS locks exclusively only what is open for writing.
	fd, e := unix.Open("/proc/self/fd/"+strconv.Itoa(f.fd), unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if e != nil {
		return err
	}
	unix.Close(f.fd)
	f.fd, f.rdwr = fd, true
	return unix.Flock(f.fd, how)
}

// create makes the lock file, or finds it made.
func (d *Dir) create(name string) error {
	d.using.RLock()
	fd, err := openat(d.fd, name, unix.O_CREAT|unix.O_EXCL)
	d.using.RUnlock()
	if err == unix.EEXIST {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", d.filePath(name), err)
	}
	e, err := describe(fd)
	unix.Close(fd)
	if err != nil {
		return err
	}
	return d.mend(name, e)
}

func (d *Dir) chown(name string, uid, gid int) error {
	d.using.RLock()
	defer d.using.RUnlock()
	return unix.Fchownat(d.fd, name, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
}

func (d *Dir) chmod(name string, mode fs.FileMode) error {
	d.using.RLock()
	defer d.using.RUnlock()
	return unix.Fchmodat(d.fd, name, uint32(mode.Perm()), 0)
}

func openat(dir int, name string, flag int) (fd int, err error) {
	for {
		fd, err = unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|flag, 0o600)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func describe(fd int) (*entry, error) {
	e := &entry{}
	for {
		if err := unix.Fstat(fd, &e.Stat_t); err != unix.EINTR {
			return e, err
		}
	}
}

//go:build linux || darwin || freebsd

package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// backlog is how many clients may wait to be accepted.
const backlog = 128

// A listener is a bound socket. Package net is not used: linking it costs every
// command of the program more at its start than the command itself.
type listener struct {
	file *os.File // in the poller, which makes accepting end at Close
	dir  *os.File // the run directory
	path string
	dev  uint64 // which socket is ours
	ino  uint64
}

// listen binds the socket in dir. A socket that nobody listens on is replaced.
func listen(dir string) (*listener, error) {
	d, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	l := &listener{dir: d, path: filepath.Join(dir, SocketName)}
	if err := l.open(dir); err != nil {
		d.Close()
		return nil, err
	}
	return l, nil
}

func (l *listener) open(dir string) error {
	fd, err := newSocket()
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	err = l.bind(fd, dir)
	if err == nil {
		err = os.NewSyscallError("listen", unix.Listen(fd, backlog))
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	l.file = os.NewFile(uintptr(fd), l.path)
	return nil
}

func (l *listener) bind(fd int, dir string) error {
	name, release, err := address(l.dir, dir)
	if err != nil {
		return err
	}
	defer release()
	// On Linux this is the mode that the file is made with.
	if err := unix.Fchmod(fd, 0o600); err != nil && !errors.Is(err, unix.EINVAL) {
		return &fs.PathError{Op: "chmod", Path: l.path, Err: err}
	}
	to := &unix.SockaddrUnix{Name: name}
	err = unix.Bind(fd, to)
	if errors.Is(err, unix.EADDRINUSE) {
		if err = l.removeStale(to); err == nil {
			err = unix.Bind(fd, to)
		}
	}
	if err != nil {
		return &fs.PathError{Op: "bind", Path: l.path, Err: err}
	}
	at := int(l.dir.Fd())
	if err := unix.Fchmodat(at, SocketName, 0o600, 0); err != nil {
		return &fs.PathError{Op: "chmod", Path: l.path, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstatat(at, SocketName, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "stat", Path: l.path, Err: err}
	}
	l.dev, l.ino = uint64(st.Dev), st.Ino
	return nil
}

// removeStale removes the socket of a runner that died. That no other runner
// lives is what the caller's lock says; one that listens is left alone all the
// same, and so is what is no socket.
func (l *listener) removeStale(to unix.Sockaddr) error {
	at := int(l.dir.Fd())
	var st unix.Stat_t
	if err := unix.Fstatat(at, SocketName, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return errors.New("something that is no socket lies there")
	}
	probe, err := newSocket()
	if err != nil {
		return err
	}
	defer unix.Close(probe)
	// Any answer but a refusal may be that of somebody who listens.
	if err := unix.Connect(probe, to); !errors.Is(err, unix.ECONNREFUSED) {
		return ErrInUse
	}
	return unix.Unlinkat(at, SocketName, 0)
}

// accept waits for the next client; close ends the wait with an error.
func (l *listener) accept() (*os.File, error) {
	conn, err := l.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, failed := -1, error(nil)
	err = conn.Read(func(s uintptr) bool {
		for {
			fd, failed = acceptOne(int(s))
			switch failed {
			case unix.EAGAIN:
				return false
			case unix.EINTR, unix.ECONNABORTED:
				continue
			}
			return true
		}
	})
	switch {
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, os.NewSyscallError("accept", failed)
	}
	return os.NewFile(uintptr(fd), l.path), nil
}

// transient reports whether accepting may work again in a moment.
func transient(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.ENOMEM)
}

// close removes the socket where it is still ours, and ends accept.
func (l *listener) close() error {
	at := int(l.dir.Fd())
	var st unix.Stat_t
	var errs []error
	// The open socket keeps its inode: that number is nobody else's.
	err := unix.Fstatat(at, SocketName, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && uint64(st.Dev) == l.dev && st.Ino == l.ino {
		if err := unix.Unlinkat(at, SocketName, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, &fs.PathError{Op: "remove", Path: l.path, Err: err})
		}
	}
	return errors.Join(append(errs, l.file.Close(), l.dir.Close())...)
}

// openDir opens a run directory, which has to be ours alone to write.
func openDir(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	d := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	switch {
	case err != nil:
		err = &fs.PathError{Op: "stat", Path: path, Err: err}
	case !admits(os.Geteuid(), int(st.Uid)) && os.Geteuid() != 0:
		err = fmt.Errorf("%s belongs to user %d: %w", path, st.Uid, fs.ErrPermission)
	case st.Mode&0o002 != 0:
		err = fmt.Errorf("%s may be written by everybody: %w", path, fs.ErrPermission)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// dial connects to the socket in dir and says who listens there.
func dial(ctx context.Context, dir string) (*os.File, Peer, error) {
	d, err := openDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Peer{}, ErrNoRunner
	}
	if err != nil {
		return nil, Peer{}, err
	}
	defer d.Close()
	name, release, err := address(d, dir)
	if err != nil {
		return nil, Peer{}, err
	}
	defer release()
	fd, err := newSocket()
	if err != nil {
		return nil, Peer{}, os.NewSyscallError("socket", err)
	}
	if err := connect(ctx, fd, name); err != nil {
		unix.Close(fd)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOTSOCK) {
			return nil, Peer{}, ErrNoRunner
		}
		if errors.Is(err, ErrNotAnswering) || ctx.Err() != nil {
			return nil, Peer{}, err
		}
		return nil, Peer{}, &fs.PathError{Op: "connect", Path: filepath.Join(dir, SocketName), Err: err}
	}
	p, err := peerOf(fd)
	if err != nil {
		unix.Close(fd)
		return nil, Peer{}, os.NewSyscallError("getsockopt", err)
	}
	return os.NewFile(uintptr(fd), filepath.Join(dir, SocketName)), p, nil
}

// connect tries until there is room in the queue of those who wait to be
// accepted: a Unix socket does not tell when.
func connect(ctx context.Context, fd int, name string) error {
	const again = 5 * time.Millisecond
	to := &unix.SockaddrUnix{Name: name}
	for {
		err := unix.Connect(fd, to)
		switch err {
		case unix.EAGAIN:
		case unix.EINTR:
			continue
		default:
			return err
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return &NotAnsweringError{}
		}
	}
}

// hungUp reports whether the other end has closed, and not only its sending
// half.
func hungUp(f *os.File) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return true
	}
	up := true
	conn.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}}
		_, err := unix.Poll(fds, 0)
		up = err != nil || fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
	})
	return up
}

// address is the socket's name as bind and connect take it, good until release.
// They take about a hundred bytes, less than a path may have.
func address(d *os.File, dir string) (name string, release func(), err error) {
	name = filepath.Join(dir, SocketName)
	if len(name) < len(unix.RawSockaddrUnix{}.Path) {
		return name, func() {}, nil
	}
	if name, ok := throughDescriptor(int(d.Fd())); ok {
		return name, func() {}, nil
	}
	return throughLink(dir)
}

// throughLink reaches a directory by a symbolic link with a short name.
func throughLink(dir string) (name string, release func(), err error) {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, err
	}
	place, err := os.MkdirTemp("", "atm-")
	if err != nil {
		return "", nil, fmt.Errorf("the path of %s is too long for a socket, and there is no place for a link to it: %w", filepath.Join(dir, SocketName), err)
	}
	release = func() { os.RemoveAll(place) }
	link := filepath.Join(place, "d")
	name = filepath.Join(link, SocketName)
	if err := os.Symlink(whole, link); err != nil {
		release()
		return "", nil, err
	}
	if len(name) >= len(unix.RawSockaddrUnix{}.Path) {
		release()
		return "", nil, fmt.Errorf("the path of %s is too long for a socket, and so is that of a link in %s", filepath.Join(dir, SocketName), os.TempDir())
	}
	return name, release, nil
}

// peer says who is at the other end of a connection.
func peer(f *os.File) (Peer, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	var p Peer
	var failed error
	if err := conn.Control(func(fd uintptr) { p, failed = peerOf(int(fd)) }); err != nil {
		return Peer{}, err
	}
	return p, os.NewSyscallError("getsockopt", failed)
}

// reset reports whether the other end went without reading all.
func reset(err error) bool {
	return errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
}

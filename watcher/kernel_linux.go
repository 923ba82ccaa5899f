package watcher

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kernel is inotify(7). Who waits in Next reads it: with a goroutine between
// them, fsnotify's or our own, a message came a quarter later. (And fsnotify
// costs every start of a command that links it. Elsewhere kernels are heard
// through it.)
type kernel struct {
	file *os.File // in the poller: Close ends a Read, and so does a deadline
	conn syscall.RawConn
	fd   int

	mu    sync.Mutex
	paths map[int32]string // of the directories that are watched
	watch map[string]int32 // nil: closed

	reading sync.Mutex // held while events are read and heard
	buf     []byte

	state  sync.Mutex
	inRead bool // somebody waits in Read, which a deadline ends
	woken  bool // who waits next does not
}

const interest = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MODIFY | unix.IN_ATTRIB |
	unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

func newKernel() (*kernel, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	k := &kernel{file: os.NewFile(uintptr(fd), "inotify"), fd: fd, paths: map[int32]string{}, watch: map[string]int32{}, buf: make([]byte, 16<<10)}
	k.conn, err = k.file.SyscallConn()
	return k, err
}

// Close ends all waiting.
func (k *kernel) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.watch == nil {
		return nil
	}
	k.paths, k.watch = nil, nil
	return k.file.Close()
}

// Add asks for the events of a directory.
func (k *kernel) Add(path string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.watch == nil {
		return fs.ErrClosed
	}
	wd, err := unix.InotifyAddWatch(k.fd, path, interest)
	if err != nil {
		return &fs.PathError{Op: "watch", Path: path, Err: err}
	}
	if old, ok := k.watch[path]; ok && old != int32(wd) {
		k.drop(old) // of another directory, that lay there before
	}
	k.paths[int32(wd)], k.watch[path] = path, int32(wd)
	return nil
}

// Remove asks for no more events of a directory. Not watched is fine.
func (k *kernel) Remove(path string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if wd, ok := k.watch[path]; ok {
		return k.drop(wd)
	}
	return nil
}

// drop ends a watch. k.mu is held.
func (k *kernel) drop(wd int32) error {
	k.forget(wd)
	_, err := unix.InotifyRmWatch(k.fd, uint32(wd))
	return os.NewSyscallError("inotify_rm_watch", err)
}

// forget forgets a watch that has ended. k.mu is held.
func (k *kernel) forget(wd int32) {
	path := k.paths[wd]
	delete(k.paths, wd)
	if k.watch[path] == wd {
		delete(k.watch, path)
	}
}

// WatchList is the directories that the kernel still watches.
func (k *kernel) WatchList() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := make([]string, 0, len(k.watch))
	for path := range k.watch {
		list = append(list, path)
	}
	return list
}

// told is the directory that an event is about, and ends a watch with it.
func (k *kernel) told(wd int32, mask uint32) (path string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if path, ok = k.paths[wd]; !ok {
		return "", false // told before the watch was removed
	}
	switch {
	case mask&unix.IN_MOVE_SELF != 0:
		k.drop(wd) // it goes on elsewhere, where nobody asked about it
	case mask&(unix.IN_IGNORED|unix.IN_DELETE_SELF|unix.IN_UNMOUNT) != 0:
		k.forget(wd)
	}
	return path, true
}

// start is for kernels that are heard by a goroutine.
func (k *kernel) start(*sync.WaitGroup, ear) {}

// wait hears what comes next, and returns then; also at the time given and when
// somebody calls wake. False: there is nothing to wait for.
func (k *kernel) wait(until time.Time, e ear) bool {
	k.reading.Lock()
	defer k.reading.Unlock()
	k.state.Lock()
	if k.woken || k.file.SetReadDeadline(until) != nil {
		woken := k.woken
		k.woken = false
		k.state.Unlock()
		return woken // else closed
	}
	k.inRead = true
	k.state.Unlock()
	n, err := k.file.Read(k.buf)
	k.hear(k.buf[:max(n, 0)], e)
	k.state.Lock()
	k.inRead, k.woken = false, false // the caller is about to look
	k.state.Unlock()
	switch {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.EINTR):
		return true
	case !errors.Is(err, fs.ErrClosed):
		e.lost(err)
		k.Close()
	}
	return false
}

// wake ends a wait, now or the next.
func (k *kernel) wake() {
	k.state.Lock()
	defer k.state.Unlock()
	k.woken = true
	if k.inRead {
		k.file.SetReadDeadline(time.Unix(1, 0))
	}
}

// drain hears what has come while nobody waits.
func (k *kernel) drain(e ear) {
	if !k.reading.TryLock() {
		return // somebody waits
	}
	defer k.reading.Unlock()
	for {
		n, err := 0, error(nil)
		if k.conn.Control(func(fd uintptr) { n, err = unix.Read(int(fd), k.buf) }) != nil || n <= 0 || err != nil {
			return // mostly: nothing has come
		}
		k.hear(k.buf[:n], e)
	}
}

// hear takes apart what was read: int32 wd, uint32 mask, uint32 cookie, uint32
// len, and a name of that length that ends with NULs.
func (k *kernel) hear(b []byte, e ear) {
	for len(b) >= unix.SizeofInotifyEvent {
		wd, mask := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
		name, _, _ := bytes.Cut(b[unix.SizeofInotifyEvent:end], []byte{0})
		k.tell(wd, mask, name, e)
		b = b[end:]
	}
}

func (k *kernel) tell(wd int32, mask uint32, name []byte, e ear) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		e.lost(nil)
		return
	}
	path, ok := k.told(wd, mask)
	if !ok {
		return
	}
	var what change
	switch {
	case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
		what = appeared
	case mask&unix.IN_MODIFY != 0:
		what = written
	case mask&unix.IN_ATTRIB != 0:
		what = touched
	default:
		what = left
	}
	if len(name) > 0 {
		e.hear(path, string(name), what)
	} else {
		e.hear(filepath.Dir(path), filepath.Base(path), what)
	}
}

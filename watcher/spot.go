package watcher

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/agentteammail/atm/mailbox"
)

// spot is a directory that is watched: what was at a path when it was last
// looked at.
type spot struct {
	path string
	info fs.FileInfo // nil: nothing
	born int64       // when it was made, where the system tells: inode numbers are used again
}

// lookAt describes the directory at a path. A link is none.
func lookAt(path string) (spot, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return spot{path: path}, err
	}
	if !info.IsDir() {
		return spot{path: path}, &fs.PathError{Op: "watch", Path: path, Err: syscall.ENOTDIR}
	}
	return spot{path, info, born(path)}, nil
}

func (s spot) same(o spot) bool {
	return s.info != nil && o.info != nil && s.born == o.born && os.SameFile(s.info, o.info)
}

// listen begins to hear the kernel, and watches the directories in which
// mailboxes come and go.
func (w *Watcher) listen(stores map[string]bool) {
	if w.opt.ForcePoll {
		w.poll("it was asked to")
		return
	}
	for path := range stores {
		if kind := foreignFS(path); kind != "" {
			w.poll(path + " lies on " + kind + ", where changes made elsewhere are not told")
		}
	}
	var err error
	if w.opt.fault != nil {
		err = w.opt.fault("new", "")
	}
	if err == nil {
		w.kernel, err = newKernel()
	}
	if err != nil {
		w.kernel = nil
		w.poll("no file events: " + inWords(err))
		return
	}
	w.kernel.start(&w.wg, w.ear())
	w.hints.kernel = w.kernel
	for path := range stores {
		w.watch(path)
	}
}

func (w *Watcher) ear() ear { return ear{w.hints.hear, w.lost} }

// lost is told that hints were lost; err is nil when the kernel's queue ran over.
func (w *Watcher) lost(err error) {
	if err != nil {
		// kqueue needs a descriptor for every file: rather none of its events
		// than a process that can open nothing.
		w.refused(err)
	}
	w.hints.lost()
}

// watch asks for the events of a directory. Where that is refused the watcher
// polls.
func (w *Watcher) watch(path string) {
	if w.kernel == nil {
		return
	}
	var err error
	if w.opt.fault != nil {
		err = w.opt.fault("add", path)
	}
	if err == nil {
		err = w.kernel.Add(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrClosed) {
		w.refused(err)
	}
}

// refused notes that the kernel will not tell everything.
func (w *Watcher) refused(err error) {
	w.poll("not all file events: " + inWords(err))
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		w.kernel.Close()
	}
}

func inWords(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "no watches left for this user (fs.inotify.max_user_watches)"
	case errors.Is(err, syscall.EMFILE):
		return "no watcher or open file left for this user (fs.inotify.max_user_instances, ulimit -n)"
	}
	return err.Error()
}

func (w *Watcher) unwatch(s *spot) {
	if s.info != nil && w.kernel != nil {
		w.kernel.Remove(s.path) // the kernel may have let go of it itself
	}
	s.info = nil
}

// hears reports whether the kernel still watches what it was asked to watch at
// a path: it lets go of a directory that is moved or removed, even when that is
// back by now.
func (w *Watcher) hears(path string) bool {
	if w.kernel == nil {
		return true
	}
	if w.heard == nil {
		w.heard = map[string]bool{}
		for _, p := range w.kernel.WatchList() {
			w.heard[p] = true
		}
	}
	return w.heard[path]
}

// attach compares what is watched with what is at the paths now, watches anew
// what differs, and opens the mailbox again if anything did.
func (f *feed) attach() {
	w, changed := f.w, false
	for i := range f.spots {
		s := &f.spots[i]
		if s.path == "" {
			continue
		}
		now, err := lookAt(s.path)
		if spotKind(i) == spotEvents && errors.Is(err, fs.ErrNotExist) {
			w.unwatch(s) // it is made with the first event
			continue
		}
		if err != nil {
			f.leave(err)
			return
		}
		if s.same(now) && w.hears(s.path) {
			*s = now
			continue
		}
		if s.same(now) {
			f.relist = f.relist || w.Polling() == ""
		} else {
			changed = true
			w.unwatch(s)
		}
		// What was watched is what is there only if it is there after.
		for range 3 {
			w.watch(s.path)
			after, err := lookAt(s.path)
			if err != nil {
				f.leave(err)
				return
			}
			if *s = after; after.same(now) {
				break
			}
			w.unwatch(s)
			now, changed = after, true
		}
	}
	if f.view != nil && !changed {
		f.relist = f.relist || f.stale
		return
	}
	if f.view != nil {
		f.view.Close()
		f.view = nil
	}
	view, err := f.box.Open()
	if err != nil {
		f.leave(err)
		return
	}
	f.view, f.relist, f.more, f.said = view, true, true, ""
	w.drops.hint(f.index, true)
}

// leave lets go of a mailbox that is not there, or cannot be opened. What was
// noticed in it and not returned is new when it comes back.
func (f *feed) leave(err error) {
	for i := range f.spots {
		f.w.unwatch(&f.spots[i])
	}
	if f.view != nil {
		f.view.Close()
		f.view = nil
	}
	for _, k := range f.pending[f.head:] {
		delete(f.seen, k)
	}
	f.pending, f.head = nil, 0
	f.torn, f.retryAt = map[key]*retry{}, time.Time{}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: %w", f.box.Address(), mailbox.ErrNoAgent)
	}
	f.more = true // what is left of the old log
	f.say(&f.said, err)
}

package watcher

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Dirs reports that something in some directories has changed; the caller looks what. It may miss changes, so the
// caller also looks now and then.
type Dirs struct {
	fs      *fsnotify.Watcher
	changed chan struct{}
	wg      sync.WaitGroup

	mu     sync.Mutex // guards the following
	keeps  bool       // whether it keeps what has changed, for take
	events []fsnotify.Event
	lost   error // why some are missing; nil: none are
}

// maxEvents is how many events are kept, as many as the kernel keeps for a program by default.
const maxEvents = 1 << 14

// OpenDirs starts with no directories and two goroutines, which Close ends.
func OpenDirs() (*Dirs, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch directories: %w", err)
	}
	d := &Dirs{fs: w, changed: make(chan struct{}, 1)}
	d.wg.Go(func() { // always, since on Windows Add waits until the events before it are received
		for e := range w.Events {
			d.note(e, nil)
		}
	})
	d.wg.Go(func() {
		for err := range w.Errors {
			d.note(fsnotify.Event{}, err)
		}
	})
	return d, nil
}

func (d *Dirs) note(e fsnotify.Event, lost error) {
	d.mu.Lock()
	switch {
	case !d.keeps:
	case lost != nil:
		d.lost = lost
	case len(d.events) == maxEvents:
		d.lost = fsnotify.ErrEventOverflow
	default:
		d.events = append(d.events, e)
	}
	d.mu.Unlock()
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// take returns the events since the last call, and why some may be missing.
func (d *Dirs) take() (events []fsnotify.Event, lost error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	events, lost = d.events, d.lost
	d.events, d.lost = nil, nil
	return events, lost
}

// Add watches the directories at paths, if they exist. It may be called again for the same path. Directories that have
// been removed or moved away, as those of a retired member, are no longer watched.
func (d *Dirs) Add(paths ...string) {
	for _, path := range d.fs.WatchList() {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			d.fs.Remove(path)
		}
	}
	for _, path := range paths {
		d.fs.Add(path)
	}
}

// Changed receives a value when something has changed since the last one.
func (d *Dirs) Changed() <-chan struct{} { return d.changed }

// Close stops watching and waits for the goroutines.
func (d *Dirs) Close() error {
	err := d.fs.Close()
	d.wg.Wait()
	return err
}

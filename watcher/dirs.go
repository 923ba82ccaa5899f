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
}

// OpenDirs starts with no directories and two goroutines, which Close ends.
func OpenDirs() (*Dirs, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch directories: %w", err)
	}
	d := &Dirs{fs: w, changed: make(chan struct{}, 1)}
	d.wg.Go(func() { // fsnotify may block Add until its events are received
		for range w.Events {
			select {
			case d.changed <- struct{}{}:
			default:
			}
		}
	})
	d.wg.Go(func() {
		for range w.Errors { // the caller looks now and then
		}
	})
	return d, nil
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

package watcher

import (
	"fmt"

	"github.com/fsnotify/fsnotify"
)

// Dirs tells that something in some directories has changed, for who looks at all of them then. Lost events are
// not told: look now and then all the same.
type Dirs struct {
	fs      *fsnotify.Watcher
	changed chan struct{}
}

// OpenDirs watches no directory yet.
func OpenDirs() (*Dirs, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch directories: %w", err)
	}
	d := &Dirs{w, make(chan struct{}, 1)}
	go func() { // who adds a directory may wait for events to be received
		for range w.Events {
			wake(d.changed)
		}
	}()
	go func() {
		for range w.Errors { // it is looked again anyway
		}
	}()
	return d, nil
}

// Add watches the directories at paths; those that are not there are passed over. Again is fine.
func (d *Dirs) Add(paths ...string) {
	for _, path := range paths {
		d.fs.Add(path)
	}
}

// Changed receives when something has changed since it did last.
func (d *Dirs) Changed() <-chan struct{} { return d.changed }

// Close ends it.
func (d *Dirs) Close() error { return d.fs.Close() }

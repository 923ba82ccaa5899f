//go:build !linux

package watcher

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// kernel is the kernel's file events, through fsnotify.
type kernel struct{ *fsnotify.Watcher }

func newKernel() (*kernel, error) {
	// Unbuffered: our own goroutine drains it at once.
	w, err := fsnotify.NewWatcher()
	return &kernel{w}, err
}

// Add asks for the events of a directory.
func (k *kernel) Add(path string) error {
	err := k.Watcher.Add(path)
	if errors.Is(err, fsnotify.ErrClosed) {
		return fs.ErrClosed
	}
	return err
}

// start has a goroutine hear, until Close.
func (k *kernel) start(wg *sync.WaitGroup, e ear) { wg.Go(func() { k.run(e) }) }

func (k *kernel) run(ear ear) {
	for {
		select {
		case e, ok := <-k.Events:
			if !ok {
				return
			}
			what := left
			switch {
			case e.Has(fsnotify.Create):
				what = appeared
			case e.Has(fsnotify.Write):
				what = written
			case e.Has(fsnotify.Remove), e.Has(fsnotify.Rename):
			default:
				what = touched
			}
			ear.hear(filepath.Dir(e.Name), filepath.Base(e.Name), what)
		case err, ok := <-k.Errors:
			if !ok {
				return
			}
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				err = nil
			}
			ear.lost(err)
		}
	}
}

// wait would wait for what comes; here a goroutine does.
func (k *kernel) wait(time.Time, ear) bool { return false }

func (k *kernel) wake() {}

func (k *kernel) drain(ear) {}

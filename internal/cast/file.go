package cast

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// run writes the chunks to the file, and sees to it that what lies in memory
// does not lie there longer than a second.
func (w *Writer) run() {
	defer close(w.ended)
	timer := time.NewTimer(flushEvery)
	timer.Stop()
	defer timer.Stop()
	armed := false
	for {
		select {
		case c, ok := <-w.chunks:
			if !ok {
				if w.file != nil {
					w.file.Close()
				}
				return
			}
			w.put(c)
		case <-w.dirty:
			if !armed {
				timer.Reset(flushEvery)
				armed = true
			}
		case <-timer.C:
			armed = false
			// A caller who has the lock may be waiting for this goroutine to
			// write something. It fills the chunk, or the next try takes it.
			if !w.mu.TryLock() {
				timer.Reset(flushEvery / 10)
				armed = true
				continue
			}
			if w.have && len(w.buf) > 0 && !w.closed {
				w.handOver(nil)
			}
			w.mu.Unlock()
		}
	}
}

// put writes a chunk. After an error nothing is written until a chunk comes that
// begins with a repaint.
func (w *Writer) put(c chunk) {
	if len(c.data) > 0 && (!w.deaf || c.resume) {
		if err := w.store(c); err != nil {
			w.deaf = true
			w.tell(err)
			w.broken.Store(true)
		} else {
			w.trouble.Lock()
			w.trouble.last, w.trouble.size = c.last, w.written
			w.trouble.needFile = false
			if c.resume {
				w.trouble.told = false
			}
			w.trouble.Unlock()
			w.deaf = false
		}
	}
	if c.token {
		if cap(c.data) > chunkSize/4 && len(c.data) < chunkSize/4 {
			c.data = nil // the flood is over
		}
		w.free <- c.data[:0]
	}
	if c.done != nil {
		close(c.done)
	}
}

// store appends a chunk to the file, or leaves it as it was.
func (w *Writer) store(c chunk) error {
	if c.fresh {
		if err := w.turnOver(); err != nil {
			w.needFile()
			return err
		}
		w.written = 0
	}
	n, err := w.file.Write(c.data)
	if err == nil {
		w.written += int64(n)
		return nil
	}
	torn := n > 0 && w.file.Truncate(w.written) != nil
	if torn || w.written == 0 {
		w.needFile() // a torn line stays the last of its file
	}
	return bare(err)
}

func (w *Writer) needFile() {
	w.trouble.Lock()
	w.trouble.needFile = true
	w.trouble.Unlock()
}

// turnOver rotates the files and opens a new one.
func (w *Writer) turnOver() error {
	if w.file != nil {
		w.file.Close()
		w.file = nil
	}
	if err := rotate(w.o.Path, w.o.Keep); err != nil {
		return fmt.Errorf("rotate the recording %s: %w", w.o.Path, bare(err))
	}
	f, err := os.OpenFile(w.o.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("create the recording %s: %w", w.o.Path, bare(err))
	}
	w.file = f
	return nil
}

// rotate moves a recording's files one number up, those beyond keep away.
func rotate(path string, keep int) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return os.Remove(path) // nothing was ever recorded in it
	}
	numbers, err := rotated(path)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		if n >= keep {
			err = os.Remove(numbered(path, n))
		} else {
			err = os.Rename(numbered(path, n), numbered(path, n+1))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Rename(path, numbered(path, 1))
}

// numbered is the path of a rotated file: screen.cast, screen.1.cast.
func numbered(path string, n int) string {
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + "." + strconv.Itoa(n) + ext
}

// rotated are the numbers of the files that there are, highest, that is oldest,
// first.
func rotated(path string) ([]int, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	ext := filepath.Ext(path)
	stem := strings.TrimSuffix(filepath.Base(path), ext) + "."
	var numbers []int
	for _, e := range entries {
		middle := strings.TrimSuffix(strings.TrimPrefix(e.Name(), stem), ext)
		if n, err := strconv.Atoi(middle); err == nil && n > 0 && filepath.Base(numbered(path, n)) == e.Name() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	slices.Reverse(numbers)
	return numbers, nil
}

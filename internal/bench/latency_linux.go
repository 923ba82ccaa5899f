package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/watcher"
)

func init() { latency = watching }

func watching(b *bench, box *mailbox.Box) (*comparison, error) {
	w, err := watcher.Open(b.ctx, []*mailbox.Box{box}, watcher.Options{Messages: true})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(b.ctx, func() { w.Close() })
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	dir, buf := filepath.Join(b.dir, "raw"), make([]byte, 4096)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if _, err := syscall.InotifyAddWatch(fd, dir, syscall.IN_CREATE); err != nil {
		return nil, err
	}
	ours := b.delays(filepath.Join(box.Path(), "inbox/new"), func() error {
		_, err := w.Next(b.ctx)
		return err
	})
	raw := b.delays(dir, func() error {
		_, err := syscall.Read(fd, buf)
		for err == syscall.EINTR {
			_, err = syscall.Read(fd, buf)
		}
		return err
	})
	return &comparison{Name: "from a delivery to the watcher's entry", Against: "to a raw inotify event (p50)", Time: 3, ours: ours, raw: raw}, nil
}

// delays is how long it takes from linking a message into a directory until wait, which
// waits elsewhere, returns: the median of 50.
func (b *bench) delays(dir string, wait func() error) side {
	return func() (time.Duration, error) {
		var took []time.Duration
		for range 50 {
			m := message()
			data, _ := m.Encode()
			temp := filepath.Join(b.dir, string(m.ID))
			if err := os.WriteFile(temp, data, 0o600); err != nil {
				return 0, err
			}
			done := make(chan error)
			var seen time.Time
			go func() {
				err := wait()
				seen = time.Now()
				done <- err
			}()
			time.Sleep(2 * time.Millisecond) // until it waits
			begin := time.Now()
			if err := os.Link(temp, filepath.Join(dir, string(m.ID)+".json")); err != nil {
				return 0, err
			}
			if err := <-done; err != nil {
				return 0, err
			}
			took = append(took, seen.Sub(begin))
		}
		return median(took), nil
	}
}

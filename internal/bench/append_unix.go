//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

func openAppend(b *bench) (cell, error) {
	return b.fresh("append", 0, []wire.Name{"bob"}, func(r *root) cell {
		return func(d time.Duration) (time.Duration, time.Duration, error) {
			box, e := r.Box("bob"), working(1)[1]
			ours := func() (int, error) { return 1, box.Append(b.ctx, mailbox.AppendOptions{}, e) }
			if _, err := ours(); err != nil {
				return 0, 0, err
			}
			last, err := box.Tail(1)
			if err != nil {
				return 0, 0, err
			}
			line := append(last[len(last)-1].Append(nil), '\n')
			lock, err := os.OpenFile(filepath.Join(r.path, "raw.lock"), os.O_RDONLY|os.O_CREATE, 0o600)
			if err != nil {
				return 0, 0, err
			}
			defer lock.Close()
			log, err := os.OpenFile(filepath.Join(r.path, "raw.ndjson"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
			if err != nil {
				return 0, 0, err
			}
			defer log.Close()
			raw := func() (int, error) {
				if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
					return 0, err
				}
				_, err := log.Write(line)
				syscall.Flock(int(lock.Fd()), syscall.LOCK_UN)
				return 1, err
			}
			return b.loops(alone(ours), alone(raw))(d)
		}
	}), nil
}

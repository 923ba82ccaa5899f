package mailbox

import (
	"context"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/internal/lockfile"
)

// lockRoom is a team's .locks, opened when a lock is first needed: most looks
// need none.
type lockRoom struct {
	team *atomicfile.Dir
	mu   sync.Mutex
	dir  *lockfile.Dir
}

func (l *lockRoom) open() (*lockfile.Dir, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dir != nil {
		return l.dir, nil
	}
	// An error is not kept: a process that lives on tries again.
	d, err := lockfile.Open(l.team, l.team.Path())
	if err == nil {
		l.dir = d
	}
	return d, err
}

func (l *lockRoom) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dir == nil {
		return nil
	}
	return l.dir.Close()
}

func (l *lockRoom) Lock(ctx context.Context, name string, m lockfile.Mode, timeout time.Duration, seen func() error) (*lockfile.Lock, error) {
	d, err := l.open()
	if err != nil {
		return nil, err
	}
	return d.Lock(ctx, name, m, timeout, seen)
}

func (l *lockRoom) Try(name string, m lockfile.Mode, seen func() error) (*lockfile.Lock, error) {
	d, err := l.open()
	if err != nil {
		return nil, err
	}
	return d.Try(name, m, seen)
}

func (l *lockRoom) Held(name string) (bool, error) {
	d, err := l.open()
	if err != nil {
		return false, err
	}
	return d.Held(name)
}

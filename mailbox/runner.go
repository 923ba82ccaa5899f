package mailbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/wire"
)

// probesEnd is how long a runner that starts waits for the lock: who probes it
// holds it shared for an instant.
const probesEnd = time.Second

// ErrNoRunner says that this process does not hold the agent's runner lock, or
// holds a file that is no longer the one at its path: another may run the agent.
var ErrNoRunner = errors.New("is not run by this process")

// Runner is the hold of an agent's runner lock. As long as it lasts the agent
// counts as running, and what its holder claims is in its hands.
type Runner struct {
	box  *Box
	lock *lockfile.Lock
	run  string // tells its claims from those of the runners before it

	mu    sync.Mutex
	hands map[wire.ID]bool // what it types, or has not said how that went
}

// runners are the runner locks that a store holds.
type runners struct {
	mu   sync.Mutex
	held map[wire.Name]*Runner
}

// HoldRunner takes the agent's runner lock, for as long as the agent is run.
// There is one at a time: ErrRunning, with the process where the system tells.
// ErrNoAgent when there is no such agent.
func (s *Store) HoldRunner(ctx context.Context, agent wire.Name) (*Runner, error) {
	b := s.Box(agent)
	l, err := s.locks.Lock(ctx, string(agent)+".runner", lockfile.Exclusive, probesEnd, b.seen)
	var held *lockfile.HeldError
	switch {
	case errors.As(err, &held) && held.PID > 0:
		return nil, fmt.Errorf("%s %w: %s, process %d", b.Address(), ErrRunning, held.Command, held.PID)
	case errors.As(err, &held):
		return nil, fmt.Errorf("%s %w", b.Address(), ErrRunning)
	case err != nil:
		return nil, err
	}
	// The lock's file outlives the agent, who may have been retired meanwhile.
	if err := b.seen(); err != nil {
		l.Unlock()
		return nil, err
	}
	r := &Runner{box: b, lock: l, run: string(wire.NewID()), hands: map[wire.ID]bool{}}
	s.runners.mu.Lock()
	defer s.runners.mu.Unlock()
	if s.runners.held == nil {
		s.runners.held = map[wire.Name]*Runner{}
	}
	s.runners.held[agent] = r
	return r, nil
}

// StillHeld reports whether the lock is held, and by the file that lies at its
// path. Otherwise another runner may have taken over: nothing may be typed.
func (r *Runner) StillHeld() bool { return r.lock.Current() }

// Release lets go. Again is fine.
func (r *Runner) Release() error {
	s := r.box.store
	s.runners.mu.Lock()
	if s.runners.held[r.box.agent] == r {
		delete(s.runners.held, r.box.agent)
	}
	s.runners.mu.Unlock()
	return r.lock.Unlock()
}

// runner is this process's hold of the agent's runner lock, ErrNoRunner when
// there is none that counts.
func (b *Box) runner() (*Runner, error) {
	b.store.runners.mu.Lock()
	r := b.store.runners.held[b.agent]
	b.store.runners.mu.Unlock()
	if r == nil || !r.StillHeld() {
		return nil, fmt.Errorf("%s %w", b.Address(), ErrNoRunner)
	}
	return r, nil
}

func (r *Runner) has(id wire.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hands[id]
}

// holds notes that messages are in its hands, or no longer.
func (r *Runner) holds(ids []wire.ID, now bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if now {
			r.hands[id] = true
		} else {
			delete(r.hands, id)
		}
	}
}

package mailbox

import (
	"sync"

	"github.com/agentteammail/atm/internal/atomicfile"
)

// Deliveries of one process into one inbox share the sync of its directory:
// who comes while one goes on waits for the next, which is for all who came.

// together is the syncs of one directory.
type together struct {
	mu      sync.Mutex
	open    *round // the round that may still be joined
	running *round // the round that syncs, or the last that did
	users   int
}

type round struct {
	done chan struct{}
	err  error
}

var syncing struct {
	sync.Mutex
	dirs map[atomicfile.Identity]*together
}

// syncTogether makes a directory's entries durable: those that were made
// before the call. The error of a sync is that of everybody who waited for it.
func syncTogether(d *atomicfile.Dir) error {
	id, ok := d.Identity()
	if !ok {
		return d.Sync()
	}
	syncing.Lock()
	t := syncing.dirs[id]
	if t == nil {
		if syncing.dirs == nil {
			syncing.dirs = map[atomicfile.Identity]*together{}
		}
		t = &together{}
		syncing.dirs[id] = t
	}
	t.users++
	syncing.Unlock()
	defer func() {
		syncing.Lock()
		if t.users--; t.users == 0 {
			delete(syncing.dirs, id)
		}
		syncing.Unlock()
	}()

	t.mu.Lock()
	if r := t.open; r != nil {
		t.mu.Unlock()
		<-r.done
		return r.err
	}
	r := &round{done: make(chan struct{})}
	before := t.running
	t.open = r
	t.mu.Unlock()
	if before != nil {
		<-before.done
	}
	t.mu.Lock()
	t.open, t.running = nil, r // nobody joins from here on
	t.mu.Unlock()
	r.err = d.Sync()
	close(r.done)
	return r.err
}

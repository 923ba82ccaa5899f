package mailbox

import (
	"sync"

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
)

// standing is what stays open of a mailbox between deliveries: to open tmp and
// new each time took longer than to link a message. It saves that and no more:
// who uses one of them asks, at the moment at which they would open it, whether
// it is what lies at its path.
type standing struct {
	box *Box

	mu    sync.Mutex      // held for an instant, never during a system call
	tmp   *atomicfile.Dir // set once
	fresh *atomicfile.Dir // inbox/new; set once

	open    *round // the sync that may still be joined
	joined  int    // by so many
	running *round // the sync that goes on, or the last that did

	// Under standings.mu:
	users int
	gone  bool // the last user closes it
}

// maxStanding is how many mailboxes of a store stay open.
const maxStanding = 64

// standings are those of a store.
type standings struct {
	mu     sync.Mutex
	at     map[wire.Name]*standing
	closed bool
}

// stand returns what is open of the mailbox, until leave.
func (b *Box) stand() *standing {
	all := &b.store.standings
	all.mu.Lock()
	defer all.mu.Unlock()
	s := all.at[b.agent]
	if s == nil {
		s = &standing{box: b, gone: all.closed || len(all.at) >= maxStanding}
		if !s.gone {
			if all.at == nil {
				all.at = map[wire.Name]*standing{}
			}
			all.at[b.agent] = s
		}
	}
	s.users++
	return s
}

// leave ends a use. What the system cannot compare with its path is not kept.
func (s *standing) leave() {
	all := &s.box.store.standings
	all.mu.Lock()
	defer all.mu.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	for _, d := range []*atomicfile.Dir{s.tmp, s.fresh} {
		if d != nil {
			if _, comparable := d.Identity(); !comparable {
				all.forget(s)
			}
		}
	}
	if s.gone {
		s.close()
	}
}

// retire has nobody come to it any more: it is not what lies at its path.
func (s *standing) retire() {
	all := &s.box.store.standings
	all.mu.Lock()
	defer all.mu.Unlock()
	all.forget(s)
}

func (all *standings) forget(s *standing) {
	s.gone = true
	if all.at[s.box.agent] == s {
		delete(all.at, s.box.agent)
	}
}

// close closes what nobody uses.
func (s *standing) close() {
	if s.tmp != nil {
		s.tmp.Close()
	}
	if s.fresh != nil {
		s.fresh.Close()
	}
}

// close lets go of everything; what is in use is closed when that ends.
func (all *standings) close() {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.closed = true
	for _, s := range all.at {
		all.forget(s)
		if s.users == 0 {
			s.close()
		}
	}
}

// openTmp returns tmp, opened now if it was not; stale: it is not what lies at
// its path.
func (s *standing) openTmp(open func() (*atomicfile.Dir, error)) (d *atomicfile.Dir, stale bool, err error) {
	s.mu.Lock()
	d = s.tmp
	s.mu.Unlock()
	if d != nil {
		return d, !s.box.store.dir.Still(d, string(s.box.agent), "inbox", "tmp"), nil
	}
	if d, err = open(); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tmp != nil { // by somebody else, just now
		d.Close()
		return s.tmp, false, nil
	}
	s.tmp = d
	return d, false, nil
}

// enter is Box.enter: the room has the standing's own new where that is what
// lies at its path now.
func (s *standing) enter() (*room, error) {
	s.mu.Lock()
	d := s.fresh
	s.mu.Unlock()
	if d != nil {
		r, err := s.box.enterAgain(&room{fresh: d})
		if err != nil || !r.lent {
			s.retire()
		}
		return r, err
	}
	r, err := s.box.enter()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fresh == nil {
		s.fresh, r.lent = r.fresh, true
	}
	return r, nil
}

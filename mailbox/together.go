package mailbox

// Deliveries of one process into one mailbox share the sync of its directory:
// who comes while one goes on waits for the next, which is for all who came.

// round is who shares a sync.
type round struct {
	done chan struct{}
	err  error
}

// sync makes the entries of new durable that were made before the call. The
// error of a sync is that of everybody who waited for it.
func (s *standing) sync() error {
	s.mu.Lock()
	if r := s.open; r != nil {
		s.joined++
		s.mu.Unlock()
		<-r.done
		return r.err
	}
	r := &round{done: make(chan struct{})}
	before := s.running
	s.open, s.joined = r, 1
	s.mu.Unlock()
	if before != nil {
		<-before.done
	}
	s.mu.Lock()
	s.open, s.running, s.joined = nil, r, 0 // nobody joins from here on
	s.mu.Unlock()
	r.err = s.fresh.Sync()
	close(r.done)
	if r.err != nil {
		s.retire() // never synced again: a second call may say that all is well
	}
	return r.err
}

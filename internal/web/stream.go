package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/agentteammail/atm/internal/room"
	"github.com/agentteammail/atm/ptyrun/control"
	"github.com/agentteammail/atm/wire"
)

const (
	gather    = 150 * time.Millisecond // what changes within it is told at once
	keepAlive = 30 * time.Second
	retry     = 3 * time.Second // from an error to the next try
	keepFor   = time.Minute     // a screen is followed so long after the last browser has gone
)

// A stream tells browsers that something has changed, as server-sent events, and the pages fetch what they
// show of it. An event says which snapshot of the room is the newest, and whose screens have changed since the
// last event. A browser has one connection, which its pages share.
type stream struct {
	*room.Room
	ctx context.Context // of the server

	mu       sync.Mutex
	browsers int
	lastGone time.Time
	screens  map[wire.Name]*screen
	changes  uint64        // of all screens
	newer    chan struct{} // closed when a screen changes
}

// A screen is an agent's, which is followed once somebody has looked at it: its runner says when it changes.
type screen struct {
	shows    control.Screen
	changed  uint64        // which of the stream's changes was its last
	first    chan struct{} // closed when there is something to show, or an error
	hasEnded bool
	err      error
}

func newStream(ctx context.Context, r *room.Room) *stream {
	return &stream{Room: r, ctx: ctx, screens: map[wire.Name]*screen{}, newer: make(chan struct{})}
}

// screen is what an agent's screen shows, of which browsers are told from now on when it changes.
func (s *stream) screen(name wire.Name) (control.Screen, error) {
	s.mu.Lock()
	one := s.screens[name]
	if one == nil || one.hasEnded {
		one = &screen{first: make(chan struct{})}
		s.screens[name] = one
		go s.follow(name, one)
	}
	s.mu.Unlock()
	<-one.first
	s.mu.Lock()
	defer s.mu.Unlock()
	return one.shows, one.err
}

// follow keeps a screen up to date until its runner ends, or nobody has looked for some time.
func (s *stream) follow(name wire.Name, one *screen) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	began := time.Now()
	update := func(change func()) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if change(); one.changed == 0 {
			close(one.first)
		}
		s.changes++
		one.changed = s.changes
		close(s.newer)
		s.newer = make(chan struct{})
		if s.browsers == 0 && time.Since(s.lastGone) > keepFor && time.Since(began) > keepFor {
			cancel()
		}
	}
	err := s.Screen(ctx, name, func(now control.Screen) { update(func() { one.shows = now }) })
	update(func() { one.hasEnded, one.err = err == nil, err })
	if err != nil { // whoever looks asks again when they are told of it, which would go in a circle
		time.Sleep(retry)
		update(func() { one.hasEnded = true })
	}
}

// come counts browsers.
func (s *stream) come(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.browsers += n
	s.lastGone = time.Now()
}

// changed are the screens that have changed since they were as known, which is brought up to date.
func (s *stream) changed(known map[wire.Name]uint64) (names []wire.Name, newer <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, one := range s.screens {
		if known[name] != one.changed {
			names = append(names, name)
		}
		known[name] = one.changed
	}
	return names, s.newer
}

func (s *stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.come(1)
	defer s.come(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "retry: 1000\n\n")
	for known := map[wire.Name]uint64{}; ; {
		now, newer := s.Snapshot()
		screens, newerScreen := s.changed(known)
		data, _ := json.Marshal(map[string]any{"version": now.Version, "screens": screens})
		fmt.Fprintf(w, "data: %s\n\n", data)
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-newer:
		case <-newerScreen:
		case <-time.After(keepAlive):
		case <-r.Context().Done():
			return
		}
		select {
		case <-time.After(gather):
		case <-r.Context().Done():
			return
		}
	}
}

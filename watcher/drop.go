package watcher

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/agentteammail/atm/mailbox"
)

const (
	dropWait   = 250 * time.Millisecond // between two looks at a file that is being written
	drainEvery = time.Second
	maxForeign = 256 // names in new that are remembered; beyond it new is listed
	foreignTry = 3   // looks at such a name: another process may hold the drops lock
)

// drops takes in what is dropped into mailboxes: a goroutine of its own, since
// a large file takes long to copy.
type drops struct {
	boxes []*mailbox.Box
	every func() time.Duration
	taken func(box int, t mailbox.Taken)
	drain func() // has what the kernel told heard, if nobody waits for that
	wake  chan struct{}

	mu    sync.Mutex
	state []dropState
}

type dropState struct {
	due     time.Time      // of the next look
	last    time.Time      // look
	foreign map[string]int // names met in new, and how often they are still tried
	all     bool           // there are more: list new
}

func newDrops(boxes []*mailbox.Box, every func() time.Duration) *drops {
	return &drops{boxes: boxes, every: every, wake: make(chan struct{}, 1), state: make([]dropState, len(boxes))}
}

// hint asks for a look at a mailbox: now for a name that has appeared, within
// dropWait for one that changed, which a file being written does all the time.
func (d *drops) hint(box int, appeared bool) {
	d.mu.Lock()
	s := &d.state[box]
	due := time.Now()
	if !appeared && due.Before(s.last.Add(dropWait)) {
		due = s.last.Add(dropWait)
	}
	earlier := due.Before(s.due)
	if earlier {
		s.due = due
	}
	d.mu.Unlock()
	if earlier {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
}

// foreign is hint for a name in new that is no message's.
func (d *drops) foreign(box int, appeared bool, name string) {
	d.mu.Lock()
	s := &d.state[box]
	if len(s.foreign) < maxForeign {
		if s.foreign == nil {
			s.foreign = map[string]int{}
		}
		s.foreign[strings.Clone(name)] = foreignTry // it may be a part of a whole listing
	} else {
		s.all = true
	}
	d.mu.Unlock()
	d.hint(box, appeared)
}

func (d *drops) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		d.drain()
		next := time.Now().Add(min(d.every(), drainEvery))
		for i := range d.boxes {
			if due := d.look(ctx, i); due.Before(next) {
				next = due
			}
		}
		timer.Reset(time.Until(next))
		select {
		case <-d.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// look takes in what was dropped into a mailbox, if it is time, and returns
// when it is time again. What cannot be taken in now stays where it is.
func (d *drops) look(ctx context.Context, i int) time.Time {
	now := time.Now()
	d.mu.Lock()
	s := &d.state[i]
	if s.due.After(now) {
		defer d.mu.Unlock()
		return s.due
	}
	s.due = now.Add(d.every())
	all := s.all
	s.all = false
	names := make([]string, 0, len(s.foreign))
	for n, tries := range s.foreign {
		names = append(names, n)
		if s.foreign[n] = tries - 1; tries <= 1 {
			delete(s.foreign, n)
		}
	}
	d.mu.Unlock()
	var t mailbox.Taken
	if all {
		t, _ = d.boxes[i].TakeIn(ctx)
	} else {
		t, _ = d.boxes[i].TakeInNamed(ctx, names...)
	}
	d.mu.Lock()
	s.last = time.Now()
	if t.Waiting > 0 {
		s.all = s.all || all
		for _, n := range names {
			if s.foreign == nil {
				s.foreign = map[string]int{}
			}
			s.foreign[n] = foreignTry
		}
		if soon := s.last.Add(dropWait); soon.Before(s.due) {
			s.due = soon
		}
	}
	due := s.due
	d.mu.Unlock()
	d.taken(i, t)
	return due
}

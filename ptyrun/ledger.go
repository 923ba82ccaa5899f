package ptyrun

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// ledger appends the runner's events in order, apart from the loop: a lock that
// somebody holds, or a slow disk, keeps nobody from typing. What cannot be
// appended (a full disk) is tried again, for a state that was not told is a lie
// that stays.
type ledger struct {
	box *mailbox.Box
	log *slog.Logger

	mu     sync.Mutex
	queue  []wire.Event
	closed bool
	more   chan struct{}
	done   chan struct{}
}

// keptEvents bounds what waits for a disk that has no room: the newest, for they
// say what is.
const keptEvents = 1024

func openLedger(box *mailbox.Box, log *slog.Logger) *ledger {
	l := &ledger{box: box, log: log, more: make(chan struct{}, 1), done: make(chan struct{})}
	go l.run()
	return l
}

// say queues an event.
func (l *ledger) say(e wire.Event) {
	e.Source = "pty"
	l.mu.Lock()
	l.keep(append(l.queue, e))
	l.mu.Unlock()
	l.wake()
}

func (l *ledger) keep(queue []wire.Event) { l.queue = queue[max(0, len(queue)-keptEvents):] }

func (l *ledger) wake() {
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// close appends what is queued, once, and ends.
func (l *ledger) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.wake()
	<-l.done
}

func (l *ledger) run() {
	defer close(l.done)
	pause := time.Duration(0)
	for {
		if pause > 0 {
			select {
			case <-l.more:
			case <-time.After(pause):
			}
		} else {
			<-l.more
		}
		l.mu.Lock()
		batch, closed := l.queue, l.closed
		l.queue = nil
		l.mu.Unlock()
		pause = 0
		if len(batch) > 0 {
			if err := l.box.Append(context.Background(), mailbox.AppendOptions{}, batch...); err != nil {
				l.log.Error("appending events", "err", err)
				l.mu.Lock()
				l.keep(append(batch, l.queue...))
				l.mu.Unlock()
				pause = 500 * time.Millisecond
			}
		}
		if closed {
			return
		}
	}
}

package ptyrun

import (
	"context"
	"log/slog"
	"time"

	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/wire"
)

// ledger appends the runner's events in order, apart from the loop: a lock that
// somebody holds, or a slow disk, keeps nobody from typing. What cannot be
// appended (a full disk) is tried again, for a state that was not told is a lie
// that stays.
type ledger struct {
	queue[wire.Event]
	box  *mailbox.Box
	log  *slog.Logger
	done chan struct{}
}

// keptEvents bounds what waits for a disk that has no room: the newest, for they
// say what is.
const keptEvents = 1024

func openLedger(box *mailbox.Box, log *slog.Logger) *ledger {
	l := &ledger{queue: newQueue[wire.Event](keptEvents), box: box, log: log, done: make(chan struct{})}
	go l.run()
	return l
}

// say queues an event.
func (l *ledger) say(e wire.Event) {
	e.Source = "pty"
	l.put(e)
}

// close appends what is queued, once, and ends.
func (l *ledger) close() {
	l.shut()
	<-l.done
}

func (l *ledger) run() {
	defer close(l.done)
	var again <-chan time.Time // after what could not be appended
	for {
		select {
		case <-l.more:
		case <-again:
		}
		again = nil
		batch, closed := l.all()
		if len(batch) > 0 {
			if err := l.box.Log().Append(context.Background(), batch...); err != nil {
				l.log.Error("appending events", "err", err)
				l.back(batch)
				again = time.After(500 * time.Millisecond)
			}
		}
		if closed {
			return
		}
	}
}

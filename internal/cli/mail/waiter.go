package mail

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/mailbox"
	"github.com/agentteammail/atm/watcher"
	"github.com/agentteammail/atm/wire"
)

// lockTick is how often runners' locks are probed: a kill writes no event.
const lockTick = time.Second

// A waiter waits until conditions are met. It watches from the moment it is made,
// so that nothing between a look and the wait is missed.
type waiter struct {
	conditions []condition
	every      bool         // all of them, not any
	met        []*met       // of each, as it was looked at last
	warn       func(string) // says at once where there is little to hope for; nil: silent
	watcher    *watcher.Watcher
}

func newWaiter(ctx context.Context, conditions []condition, every bool) (*waiter, error) {
	// Messages even where only events count: a dropped file may be either.
	options := watcher.Options{Messages: true, Events: true, After: map[wire.Address]uint64{}}
	var boxes []*mailbox.Box
	for _, c := range conditions {
		for box, after := range c.watches() {
			old, known := options.After[box.Address()]
			if !known {
				boxes = append(boxes, box)
				old = after
			}
			options.After[box.Address()] = min(old, after)
		}
	}
	w, err := watcher.Open(ctx, boxes, options)
	return &waiter{conditions: conditions, every: every, met: make([]*met, len(conditions)), watcher: w}, err
}

func (w *waiter) close() { w.watcher.Close() }

// wait returns when any condition, or every one at once, is met. A timeout of 0 is
// for ever.
func (w *waiter) wait(ctx context.Context, timeout time.Duration) error {
	if enough, err := w.look(ctx); enough || err != nil {
		return err
	}
	w.warnOnce()
	limited := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	for limited.Err() == nil {
		turn, cancel := context.WithTimeout(limited, lockTick)
		entry, err := w.watcher.Next(turn)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if err == nil {
			for _, c := range w.conditions {
				c.see(entry)
			}
		}
		if enough, err := w.look(ctx); enough || err != nil && !errors.Is(err, mailbox.ErrNoAgent) {
			return err // a directory that is moved may come back
		}
	}
	return w.inVain(timeout)
}

// look looks at every condition, and reports whether enough of them are met.
func (w *waiter) look(ctx context.Context) (enough bool, err error) {
	n := 0
	for i, c := range w.conditions {
		if w.met[i], err = c.look(ctx); err != nil {
			return false, err
		}
		if w.met[i] != nil {
			n++
		}
	}
	return n == len(w.conditions) || n > 0 && !w.every, nil
}

func (w *waiter) warnOnce() {
	said := map[string]bool{"": true}
	for i, c := range w.conditions {
		s, ok := c.(*stateCondition)
		if !ok || w.met[i] != nil || w.warn == nil || said[s.hopeless()] {
			continue
		}
		said[s.hopeless()] = true
		w.warn(s.hopeless())
	}
}

// inVain says what did not come, how things stand, and how to wait for it again.
func (w *waiter) inVain(timeout time.Duration) *command.Error {
	var again, standing []string
	what := ""
	for i, c := range w.conditions {
		if w.met[i] != nil {
			continue
		}
		flag := ""
		if what, flag = c.missing(); flag != "" {
			again = append(again, flag)
		}
		if s, ok := c.(*stateCondition); ok {
			standing = append(standing, s.standing())
		}
	}
	if len(w.conditions) > 1 {
		what = "not so"
	}
	e := command.Timeout("%s within %s", what, timeout)
	if len(standing) > 0 {
		e.Message += ": " + strings.Join(standing, ", ")
	}
	if len(again) > 1 && w.every {
		again = append(again, "--every")
	}
	return e.WithHint("%s", strings.TrimSpace(fmt.Sprintf("do other work, or again: atm wait %s", strings.Join(again, " "))))
}

package command

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/output"
	"github.com/agentteammail/atm/wire"
)

// Interruptible returns a context that a signal ends, for a verb that waits or takes long. A second after the signal
// the process exits even if it is stuck in a write.
func Interruptible(ctx context.Context) (_ context.Context, stop func()) {
	ctx, end := output.UntilSignal(ctx, syscall.SIGQUIT) // Go would print all goroutines at Ctrl-\
	var done atomic.Bool
	context.AfterFunc(ctx, func() {
		time.AfterFunc(time.Second, func() {
			if !done.Load() {
				os.Exit(ExitInterrupted)
			}
		})
	})
	return ctx, func() {
		done.Store(true)
		end()
	}
}

// Await calls wait with a context that ends at an interrupt, and when the root or an opened team was removed or
// renamed: the wait can never succeed then, and fails with that reason.
func (s *Scope) Await(wait func(ctx context.Context) error) error {
	return s.until(Via(s.c) != "", wait) // the calling program may be killed
}

// Follow calls show, which prints news as it arrives, until an interrupt, the removal of the team, or the end of the
// reader, which is no failure.
func (s *Scope) Follow(show func(ctx context.Context) error) error {
	err := s.until(true, show)
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// FollowFor is Follow for as long as a given --timeout, the end of which is no failure.
func (s *Scope) FollowFor(show func(ctx context.Context) error) error {
	err := s.Follow(func(ctx context.Context) error {
		if within := Duration(s.c, "timeout"); within > 0 && s.c.IsSet("timeout") {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, within)
			defer cancel()
		}
		return show(ctx)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// until calls f with a context that ends with the root and its teams and, where stdout has a reader, with the reader.
func (s *Scope) until(hasReader bool, f func(ctx context.Context) error) error {
	ctx, stop := Interruptible(s.c.Context)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for ctx.Err() == nil {
			if hasReader && output.ReaderGone(os.Stdout) {
				cancel(syscall.EPIPE)
			} else if err := s.Root.Lost(); err != nil {
				cancel(err)
			}
			Sleep(ctx, time.Second)
		}
	}()
	err := f(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// Sleep waits for a time, and reports whether ctx let it.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Interrupted is the error for an interrupted wait for a sent message's ack or reply; flag is that of atm wait.
func (s *Scope) Interrupted(flag string, id wire.ID) *Error {
	e := Failed("sent %s, but the wait was interrupted", id.Short(6)).WithHint("atm wait %s %s%s", flag, id.Short(6), s.Flags())
	e.Exit, e.Extra = ExitInterrupted, map[string]any{"id": id}
	return e
}

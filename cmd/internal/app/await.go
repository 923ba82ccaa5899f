package app

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/agentteammail/atm/cmd/internal/failure"
	"github.com/agentteammail/atm/cmd/internal/output"
	"github.com/agentteammail/atm/internal/teamdir/notices"
)

// Two kinds of functions wait. These call something that waits, and end it: at an interrupt, and when the team is removed.
//
//	Await, AwaitIn         for what comes once
//	Follow, FollowFor      for news that are printed as they come, also until the reader has gone
//
// What they call knows what to wait for:
//
//	Scope.Wait             conditions: mail, an answer, the state of an agent
//	UntilMail              a try that succeeds once a mailbox has what it needs
//	Scope.Ask              the answer to a question that it sends

// Interruptible returns a context that a signal ends, for a verb that waits or takes long. A second after the signal
// the process exits even if it is stuck in a write.
func Interruptible(ctx context.Context) (_ context.Context, stop context.CancelFunc) {
	ctx, end := output.UntilSignal(ctx, syscall.SIGQUIT) // Go would print all goroutines at Ctrl-\
	isOver := context.AfterFunc(ctx, func() {
		time.AfterFunc(time.Second, func() { os.Exit(failure.ExitInterrupted) })
	})
	return ctx, func() {
		isOver()
		end()
	}
}

// Await calls wait with a context that ends at an interrupt, and when the root or an opened team was removed or
// renamed: the wait can never succeed then, and fails with that reason.
func (s *Scope) Await(wait func(ctx context.Context) error) error {
	ctx, stop := Interruptible(context.Background())
	defer stop()
	return s.AwaitIn(ctx, wait)
}

// AwaitIn is Await for one of the calls that a program serves, whose context ends with the call.
func (s *Scope) AwaitIn(ctx context.Context, wait func(ctx context.Context) error) error {
	return s.until(ctx, false, wait)
}

// Follow calls show, which prints news as it arrives, until an interrupt, the removal of the team, or the end of the
// reader, which is no failure.
func (s *Scope) Follow(show func(ctx context.Context) error) error {
	ctx, stop := Interruptible(context.Background())
	defer stop()
	err := s.until(ctx, true, show)
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// FollowFor is Follow for at most some time, the end of which is no failure; 0: without a limit.
func (s *Scope) FollowFor(d time.Duration, show func(ctx context.Context) error) error {
	if d == 0 {
		return s.Follow(show)
	}
	err := s.Follow(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return show(ctx)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// until calls f with a context that ends also with the root and its teams and, where stdout has a reader, with the reader.
func (s *Scope) until(ctx context.Context, hasReader bool, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for ctx.Err() == nil {
			if hasReader && output.ReaderGone(s.Given.Out) {
				cancel(syscall.EPIPE)
			} else if err := s.Root.CheckPaths(); err != nil {
				cancel(err)
			}
			Sleep(ctx, time.Second)
		}
	}()
	if s.Team != nil {
		go notices.KeepLooking(ctx, s.Team)
	}
	err := f(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// Sleep sleeps; it returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

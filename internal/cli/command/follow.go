package command

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/output"
)

// Await calls f, which waits for something, with a context that ends when it is
// interrupted, or when the root or a team that is in use was removed or renamed:
// what is awaited there never comes. That is then the error.
func (s *Scope) Await(f func(ctx context.Context) error) error {
	return s.until(f, s.Root.Lost)
}

// Follow calls f, which shows what comes, until it is interrupted, the team is
// gone, or nobody reads the output any more, which is no failure.
func (s *Scope) Follow(f func(ctx context.Context) error) error {
	err := s.until(f, func() error {
		if output.ReaderGone(os.Stdout) {
			return syscall.EPIPE
		}
		return s.Root.Lost()
	})
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// until calls f with a context that ends when check, asked every second, returns
// an error.
func (s *Scope) until(f func(ctx context.Context) error, check func() error) error {
	ctx, stop := Interruptible(s.c.Context)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := check(); err != nil {
				cancel(err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	err := f(ctx)
	cause := context.Cause(ctx)
	cancel(nil)
	<-done
	if err != nil && cause != nil {
		return cause
	}
	return err
}

// Package command is what the verbs of atm share.
//
// A verb is a *cli.Command (github.com/urfave/cli/v2) in the package of its group. Its
// action gets a Scope (With), calls one thing and prints one value.
//
//	UsageText    examples, a line each; the first is also a hint
//	Usage        its line in `atm help all`
//	Aliases      synonyms; they work, and stand in no list
//	ArgsUsage    counted as well: [brackets] may be missing, what has an … may repeat,
//	             CMD begins a command line of somebody else's. Args: true counts for itself
//
// Any error may be returned: Explain gives it its exit code and hint. Results go to stdout through Print alone, the
// rest to stderr through Warn. Text from outside is escaped where it becomes part of a line (letter.Escape).
package command

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/agentteammail/atm/internal/output"
)

// Interruptible is for what waits or takes long: a context that an interrupt ends. What is stuck in a write that nobody
// reads ends a second later all the same. A pipe that nobody reads is then an error of writing.
func Interruptible(ctx context.Context) (_ context.Context, stop func()) {
	ctx, end := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	output.IgnoreSIGPIPE()
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

// Await calls f, which waits for something, with a context that ends when it is interrupted, or when the root or a team
// that is in use was removed or renamed: what is awaited there never comes. That is then the error.
func (s *Scope) Await(f func(ctx context.Context) error) error {
	return s.until(Via(s.c) != "", f) // the program that asked may be killed
}

// Follow calls f, which shows what comes, until it is interrupted, the team is
// gone, or nobody reads the output any more, which is no failure.
func (s *Scope) Follow(f func(ctx context.Context) error) error {
	err := s.until(true, f)
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// FollowFor is Follow for at most --timeout, the end of which is no failure.
func (s *Scope) FollowFor(f func(ctx context.Context) error) error {
	err := s.Follow(func(ctx context.Context) error {
		if within := Duration(s.c, "timeout"); within > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, within)
			defer cancel()
		}
		return f(ctx)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// until calls f with a context that ends with the root or its teams and, where stdout has a reader, with that.
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
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	err := f(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

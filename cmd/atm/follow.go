package main

import (
	"context"
	"time"

	"github.com/agentteammail/atm/internal/outlet"
)

// lookForTeam is how often who waits looks whether the team is still there.
const lookForTeam = 3 * time.Second

// following calls f, which shows what comes for as long as somebody reads it
// and the team is there. That nobody reads any more is no failure.
func (e *env) following(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, stop := outlet.WhileRead(ctx, e.Stdout)
	defer stop()
	err := e.whileThere(ctx, f)
	if context.Cause(ctx) == outlet.ErrReaderGone {
		return nil
	}
	return quietEnd(err)
}

// whileThere calls f with a context that ends when the root or a team that is
// in use was removed or renamed: what is awaited there never comes. That is
// then the error.
func (e *env) whileThere(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var lost error // of the goroutine, until ended
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(lookForTeam)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if lost = e.root.Lost(); lost != nil {
					cancel()
					return
				}
			}
		}
	}()
	err := f(ctx)
	cancel()
	<-ended
	if lost != nil && err != nil {
		return lost
	}
	return err
}

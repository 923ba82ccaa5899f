// Package loop is how a run is kept by one goroutine: nobody else touches what belongs to it, so nothing of it is locked.
// Other goroutines have the loop call functions (Post, Call, In, Poll) and bring it things (Feed); what waits for a disk, a
// lock or a program is done beside it (Go, Worker, Retry). It knows nothing of agents, and imports nothing of ours.
package loop

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// A Loop is the one goroutine that owns what belongs to a run, as others know it: they have it call functions, and give it
// work for later. Whose loop it is calls Begin, does what is due, and waits for Calls, for Timer, and for what else there is.
type Loop struct {
	Log *slog.Logger
	Now func() time.Time

	ctx      context.Context
	calls    chan func() // unbuffered, so that none is left over when the loop ends
	wg       sync.WaitGroup
	nextStep time.Time
}

// ErrOver means that the loop has ended, because its program has.
var ErrOver = errors.New("the program has ended")

// New returns a loop that ends with ctx.
func New(ctx context.Context, log *slog.Logger, now func() time.Time) *Loop {
	return &Loop{Log: log, Now: now, ctx: ctx, calls: make(chan func())}
}

// Context ends with the loop.
func (l *Loop) Context() context.Context { return l.ctx }

// Calls has the functions to call.
func (l *Loop) Calls() <-chan func() { return l.calls }

// Begin begins a round, in which WakeAt says when the next one is due.
func (l *Loop) Begin(now time.Time) { l.nextStep = now.Add(time.Hour) }

// Timer receives when the next round is due.
func (l *Loop) Timer() <-chan time.Time { return time.After(l.nextStep.Sub(l.Now())) }

// WakeAt has the next round begin at that time at the latest. Zero is never.
func (l *Loop) WakeAt(at time.Time) {
	if !at.IsZero() && at.Before(l.nextStep) {
		l.nextStep = at
	}
}

// MustWait reports whether a time is in the future. If it is, a round begins then.
func (l *Loop) MustWait(at, now time.Time) bool {
	if now.Before(at) {
		l.WakeAt(at)
	}
	return now.Before(at)
}

// Go calls f beside the loop, and Wait waits for all that was called so.
func (l *Loop) Go(f func()) { l.wg.Go(f) }
func (l *Loop) Wait()       { l.wg.Wait() }

// Post makes the loop call f. It returns false if the loop has ended.
func (l *Loop) Post(f func()) bool {
	select {
	case l.calls <- f:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// Call makes the loop call f, and returns when it has. It returns false if the loop has ended.
func (l *Loop) Call(f func()) bool {
	done := make(chan struct{})
	if !l.Post(func() { f(); close(done) }) {
		return false
	}
	<-done
	return true
}

// In makes the loop call f and returns its results.
func In[T any](l *Loop, f func() (T, error)) (out T, err error) {
	if !l.Call(func() { out, err = f() }) {
		return out, ErrOver
	}
	return out, err
}

// pollDelay is between two questions of Poll.
const pollDelay = 20 * time.Millisecond

// Poll asks the loop again and again whether a condition holds. It returns false after within, and when the loop has
// ended.
func (l *Loop) Poll(within time.Duration, holds func() bool) (isSo bool) {
	for until := time.Now().Add(within); time.Now().Before(until); time.Sleep(pollDelay) {
		if !l.Call(func() { isSo = holds() }) || isSo {
			return isSo
		}
	}
	return false
}

// Retry calls try until it succeeds. When the loop has ended it calls it once.
func (l *Loop) Retry(what string, try func() error) {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		isLast := l.ctx.Err() != nil
		err := try()
		if err == nil {
			return
		}
		l.Log.Error(what, "err", err)
		if isLast {
			return
		}
		select {
		case <-time.After(pause):
		case <-l.ctx.Done():
		}
	}
}

// Earlier returns the earlier of two times. Zero is never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Package output writes messages and knows which of them somebody received.
//
// A message counts as read once its reader has received it: a reader that is killed,
// a full disk, `| head -3` never consume a message. For a pipe on Linux, received is
// what was read out of it. A reader that does not read until its patience is over gets
// the rest at once: many programs read their child's output only when it has ended.
package output

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// Show writes the pieces to f and returns how many of them, from the first on,
// were received. err is the first error of writing (EPIPE when the reader has
// gone) or that of ctx; it is nil when everything was received.
func Show(ctx context.Context, f *os.File, patience time.Duration, pieces [][]byte) (received int, err error) {
	IgnoreSIGPIPE()
	deadline := time.Now().Add(patience)
	taken := 0
	for _, line := range bytes.SplitAfter(slices.Concat(pieces...), []byte("\n")) {
		var n int
		n, err = f.Write(line)
		taken += n
		if err == nil {
			err = WaitUntilRead(ctx, f, deadline)
		}
		if err != nil {
			unread, _ := Unread(f)
			taken -= unread
			break
		}
	}
	for _, piece := range pieces {
		if taken -= len(piece); taken < 0 {
			break
		}
		received++
	}
	return received, err
}

// WaitUntilRead returns when nothing is left in the pipe, or the deadline is over.
func WaitUntilRead(ctx context.Context, f *os.File, deadline time.Time) error {
	for time.Now().Before(deadline) {
		unread, _ := Unread(f)
		if unread == 0 {
			return nil
		}
		if ReaderGone(f) {
			return &os.PathError{Op: "write", Path: f.Name(), Err: syscall.EPIPE}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(200 * time.Microsecond)
	}
	return nil
}

// IgnoreSIGPIPE makes writing to a pipe that nobody reads an error. The signal is
// caught, not ignored: an ignored one would stay so in programs started from this one.
func IgnoreSIGPIPE() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// UntilSignal is a context that ends when this process is told to end; a hangup is not heard where nohup has it
// ignored. Writing to a pipe that nobody reads is an error from then on.
func UntilSignal(ctx context.Context, also ...os.Signal) (_ context.Context, stop context.CancelFunc) {
	IgnoreSIGPIPE()
	if !signal.Ignored(syscall.SIGHUP) {
		also = append(also, syscall.SIGHUP)
	}
	return signal.NotifyContext(ctx, append(also, os.Interrupt, syscall.SIGTERM)...)
}

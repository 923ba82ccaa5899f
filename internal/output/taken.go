// Package output writes messages and knows which of them somebody received.
//
// A message counts as read once its reader has received it: a reader that is
// killed, a full disk, `| head -3` never consume a message whose bytes they did
// not get. What may be relied on, by what the output is:
//
//   - A pipe on Linux: received is what was read out of it, which the kernel
//     tells (FIONREAD). Lines are written one by one, the next when the last was
//     read, so that a reader that quits after three lines has not got the fourth.
//   - A reader that is there and does not read is waited for until the patience
//     is over. Then the rest is written, and all of it counts as received: many
//     programs read their child's output only when it has ended.
//   - Anything else: received is what write returned for.
//
// A reader may read and then do nothing with it; nobody can know that.
package output

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Show writes the pieces to f and returns how many of them, from the first on,
// were received. err is the first error of writing (EPIPE when the reader has
// gone) or that of ctx; it is nil when everything was received.
func Show(ctx context.Context, f *os.File, patience time.Duration, pieces [][]byte) (received int, err error) {
	IgnoreSIGPIPE()
	deadline := time.Now().Add(patience)
	written, taken := 0, 0
	_, counted := Unread(f)
write:
	for _, piece := range pieces {
		for _, line := range bytes.SplitAfter(piece, []byte("\n")) {
			var n int
			n, err = f.Write(line)
			written += n
			if err != nil {
				break write
			}
			if counted && time.Now().Before(deadline) {
				if err = waitUntilRead(ctx, f, deadline); err != nil {
					break write
				}
			}
		}
	}
	taken = written
	if counted && err != nil {
		unread, _ := Unread(f)
		taken = max(0, written-unread)
	}
	for _, piece := range pieces {
		if taken -= len(piece); taken < 0 {
			break
		}
		received++
	}
	return received, err
}

// waitUntilRead returns when nothing is left in the pipe, or the deadline is
// over; the error says that the reader has gone.
func waitUntilRead(ctx context.Context, f *os.File, deadline time.Time) error {
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 2*time.Millisecond) {
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
		if !time.Now().Before(deadline) {
			return nil
		}
		time.Sleep(pause)
	}
}

// IgnoreSIGPIPE makes writing to a pipe that nobody reads an error instead of
// the end of the program. The signal is caught, not ignored: an ignored one
// would stay ignored in programs started from this one.
func IgnoreSIGPIPE() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// Package output writes messages and reports which of them their reader received.
//
// A message counts as read once its reader has received it: neither a killed reader nor a full disk nor `| head -3`
// consumes one. From a pipe or a socket on Linux, received is what was read out of it. Once patience has run out, the
// rest is written at once and counts as received: many programs read their child's output only when the child has
// exited.
package output

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// Patience is how long a command waits for a slow reader.
const Patience = 1800 * time.Millisecond

// Show writes the pieces to w and returns how many of them, from the first on, were received. err is nil if all were;
// else it is the first write error (EPIPE: the reader closed the pipe; on stdout only after IgnoreSIGPIPE, or by
// Standard) or that of ctx.
func Show(ctx context.Context, w io.Writer, patience time.Duration, pieces [][]byte) (received int, err error) {
	deadline := time.Now().Add(patience)
	bytesRead := 0
	for line := range bytes.Lines(slices.Concat(pieces...)) {
		var n int
		n, err = w.Write(line)
		bytesRead += n
		if err == nil {
			err = WaitUntilRead(ctx, w, deadline)
		}
		if err != nil {
			unread, _ := Unread(file(w))
			bytesRead -= unread
			break
		}
	}
	for _, piece := range pieces {
		if bytesRead -= len(piece); bytesRead < 0 {
			break
		}
		received++
	}
	return received, err
}

// bytesLeft returns how many bytes of a regular file are left to be read.
func bytesLeft(f *os.File) int {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0
	}
	return int(max(0, info.Size()-at))
}

// WaitUntilRead returns nil once the pipe is empty or the deadline has passed.
func WaitUntilRead(ctx context.Context, w io.Writer, deadline time.Time) error {
	f := file(w)
	for time.Now().Before(deadline) {
		unread, _ := Unread(f)
		if unread == 0 {
			return nil
		}
		if ReaderGone(w) {
			return &os.PathError{Op: "write", Path: f.Name(), Err: syscall.EPIPE}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(200 * time.Microsecond)
	}
	return nil
}

// IgnoreSIGPIPE turns a write to a closed pipe into an error. It catches the signal: child processes would inherit an
// ignored one.
func IgnoreSIGPIPE() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// UntilSignal returns a context that ends at SIGINT, SIGTERM, SIGHUP (unless nohup ignores it) and some more. It also
// calls IgnoreSIGPIPE.
func UntilSignal(ctx context.Context, also ...os.Signal) (_ context.Context, stop context.CancelFunc) {
	IgnoreSIGPIPE()
	if !signal.Ignored(syscall.SIGHUP) {
		also = append(also, syscall.SIGHUP)
	}
	return signal.NotifyContext(ctx, append(also, os.Interrupt, syscall.SIGTERM)...)
}

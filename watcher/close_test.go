package watcher

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestNextEndsWithItsContextAndWithClose(t *testing.T) {
	_, bob := bobs(t)
	w := watch(t, Options{Messages: true, Events: true}, bob)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := w.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	ended := make(chan error)
	go func() {
		_, err := w.Next(context.Background())
		ended <- err
	}()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != ErrClosed {
		t.Error(err)
	}
	if _, err := w.Next(t.Context()); err != ErrClosed {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error("closed again:", err)
	}
}

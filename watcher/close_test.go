package watcher

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/agentteammail/atm/mailbox"
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

func TestCloseLeavesNoGoroutine(t *testing.T) {
	s := openStore(t, memoryDir(t), "bob", "carol")
	before := runtime.NumGoroutine()
	for range 20 {
		w, err := Open(t.Context(), []*mailbox.Box{s.Box("bob"), s.Box("carol")}, Options{Messages: true, Events: true})
		if err != nil {
			t.Fatal(err)
		}
		deliver(t, s.Box("bob"), "m")
		next(t, w)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%s", buf[:runtime.Stack(buf, true)])
		}
	}
}

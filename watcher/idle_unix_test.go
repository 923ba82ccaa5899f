//go:build unix

package watcher

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestIdleCostsNothing(t *testing.T) {
	s := openStore(t, memoryDir(t), "bob")
	publish(t, s.Box("bob"), 2000)
	hearing := watch(t, Options{Messages: true, Events: true, Rescan: 500 * time.Millisecond}, s.Box("bob"))
	polling := watch(t, Options{Messages: true, Events: true, ForcePoll: true, Poll: 500 * time.Millisecond}, s.Box("bob"))
	// What is young is listed again until it has settled.
	idle(t, settle+600*time.Millisecond, hearing, polling)
	before := cpu(t)
	idle(t, 2*time.Second, hearing, polling)
	used := cpu(t) - before
	t.Log(used, "of CPU in 2 s, by both")
	if used > 20*time.Millisecond {
		t.Errorf("used %v of CPU in 2 s", used)
	}
}

func idle(t *testing.T, d time.Duration, watchers ...*Watcher) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var wg sync.WaitGroup
	for _, w := range watchers {
		wg.Go(func() {
			if e, err := w.Next(ctx); err != context.DeadlineExceeded {
				t.Error(word(e), err)
			}
		})
	}
	wg.Wait()
}

func cpu(t *testing.T) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

//go:build unix

package watcher

import (
	"context"
	"syscall"
	"testing"
	"time"
)

func TestIdleCostsNothing(t *testing.T) {
	s := openStore(t, memoryDir(t), "bob")
	publish(t, s.Box("bob"), 2000)
	w := watch(t, Options{Messages: true, Events: true, rescan: pollEvery}, s.Box("bob"))
	before := cpu(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if e, err := w.Next(ctx); err != context.DeadlineExceeded {
		t.Error(word(e), err)
	}
	used := cpu(t) - before
	t.Log(used, "of CPU in 2 s")
	if used > 20*time.Millisecond {
		t.Errorf("used %v of CPU in 2 s", used)
	}
}

func cpu(t *testing.T) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

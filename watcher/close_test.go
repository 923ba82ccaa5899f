package watcher

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
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

// Until looks before anything is missed, then at each entry, and at times without one; the end of its context says why.
func TestUntil(t *testing.T) {
	t.Parallel()
	_, bob := bobs(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	var got []Entry
	err := Until(ctx, []Mailbox{bob}, Options{Messages: true}, func(e Entry) (bool, error) {
		got = append(got, e)
		switch len(got) {
		case 1:
			deliver(t, bob, "hello")
		case 3:
			cancel(why)
		}
		return false, nil
	})
	if err != why || len(got) != 3 || got[0] != (Entry{}) || got[1].Message == nil || got[2].Err == nil || got[2].Address.Agent != "" {
		t.Error(err, got)
	}
}

// A directory may be added while nobody takes events, as on Windows, where Add waits for those before it; and when more
// come than are kept, that is known.
func TestEventsAreReceivedWhileNobodyTakesThem(t *testing.T) {
	d, err := OpenDirs()
	must(t, err)
	defer d.Close()
	d.keeps = true
	for range maxEvents + 1 {
		d.fs.Events <- fsnotify.Event{Name: "x"}
	}
	d.fs.Errors <- errors.New("no more")
	d.Add(t.TempDir())
	<-d.Changed()
	var events []fsnotify.Event
	var lost error
	for len(events) < maxEvents || lost == nil { // the last ones may not be noted yet
		more, err := d.take()
		events, lost = append(events, more...), cmp.Or(lost, err)
	}
}

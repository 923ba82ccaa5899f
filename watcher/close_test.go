package watcher

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/agentteammail/atm/internal/maildir"
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
	_, bob := bobs(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	var got []Entry
	err := Until(ctx, []*maildir.Box{bob}, Options{Messages: true}, func(e Entry) (bool, error) {
		got = append(got, e)
		switch len(got) {
		case 1:
			deliver(t, bob, "hello")
		case 3:
			cancel(why)
		}
		return false, nil
	})
	if err != why || len(got) != 3 || got[0] != (Entry{}) || got[1].Message == nil || got[2].Err == nil || got[2].Box != nil {
		t.Error(err, got)
	}
}

// A call of the notifier may have to wait until the events that it sends are received, as on Windows: they are, and none
// is lost.
func TestNotifierIsCalledWhileItSends(t *testing.T) {
	events, lost := make(chan fsnotify.Event), make(chan error)
	w := &Watcher{events: events, lost: lost}
	want := errors.New("no such directory")
	err := w.receiving(func() error {
		events <- fsnotify.Event{Name: "x"}
		lost <- fsnotify.ErrEventOverflow
		events <- fsnotify.Event{Name: "y"}
		return want
	})
	if err != want || len(w.later) != 3 {
		t.Errorf("%v, %d events wait", err, len(w.later))
	}
}

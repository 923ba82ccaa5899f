//go:build linux || darwin || freebsd

package control

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// terminal is a terminal in a test.
type terminalFake struct {
	in    chan []byte
	sizes chan Size
	mu    sync.Mutex
	seen  bytes.Buffer
}

func newTerminal() *terminalFake {
	return &terminalFake{in: make(chan []byte), sizes: make(chan Size)}
}

func (f *terminalFake) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen.Write(p)
}

func (f *terminalFake) shows(t *testing.T, want string) {
	t.Helper()
	eventually(t, func() bool { return strings.HasSuffix(f.String(), want) }, func() string { return "shows " + f.String() + ", not " + want })
}

func (f *terminalFake) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen.String()
}

func (f *terminalFake) terminal() Terminal { return Terminal{In: f.in, Out: f, Sizes: f.sizes} }

type ended struct {
	Ending
	err error
}

// join attaches; what comes of it arrives on the channel.
func join(t *testing.T, ctx context.Context, dir string, f *terminalFake, readOnly bool) <-chan ended {
	t.Helper()
	c := connectTo(t, dir)
	out := make(chan ended, 1)
	go func() {
		e, err := c.Attach(ctx, AttachRequest{Cols: 80, Rows: 24, ReadOnly: readOnly}, f.terminal())
		out <- ended{e, err}
	}()
	return out
}

// room is a runner that shows every viewer what any of them types, and how
// large each is.
type room struct {
	fake
	mu      sync.Mutex
	viewers map[*Viewer]bool
	sizes   []Size
	left    int
	exit    chan struct{}
}

func newRoom() *room {
	r := &room{viewers: map[*Viewer]bool{}, exit: make(chan struct{})}
	r.attach = r.serve
	return r
}

func (r *room) serve(ctx context.Context, req AttachRequest, v *Viewer) error {
	v.Send([]byte("hello"))
	r.mu.Lock()
	r.viewers[v] = true
	r.sizes = append(r.sizes, Size{req.Cols, req.Rows})
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.viewers, v)
		r.left++
		r.mu.Unlock()
	}()
	for {
		select {
		case in, ok := <-v.Input():
			if !ok {
				return nil
			}
			r.mu.Lock()
			if in.Size.Cols > 0 {
				r.sizes = append(r.sizes, in.Size)
			}
			for o := range r.viewers {
				o.Send(in.Bytes)
			}
			r.mu.Unlock()
		case <-r.exit:
			v.Send([]byte("bye"))
			v.Exit(143, "terminated")
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *room) count() (viewers, left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.viewers), r.left
}

// Several look and type; one detaches, one is only looking, one sees the end.
func TestAttach(t *testing.T) {
	r := newRoom()
	dir, _ := start(t, r)
	a, b, c := newTerminal(), newTerminal(), newTerminal()
	endA, endB, endC := join(t, t.Context(), dir, a, false), join(t, t.Context(), dir, b, false), join(t, t.Context(), dir, c, true)
	for _, f := range []*terminalFake{a, b, c} {
		f.shows(t, "hello")
	}
	a.in <- []byte("ls\x1b[A\r")
	for _, f := range []*terminalFake{a, b, c} {
		f.shows(t, "hellols\x1b[A\r")
	}
	c.in <- []byte("rm -rf\r")
	a.sizes <- Size{100, 40}
	a.in <- []byte("\x1b")
	b.shows(t, "\r\x1b") // a lone Escape is not kept
	a.in <- []byte("\x1c")
	a.in <- []byte("drm")
	if e := <-endA; e.err != nil || !e.Detached || e.Gone || e.Exit != nil {
		t.Errorf("%+v", e)
	}
	b.in <- []byte("ü")
	c.shows(t, "\x1bü")
	close(b.in)
	if e := <-endB; e.err != nil || !e.Detached || !e.Gone {
		t.Errorf("%+v", e)
	}
	close(r.exit)
	if e := <-endC; e.err != nil || e.Detached || e.Exit == nil || *e.Exit != (Exit{143, "terminated"}) {
		t.Errorf("%+v", e)
	}
	if got, want := c.String(), "hellols\x1b[A\r\x1bübye"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	eventually(t, func() bool { _, left := r.count(); return left == 3 }, func() string { return "a viewer is still served" })
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := cmp.Diff([]Size{{80, 24}, {80, 24}, {80, 24}, {100, 40}}, r.sizes); diff != "" {
		t.Error(diff)
	}
}

// The context ends an attachment as the key does; a connection that breaks ends
// the Handler's part.
func TestAttachEnds(t *testing.T) {
	r := newRoom()
	dir, s := start(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	a := newTerminal()
	end := join(t, ctx, dir, a, false)
	a.shows(t, "hello")
	cancel()
	if e := <-end; e.err != nil || !e.Detached || e.Gone {
		t.Errorf("%+v", e)
	}
	c := connectTo(t, dir)
	if err := c.call(t.Context(), request{Op: opAttach, Cols: 1, Rows: 1}, nil); err != nil {
		t.Fatal(err)
	}
	c.Close()
	eventually(t, func() bool { n, left := r.count(); return n == 0 && left == 2 }, func() string { return "a viewer that has gone is still served" })
	b := newTerminal()
	end = join(t, t.Context(), dir, b, false)
	b.shows(t, "hello")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if e := <-end; e.err != nil || e.Detached || e.Reason != "the runner ends" {
		t.Errorf("%+v", e)
	}
}

// A refusal is an answer, not an attachment.
func TestAttachRefused(t *testing.T) {
	dir, _ := start(t, &fake{attach: func(context.Context, AttachRequest, *Viewer) error {
		return &Error{"refused", "not now", "later"}
	}})
	f := newTerminal()
	var e *Error
	if end := <-join(t, t.Context(), dir, f, false); !errors.As(end.err, &e) || e.Code != "refused" || e.Hint != "later" {
		t.Errorf("%+v", end)
	}
	if f.String() != "" {
		t.Errorf("wrote %q", f.String())
	}
}

// A terminal whose program panics, or that fails, ends the attachment, the panic
// in the caller's goroutine.
type brokenTerminal struct{ why any }

func (b brokenTerminal) Write([]byte) (int, error) {
	if err, ok := b.why.(error); ok {
		return 0, err
	}
	panic(b.why)
}

func TestAttachBreaks(t *testing.T) {
	dir, _ := start(t, newRoom())
	broken := errors.New("broken")
	_, err := connectTo(t, dir).Attach(t.Context(), AttachRequest{Cols: 9, Rows: 9}, Terminal{Out: brokenTerminal{broken}})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	defer func() {
		if p := recover(); p != "oh" {
			t.Errorf("%v", p)
		}
	}()
	connectTo(t, dir).Attach(t.Context(), AttachRequest{Cols: 9, Rows: 9}, Terminal{Out: brokenTerminal{"oh"}})
}

// Who does not read is spared what it cannot take in, and gets a picture when it
// can; the agent and the other viewers never wait.
func TestSlowViewer(t *testing.T) {
	flood := bytes.Repeat([]byte("0123456789abcde\n"), 1<<12) // 64 KiB
	behind := make(chan error, 1)
	dir, _ := start(t, &fake{attach: func(ctx context.Context, r AttachRequest, v *Viewer) error {
		if r.ReadOnly { // the one that reads
			for range 100 {
				for v.Send(flood) != nil {
					return errors.New("behind though it reads")
				}
				eventually(t, func() bool { v.mu.Lock(); defer v.mu.Unlock(); return len(v.queue) < len(flood) }, func() string { return "does not drain" })
			}
			return nil
		}
		began := time.Now()
		for {
			if err := v.Send(flood); err != nil {
				behind <- err
				break
			}
			if time.Since(began) > 5*time.Second {
				behind <- errors.New("never behind")
				break
			}
		}
		select {
		case <-v.Ready():
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := v.Send([]byte("lost")); !errors.Is(err, ErrViewerBehind) {
			t.Error(err)
		}
		return errors.Join(v.Picture([]byte("the picture")), v.Send([]byte(", and more")))
	}})
	c := connectTo(t, dir)
	if err := c.call(t.Context(), request{Op: opAttach, Cols: 80, Rows: 24}, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-behind; !errors.Is(err, ErrViewerBehind) {
		t.Error(err)
	}
	s := &stream{client: c}
	slow := newTerminal()
	if end := s.show(slow); end.err != nil || end.Reason != "detached" {
		t.Errorf("%+v", end)
	}
	if got := slow.String(); !strings.HasSuffix(got, "\x18the picture, and more") || strings.Contains(got, "lost") || len(got) > 4*maxQueue {
		t.Errorf("%d bytes, at the end %q", len(got), got[max(0, len(got)-60):])
	}
	reader := newTerminal()
	if end := <-join(t, t.Context(), dir, reader, true); end.err != nil || end.Reason != "detached" {
		t.Errorf("%+v", end)
	}
	if want := bytes.Repeat(flood, 100); reader.String() != string(want) {
		t.Errorf("%d bytes, not %d", len(reader.String()), len(want))
	}
}

// What is typed while the runner does not take it waits, and the key works.
func TestRunnerTakesNothing(t *testing.T) {
	stuck := make(chan struct{})
	dir, _ := start(t, &fake{attach: func(ctx context.Context, _ AttachRequest, v *Viewer) error {
		v.Send([]byte("here"))
		<-stuck
		return nil
	}})
	f := newTerminal()
	end := join(t, t.Context(), dir, f, false)
	f.shows(t, "here")
	for range 64 {
		f.in <- bytes.Repeat([]byte("x"), 32<<10)
	}
	f.in <- []byte("\x1cd")
	if e := <-end; e.err != nil || !e.Detached {
		t.Errorf("%+v", e)
	}
	close(stuck)
}

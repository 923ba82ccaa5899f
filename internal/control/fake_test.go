//go:build linux || darwin || freebsd

package control

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// fake is a runner made of functions; one that is missing says what it was
// asked for.
type fake struct {
	status    func(ctx context.Context) (Status, error)
	screen    func(ctx context.Context, r ScreenRequest) (Screen, error)
	typed     func(ctx context.Context, r TypeRequest) (Outcome, error)
	interrupt func(ctx context.Context) (Outcome, error)
	answer    func(ctx context.Context, r AnswerRequest) (Outcome, error)
	stop      func(ctx context.Context, r StopRequest) (Outcome, error)
	attach    func(ctx context.Context, r AttachRequest, v *Viewer) error
}

func (f *fake) Status(ctx context.Context) (Status, error) {
	if f.status == nil {
		return Status{State: "idle", PID: os.Getpid()}, nil
	}
	return f.status(ctx)
}

func (f *fake) Screen(ctx context.Context, r ScreenRequest) (Screen, error) {
	if f.screen == nil {
		return Screen{Lines: []string{"one", "zwei ✳"}, Title: "t;itle"}, nil
	}
	return f.screen(ctx, r)
}

func (f *fake) Type(ctx context.Context, r TypeRequest) (Outcome, error) {
	if f.typed == nil {
		return Outcome{Done: "typed", Detail: r.Text}, nil
	}
	return f.typed(ctx, r)
}

func (f *fake) Interrupt(ctx context.Context) (Outcome, error) {
	if f.interrupt == nil {
		return Outcome{Done: "interrupted"}, nil
	}
	return f.interrupt(ctx)
}

func (f *fake) Answer(ctx context.Context, r AnswerRequest) (Outcome, error) {
	if f.answer == nil {
		return Outcome{Done: "answered", Detail: r.ID + r.Option + r.Reason + r.By}, nil
	}
	return f.answer(ctx, r)
}

func (f *fake) Stop(ctx context.Context, r StopRequest) (Outcome, error) {
	if f.stop == nil {
		return Outcome{Done: "stopped", Detail: r.Grace.String(), Ended: []string{"sleep 60 (77)"}}, nil
	}
	return f.stop(ctx, r)
}

func (f *fake) Restart(context.Context) (Outcome, error) { return Outcome{Done: "restarted"}, nil }

func (f *fake) Attach(ctx context.Context, r AttachRequest, v *Viewer) error {
	return f.attach(ctx, r, v)
}

// start serves in a directory of its own until the test ends, and sees to it
// that nothing of the server is left then.
func start(t *testing.T, h Handler) (dir string, s *Server) {
	t.Helper()
	dir = t.TempDir()
	return dir, startIn(t, dir, h)
}

func startIn(t *testing.T, dir string, h Handler) *Server {
	t.Helper()
	s, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), h) }()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		select {
		case err := <-served:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Error("Serve did not end")
		}
		if _, err := os.Lstat(filepath.Join(dir, SocketName)); err == nil {
			t.Error("the socket is still there")
		}
		noneLeft(t)
	})
	return s
}

// noneLeft waits until no goroutine runs this package's code but the tests.
func noneLeft(t *testing.T) {
	t.Helper()
	var stacks string
	eventually(t, func() bool {
		buf := make([]byte, 1<<20)
		stacks = string(buf[:runtime.Stack(buf, true)])
		return !strings.Contains(stacks, "control.(*conn)") && !strings.Contains(stacks, "control.(*Server)") &&
			!strings.Contains(stacks, "control.(*Viewer)") && !strings.Contains(stacks, "control.(*stream)")
	}, func() string { return "goroutines are left:\n" + stacks })
}

// eventually waits for a state.
func eventually(t *testing.T, so func() bool, otherwise func() string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(otherwise())
		}
	}
}

// connect is a client that ends with the test.
func connectTo(t *testing.T, dir string) *Client {
	t.Helper()
	c, err := Dial(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// rawTo is a connection whose greeting was read.
func rawTo(t *testing.T, dir string) *Client { return connectTo(t, dir) }

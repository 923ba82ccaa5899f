//go:build linux || darwin || freebsd

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/cli/command"
	"github.com/agentteammail/atm/ptyrun/control"
)

// A stage is a team with an agent bob whose runner is this test: it keeps what
// it is asked for. Commands are run as processes of their own.
type stage struct {
	t    *testing.T
	root string
	env  []string

	// What bob's runner does; set before serve.
	attach func(ctx context.Context, r control.AttachRequest, v *control.Viewer) error
	screen control.Screen
	refuse error

	mu    sync.Mutex
	asked []string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	dir := t.TempDir()
	s := &stage{t: t, root: filepath.Join(dir, ".atm")}
	for _, kv := range os.Environ() {
		k, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(k, "ATM_") && !slices.Contains(command.AgentMarks(), k) {
			s.env = append(s.env, kv)
		}
	}
	// The race detector would wait a second at each process's end.
	s.env = append(s.env, "HOME="+dir, "XDG_STATE_HOME="+dir, "ATM_ROOT="+s.root, "GORACE=atexit_sleep_ms=0")
	s.atm(0, "init", "alice", "bob")
	return s
}

// serve begins to answer as bob's runner.
func (s *stage) serve() {
	s.t.Helper()
	run := filepath.Join(s.root, "main", "bob", "run")
	if err := os.MkdirAll(run, 0o700); err != nil {
		s.t.Fatal(err)
	}
	server, err := control.Listen(run)
	if err != nil {
		s.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background(), s) }()
	s.t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-served); err != nil {
			s.t.Error(err)
		}
	})
}

// command is atm, as this test's binary: see TestMain.
func (s *stage) command(args ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	return &exec.Cmd{Path: exe, Args: append([]string{"atm"}, args...), Env: slices.Clone(s.env)}
}

// atm runs a command, which must end with that code, and returns all that it
// printed. Words with = before the verb are its environment.
func (s *stage) atm(exit int, args ...string) string {
	s.t.Helper()
	n := 0
	for n < len(args) && strings.Contains(args[n], "=") {
		n++
	}
	c := s.command(args[n:]...)
	c.Env = append(c.Env, args[:n]...)
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		s.t.Fatal(err)
	}
	if got := c.ProcessState.ExitCode(); got != exit {
		s.t.Errorf("%v: exit %d, not %d\n%s", args, got, exit, out)
	}
	return string(out)
}

// heard takes what the runner was asked for.
func (s *stage) heard() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := strings.Join(s.asked, "; ")
	s.asked = nil
	return all
}

func (s *stage) note(what string) {
	s.mu.Lock()
	s.asked = append(s.asked, what)
	s.mu.Unlock()
}

func (s *stage) did(what, done string) (control.Outcome, error) {
	s.note(what)
	if s.refuse != nil {
		return control.Outcome{}, s.refuse
	}
	return control.Outcome{Done: done}, nil
}

func (s *stage) Status(context.Context) (control.Status, error) { return control.Status{}, nil }

func (s *stage) Screen(_ context.Context, r control.ScreenRequest) (control.Screen, error) {
	s.note(fmt.Sprintf("screen %d %v", r.Last, r.ANSI))
	return s.screen, s.refuse
}

func (s *stage) Type(_ context.Context, r control.TypeRequest) (control.Outcome, error) {
	return s.did(fmt.Sprintf("type %q raw=%v enter=%v", r.Text, r.Raw, r.Enter), "typed")
}

func (s *stage) Interrupt(context.Context) (control.Outcome, error) {
	return s.did("interrupt", "interrupted")
}

func (s *stage) Answer(context.Context, control.AnswerRequest) (control.Outcome, error) {
	return s.did("answer", "answered")
}

func (s *stage) Stop(_ context.Context, r control.StopRequest) (control.Outcome, error) {
	o, err := s.did("stop "+r.Grace.String(), "stopped")
	if err == nil {
		o.Detail = "exit 0"
		for i := range 2 {
			o.Ended = append(o.Ended, fmt.Sprintf("sleep (%d)", i))
		}
	}
	return o, err
}

func (s *stage) Restart(context.Context) (control.Outcome, error) {
	return s.did("restart", "restarted")
}

func (s *stage) Attach(ctx context.Context, r control.AttachRequest, v *control.Viewer) error {
	return s.attach(ctx, r, v)
}

// until waits for a state.
func until(t *testing.T, so func() bool, otherwise func() string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(otherwise())
		}
	}
}

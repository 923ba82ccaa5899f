//go:build linux || darwin

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/maildir"
	"github.com/agentteammail/atm/internal/runinfo"
	"github.com/agentteammail/atm/reducer/ask"
	"github.com/agentteammail/atm/wire"
)

// A stage is a team with a member bob whose runner is this test, which records its requests. Commands run as processes
// of their own.
type stage struct {
	t    *testing.T
	team string // its directory
	env  []string

	// What bob's runner does; set before serve.
	attach func(ctx context.Context, r control.AttachRequest, v *control.Viewer) error
	screen control.Screen

	mu     sync.Mutex
	refuse error
	status control.Status
	asked  []string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	dir := t.TempDir()
	s := &stage{t: t, team: filepath.Join(dir, ".atm", "main")}
	s.env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir, "ATM_ROOT="+filepath.Dir(s.team))
	s.atm(0, "init", "alice", "bob")
	return s
}

// write writes a file of the team.
func (s *stage) write(text string, path ...string) {
	s.t.Helper()
	file := filepath.Join(append([]string{s.team}, path...)...)
	must(s.t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)))
}

// listen opens the socket of bob's runner.
func (s *stage) listen() *control.Server {
	s.t.Helper()
	s.write("", "bob", "run", "run.log")
	server, err := control.Listen(filepath.Join(s.team, "bob", "run"))
	must(s.t, err)
	return server
}

// serve answers on the socket of bob's runner.
func (s *stage) serve() {
	s.t.Helper()
	server, served := s.listen(), make(chan error, 1)
	go func() { served <- server.Serve(context.Background(), s) }()
	s.t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-served); err != nil {
			s.t.Error(err)
		}
	})
}

// run has bob run, makes alice the lead and me a person, and returns the team's mail.
func (s *stage) run() *maildir.Store {
	s.t.Helper()
	s.atm(0, "team", "add", "me")
	s.write("lead = \"alice\"\n[members.me]\nperson = true\n", "team.toml")
	dir, err := durable.Open(s.team)
	must(s.t, err)
	store := maildir.NewStore(dir, "main")
	s.t.Cleanup(func() { store.Close() })
	// A child process holds the lock: else this test's commands would count as bob's.
	lock, err := os.OpenFile(filepath.Join(s.team, ".locks", "bob.runner"), os.O_CREATE|os.O_RDWR, 0o600)
	holder := exec.Command("sleep", "600")
	holder.ExtraFiles = []*os.File{lock}
	must(s.t, cmp.Or(err, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX), holder.Start(), lock.Close()))
	s.t.Cleanup(func() { holder.Process.Kill(); holder.Wait() })
	s.write(`{"run":"r1","runner":1}`, "bob", "run", runinfo.File)
	s.serve()
	return store
}

// says sets the runner's gate, and the error that it refuses requests with.
func (s *stage) says(gate string, refuse error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Gate, s.refuse = control.Gate(gate), refuse
}

// command is atm in the stage's environment.
func (s *stage) command(args ...string) *exec.Cmd {
	cmd := exec.Command("atm", args...)
	cmd.Env = slices.Clone(s.env)
	return cmd
}

// atm runs a command, which must end with that code, and returns all that it printed. Words with = before the verb go
// into its environment.
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

// forSeconds and secondsAgo match ages, which are not zero on a busy machine.
var forSeconds, secondsAgo = regexp.MustCompile(`for \d+[sm]`), regexp.MustCompile(`failed \d+[sm] ago`)

// asks runs atm, and checks the one request to the runner and the output.
func (s *stage) asks(exit int, args, want, says string) {
	s.t.Helper()
	got := forSeconds.ReplaceAllString(s.atm(exit, strings.Fields(args)...), "for 0s")
	got = secondsAgo.ReplaceAllString(got, "failed now")
	if !strings.Contains(got, says) {
		s.t.Errorf("%s says %q, not %q", args, got, says)
	}
	if got := s.heard(); got != want {
		s.t.Errorf("%s asks for %q, not %q", args, got, want)
	}
}

// happens appends an event to a member's log; its fields are name=value.
func happens(t *testing.T, store *maildir.Store, agent wire.Name, source, kind string, fields ...string) {
	t.Helper()
	e := wire.Event{Kind: kind, Source: source}
	for _, f := range fields {
		k, v, _ := strings.Cut(f, "=")
		if strings.HasPrefix(v, "[") || k == "artifact_count" {
			e = e.With(k, json.RawMessage(v))
		} else {
			e = e.With(k, v)
		}
	}
	must(t, store.Box(agent).Log().Append(t.Context(), e))
}

// heard returns the requests to the runner since the last call.
func (s *stage) heard() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := strings.Join(s.asked, "; ")
	s.asked = nil
	return all
}

func (s *stage) hears(want string) {
	s.t.Helper()
	got := ""
	s.until("asked for "+want, func() bool { got += s.heard(); return strings.Contains(got, want) })
}

// until waits for a condition.
func (s *stage) until(what string, isSo func() bool) {
	s.t.Helper()
	if !within(3*time.Minute, isSo) {
		s.t.Fatal("waited in vain for: ", what)
	}
}

// did records a request to the runner.
func (s *stage) did(done, format string, args ...any) (control.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, fmt.Sprintf(format, args...))
	if s.refuse != nil {
		return control.Outcome{}, s.refuse
	}
	return control.Outcome{Done: done}, nil
}

func (s *stage) CheckRight(control.Right, int, string) error { return nil }

func (s *stage) Status(context.Context) (control.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status, nil
}

func (s *stage) Screen(_ context.Context, r control.ScreenRequest) (control.Screen, error) {
	_, err := s.did("", "screen %d %v", r.Last, r.ANSI)
	return s.screen, err
}

func (s *stage) Type(_ context.Context, r control.TypeRequest) (control.Outcome, error) {
	o, err := s.did("typed", "type %q raw=%v enter=%v", r.Text, r.Raw, r.Enter)
	o.NotSubmitted = !r.Raw && !r.Enter
	return o, err
}

func (s *stage) Interrupt(context.Context) (control.Outcome, error) {
	return s.did("interrupted", "interrupt")
}

func (s *stage) Answer(_ context.Context, r ask.Answer) (control.Outcome, error) {
	o, err := s.did("answered", "answer %s option=%q deny=%v by=%s", wire.ID(r.ID).Short(6), r.Option, r.Deny, r.By)
	o.Detail = "Yes"
	return o, err
}

func (s *stage) Stop(context.Context) (control.Outcome, error) {
	o, err := s.did("stopped", "stop")
	o.Detail, o.Ended = "exit 0", []string{"sleep (0)", "sleep (1)"}
	return o, err
}

func (s *stage) Restart(context.Context, control.RestartRequest) (control.Outcome, error) {
	o, err := s.did("restarted", "restart")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.ChildPID++
	return o, err
}

func (s *stage) Attach(ctx context.Context, r control.AttachRequest, v *control.Viewer) error {
	return s.attach(ctx, r, v)
}

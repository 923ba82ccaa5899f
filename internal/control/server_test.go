//go:build linux || darwin

package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/reducer/ask"
)

// fake is a runner; a missing function returns the request's name.
type fake struct {
	status    func(ctx context.Context) (Status, error)
	rights    func(right Right, pid int, by string) error
	interrupt func(ctx context.Context) (Outcome, error)
	stop      func(ctx context.Context) (Outcome, error)
	attach    func(ctx context.Context, r AttachRequest, v *Viewer) error
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fake) Status(ctx context.Context) (Status, error) {
	if f.status == nil {
		return Status{State: "idle"}, nil
	}
	return f.status(ctx)
}

func (f *fake) CheckRight(right Right, pid int, by string) error {
	if f.rights == nil {
		return nil
	}
	return f.rights(right, pid, by)
}

func (f *fake) Screen(_ context.Context, r ScreenRequest) (Screen, error) {
	return Screen{Lines: []string{"one", "zwei ✳"}, Cols: r.Last, ANSI: fmt.Sprint(r.ANSI)}, nil
}

func (f *fake) Type(_ context.Context, r TypeRequest) (Outcome, error) {
	return Outcome{Done: "typed", Detail: fmt.Sprintf("%q %v %v", r.Text, r.Raw, r.Enter)}, nil
}

func (f *fake) Interrupt(ctx context.Context) (Outcome, error) {
	if f.interrupt == nil {
		return Outcome{Done: "interrupted"}, nil
	}
	return f.interrupt(ctx)
}

func (f *fake) Answer(_ context.Context, r ask.Answer) (Outcome, error) {
	return Outcome{Done: "answered", Detail: fmt.Sprint(r.ID, r.Option, r.Deny, r.By)}, nil
}

func (f *fake) Stop(ctx context.Context) (Outcome, error) {
	if f.stop == nil {
		return Outcome{Done: "stopped", Ended: []string{"sleep 60 (77)"}}, nil
	}
	return f.stop(ctx)
}

func (f *fake) Restart(context.Context, RestartRequest) (Outcome, error) {
	return Outcome{Done: "restarted"}, nil
}

func (f *fake) Attach(ctx context.Context, r AttachRequest, v *Viewer) error {
	return f.attach(ctx, r, v)
}

// start serves in a directory until the test ends, and checks that the server leaves nothing behind.
func start(t *testing.T, dir string, h Handler) *Server {
	t.Helper()
	s, err := Listen(dir)
	must(t, err)
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
		case <-time.After(time.Minute):
			t.Error("Serve did not end")
		}
		if _, err := os.Lstat(filepath.Join(dir, socketName)); err == nil {
			t.Error("the socket is still there")
		}
		eventually(t, "goroutines are left", func() bool {
			buf := make([]byte, 1<<20)
			stacks := string(buf[:runtime.Stack(buf, true)])
			return !strings.Contains(stacks, "control.(*connection)") && !strings.Contains(stacks, "control.(*Viewer)")
		})
	})
	return s
}

func eventually(t *testing.T, otherwise string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(otherwise)
		}
	}
}

// patient returns a context for Dial on a busy machine.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// dial returns a client that is closed when the test ends.
func dial(t *testing.T, dir string) *Client {
	t.Helper()
	c, err := Dial(patient(t), dir)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// The runner's errors arrive with code and what to try, and the client can be used further.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	var give error
	start(t, dir, &fake{interrupt: func(context.Context) (Outcome, error) { return Outcome{}, give }})
	c := dial(t, dir)
	tries := []Try{{Op: "answer", Option: "2", Deny: true}, {Op: "type", Raw: true}}
	for _, test := range []struct {
		give error
		want Error
	}{
		{&Error{"refused", "no", tries}, Error{"refused", "no", tries}},
		{fmt.Errorf("before: %w", &Error{Code: "usage", Message: "no"}), Error{"usage", "no", nil}},
		{errors.New("broke"), Error{"failed", "broke", nil}},
	} {
		give = test.give
		_, err := c.Interrupt(t.Context())
		if e, ok := errors.AsType[*Error](err); !ok || !cmp.Equal(*e, test.want) {
			t.Errorf("%v came as %v", test.give, err)
		}
	}
	if _, err := call[any](t.Context(), c, "dance", nil); err == nil || !strings.Contains(err.Error(), "dance") {
		t.Error(err)
	}
	if _, err := call[any](t.Context(), c, "type", 5); err == nil || errors.Is(err, ErrGone) {
		t.Error(err)
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Error("of no use after an error:", err)
	}
	garbage := dial(t, dir)
	garbage.conn.Write([]byte("hello\n"))
	if _, err := garbage.Status(t.Context()); !errors.Is(err, ErrGone) {
		t.Error("garbage is answered:", err)
	}
}

// answering takes answers, and nothing else.
type answering struct{ f fake }

func (a *answering) CheckRight(Right, int, string) error { return nil }
func (a *answering) Answer(ctx context.Context, r ask.Answer) (Outcome, error) {
	return a.f.Answer(ctx, r)
}

// Who does not run the program is answered to, and says so to all else.
func TestOnlyAnswers(t *testing.T) {
	dir := t.TempDir()
	start(t, dir, &answering{})
	c := dial(t, dir)
	for op := range operations {
		_, err := call[any](t.Context(), c, op, nil)
		if isAnswer := op == "answer"; isAnswer != (err == nil) || !isAnswer && !strings.Contains(err.Error(), "it can only be answered") {
			t.Errorf("%s: %v", op, err)
		}
		if op == "attach" { // which ends the connection
			c = dial(t, dir)
		}
	}
}

// A dead runner's socket is replaced.
func TestNoRunner(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Join(dir, "none")} {
		if _, err := Dial(t.Context(), d); !errors.Is(err, ErrNoRunner) {
			t.Error(d, err)
		}
	}
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketName), Net: "unix"})
	must(t, err)
	dead.SetUnlinkOnClose(false)
	dead.Close()
	if _, err := Dial(t.Context(), dir); !errors.Is(err, ErrNoRunner) {
		t.Error(err)
	}
	start(t, dir, &fake{})
	info, err := os.Stat(filepath.Join(dir, socketName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	dial(t, dir)
}

// A path that is too long for a socket becomes a link to a short one, and both are removed.
func TestLongPath(t *testing.T) {
	runtimeDir := t.TempDir()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	must(t, os.Mkdir(dir, 0o700))
	missing := filepath.Join(runtimeDir, "missing")
	for _, dirs := range [][2]string{{runtimeDir, missing}, {runtimeDir, missing}, {missing, runtimeDir}, {dir, dir}} {
		t.Setenv("XDG_RUNTIME_DIR", dirs[0])
		t.Setenv("TMPDIR", dirs[1])
		s := start(t, dir, &fake{})
		if _, err := dial(t, dir).Status(t.Context()); err != nil {
			t.Error(err)
		}
		s.Close()
		for _, d := range []string{runtimeDir, dir} {
			if left, err := os.ReadDir(d); err != nil || len(left) > 0 {
				t.Error(left, err)
			}
		}
	}
	// A link's target that is not a socket is not removed.
	file := filepath.Join(runtimeDir, "file")
	must(t, errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(file, filepath.Join(dir, socketName))))
	start(t, dir, &fake{})
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// Whatever a directory's socket leads to: a client gets the runner of that very directory or none, and a new runner
// removes no other's socket.
func TestOthersSocket(t *testing.T) {
	top, short := t.TempDir(), t.TempDir()
	long := filepath.Join(top, strings.Repeat("long", 30))
	t.Setenv("XDG_RUNTIME_DIR", short)
	for _, name := range []string{"b", "linked", "copied", long} {
		must(t, os.MkdirAll(filepath.Join(top, filepath.Base(name)), 0o700))
	}
	start(t, filepath.Join(top, "b"), &fake{})
	start(t, long, &fake{})
	far, err := os.Readlink(filepath.Join(long, socketName))
	must(t, err)
	must(t, os.Symlink(filepath.Join(top, "b", socketName), filepath.Join(top, "linked", socketName)))
	must(t, os.Symlink(far, filepath.Join(top, "copied", socketName)))
	must(t, os.Symlink(filepath.Join(top, "b"), filepath.Join(top, "itself")))
	for _, name := range []string{"linked", "copied", "itself"} {
		if _, err := Dial(patient(t), filepath.Join(top, name)); !errors.Is(err, ErrNoRunner) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Listen(filepath.Join(top, "itself")); !errors.Is(err, durable.ErrNotDirectory) {
		t.Error(err)
	}
	for _, name := range []string{"linked", "copied"} {
		start(t, filepath.Join(top, name), &fake{})
	}
	// The clients come after all servers, and so end before them: a server's end waits for every client here.
	for _, name := range []string{"linked", "copied", "b", filepath.Base(long)} {
		dial(t, filepath.Join(top, name))
	}
}

// A runner that lost its agent leaves the socket of the next one alone.
func TestLeavesTheNextSocket(t *testing.T) {
	dir := t.TempDir()
	before, err := Listen(dir)
	must(t, err)
	start(t, dir, &fake{})
	if err := before.Close(); err != nil {
		t.Error(err)
	}
	dial(t, dir)
}

// A suspended runner is told from a missing one, and soon.
func TestNotAnswering(t *testing.T) {
	dir := t.TempDir()
	s, err := Listen(dir)
	must(t, err)
	defer s.Close()
	began := time.Now()
	_, err = Dial(t.Context(), dir)
	silent, ok := errors.AsType[*NotAnsweringError](err)
	if !ok || !errors.Is(err, ErrNotAnswering) || silent.PID != os.Getpid() {
		t.Error(err)
	}
	if took := time.Since(began); took < DialTimeout || took > DialTimeout+20*time.Second {
		t.Error("took", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Dial(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A runner that greets but whose loop is stuck does not answer, whatever it is asked; nobody waits for ever.
func TestStuckLoop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, dir, &fake{status: func(ctx context.Context) (Status, error) {
		<-ctx.Done()
		return Status{}, ctx.Err()
	}})
	for name, try := range map[string]func(*Client) error{
		"status":    func(c *Client) error { _, err := c.Status(t.Context()); return err },
		"type":      func(c *Client) error { _, err := c.Type(t.Context(), TypeRequest{}); return err },
		"interrupt": func(c *Client) error { _, err := c.Interrupt(t.Context()); return err },
		"answer":    func(c *Client) error { _, err := c.Answer(t.Context(), ask.Answer{}); return err },
		"stop":      func(c *Client) error { _, err := c.Stop(t.Context()); return err },
		"restart":   func(c *Client) error { _, err := c.Restart(t.Context(), RestartRequest{Resume: true}); return err },
		"attach":    func(c *Client) error { _, err := c.Attach(t.Context(), AttachRequest{}, Terminal{}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := try(dial(t, dir))
			silent, ok := errors.AsType[*NotAnsweringError](err)
			if !ok || silent.PID != os.Getpid() {
				t.Error(err)
			}
		})
	}
}

// A client that says nothing does not stay.
func TestIdleClients(t *testing.T) {
	idleTimeout = 50 * time.Millisecond
	t.Cleanup(func() { idleTimeout = time.Minute })
	dir := t.TempDir()
	start(t, dir, &fake{})
	for range 2 * maxClients {
		conn, err := connect(dir)
		must(t, err)
		defer conn.Close()
	}
	c, err := Dial(patient(t), dir)
	must(t, err)
	c.Close()
}

// A request that never ends is refused.
func TestLongRequest(t *testing.T) {
	before := maxRequest
	maxRequest = 64 << 10
	t.Cleanup(func() { maxRequest = before })
	dir := t.TempDir()
	start(t, dir, &fake{})
	c := dial(t, dir)
	c.send(strings.Repeat("x", int(maxRequest)))
	var none any
	err := c.readAnswer(t.Context(), &none)
	if refusal, ok := errors.AsType[*Error](err); !ok || refusal.Code != "usage" {
		t.Errorf("%#v", err)
	}
}

// The runner of another version is refused at once, with a way to end it.
func TestOtherVersion(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, socketName))
	must(t, err)
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			json.NewEncoder(conn).Encode(newAnswer(version+1, nil))
		}
	}()
	_, err = Dial(patient(t), dir)
	refusal, isRefused := errors.AsType[*Error](err)
	other, isOther := errors.AsType[*OtherVersionError](err)
	if !isRefused || refusal.Code != "refused" || !isOther || other.PID != os.Getpid() {
		t.Errorf("%#v", err)
	}
}

// A busy runner greets, serves other clients, and answers when it is done, even if the server's end interrupted it.
func TestBusy(t *testing.T) {
	dir, begun := t.TempDir(), make(chan struct{})
	s := start(t, dir, &fake{stop: func(ctx context.Context) (Outcome, error) {
		close(begun)
		<-ctx.Done()
		return Outcome{Done: "stopped"}, nil
	}})
	c, answered := dial(t, dir), make(chan error, 1)
	go func() {
		_, err := c.Stop(t.Context())
		answered <- err
	}()
	<-begun
	idle := dial(t, dir)
	if _, err := idle.Status(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if _, err := idle.Status(t.Context()); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
}

// An answer that comes long after the server's end is sent, too.
func TestLateAnswer(t *testing.T) {
	before := closeTimeout
	closeTimeout = 200 * time.Millisecond
	t.Cleanup(func() { closeTimeout = before })
	dir, begun := t.TempDir(), make(chan struct{})
	s := start(t, dir, &fake{stop: func(ctx context.Context) (Outcome, error) {
		close(begun)
		<-ctx.Done()
		time.Sleep(2 * closeTimeout)
		return Outcome{Done: "stopped"}, nil
	}})
	go func() {
		<-begun
		s.Close()
	}()
	if out, err := dial(t, dir).Stop(t.Context()); err != nil || out.Done != "stopped" {
		t.Errorf("%+v, %v", out, err)
	}
}

// Only this user's and root's processes are served.
func TestOtherUsers(t *testing.T) {
	me := fmt.Sprint(os.Geteuid())
	for uid, want := range map[string]bool{me: true, "0": true, "": false, me + "1": false} {
		if got := (&connection{uid: uid}).isTrusted(); got != want {
			t.Errorf("user %q: %v", uid, got)
		}
	}
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, socketName), nil, 0o600)
	isGiven := os.Chown(filepath.Join(dir, socketName), 54321, -1) == nil
	if err := foreignRunnerError(dir); isGiven != (err != nil && strings.Contains(err.Error(), "54321")) {
		t.Errorf("a socket of user 54321: %v", err)
	}
}

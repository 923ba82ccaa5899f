//go:build linux || darwin || freebsd

package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// Every operation goes there and back, several on one connection.
func TestOperations(t *testing.T) {
	var peer Peer
	dir, _ := start(t, &fake{interrupt: func(ctx context.Context) (Outcome, error) {
		peer = PeerOf(ctx)
		return Outcome{Done: "interrupted"}, nil
	}})
	c, ctx := connectTo(t, dir), t.Context()
	if s, err := c.Status(ctx); err != nil || s.State != "idle" {
		t.Error(s, err)
	}
	s, err := c.Screen(ctx, ScreenRequest{Last: 3})
	if want := (Screen{Lines: []string{"one", "zwei ✳"}, Title: "t;itle"}); err != nil || !cmp.Equal(s, want) {
		t.Error(err, cmp.Diff(want, s))
	}
	for _, text := range []string{"hi", "\x1b\r", "\xff\x9b200~", "<&>\u2028", ""} {
		if o, err := c.Type(ctx, TypeRequest{Text: text}); err != nil || o.Done != "typed" || o.Detail != strings.ToValidUTF8(o.Detail, "") && text == "hi" {
			t.Error(o, err)
		}
	}
	if o, err := c.Interrupt(ctx); err != nil || o.Done != "interrupted" {
		t.Error(o, err)
	}
	if peer.PID != os.Getpid() || peer.UID != os.Geteuid() {
		t.Errorf("the client was %+v", peer)
	}
	if p := c.Peer(); p.PID != os.Getpid() || p.UID != os.Geteuid() {
		t.Errorf("the runner was %+v", p)
	}
	if o, err := c.Answer(ctx, AnswerRequest{ID: "a", Option: "b", Reason: "c", By: "d"}); err != nil || o.Detail != "abcd" {
		t.Error(o, err)
	}
	o, err := c.Stop(ctx, StopRequest{Grace: 1500 * time.Millisecond})
	if want := (Outcome{"stopped", "1.5s", []string{"sleep 60 (77)"}}); err != nil || !cmp.Equal(o, want) {
		t.Error(o, err)
	}
	if o, err := c.Restart(ctx); err != nil || o.Done != "restarted" {
		t.Error(o, err)
	}
}

// Text arrives byte by byte as it was given, also what is not UTF-8.
func TestTypeKeepsBytes(t *testing.T) {
	got := make(chan TypeRequest, 1)
	dir, _ := start(t, &fake{typed: func(_ context.Context, r TypeRequest) (Outcome, error) {
		got <- r
		return Outcome{}, nil
	}})
	c := connectTo(t, dir)
	for _, want := range []TypeRequest{
		{Text: "plain", Enter: true},
		{Text: "\x1b[A\xff\xfe\x00", Raw: true},
		{Text: strings.Repeat("ü", 500_000)},
		{},
	} {
		if _, err := c.Type(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		if r := <-got; r != want {
			t.Errorf("%.60q arrived as %.60q", want.Text, r.Text)
		}
	}
}

// A Handler's errors keep code and hint; others become "failed".
func TestErrors(t *testing.T) {
	var give error
	dir, _ := start(t, &fake{interrupt: func(context.Context) (Outcome, error) { return Outcome{}, give }})
	c := connectTo(t, dir)
	for _, test := range []struct {
		give error
		want Error
	}{
		{&Error{"refused", "no", "try that"}, Error{"refused", "no", "try that"}},
		{fmt.Errorf("before: %w", &Error{Message: "no"}), Error{"failed", "no", ""}},
		{errors.New("broke"), Error{"failed", "broke", ""}},
		{fmt.Errorf("idle: %w", context.DeadlineExceeded), Error{"timeout", "idle: context deadline exceeded", ""}},
	} {
		give = test.give
		_, err := c.Interrupt(t.Context())
		var e *Error
		if !errors.As(err, &e) || *e != test.want {
			t.Errorf("%v came as %v", test.give, err)
		}
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Error("of no use after an error:", err)
	}
}

func TestNoRunner(t *testing.T) {
	dir := t.TempDir()
	if _, err := Dial(t.Context(), dir); !errors.Is(err, ErrNoRunner) {
		t.Error("an empty directory:", err)
	}
	if _, err := Dial(t.Context(), filepath.Join(dir, "none")); !errors.Is(err, ErrNoRunner) {
		t.Error("no directory:", err)
	}
	dead(t, dir)
	if _, err := Dial(t.Context(), dir); !errors.Is(err, ErrNoRunner) {
		t.Error("a dead one's socket:", err)
	}
}

// dead leaves the socket of a runner that was killed.
func dead(t *testing.T, dir string) {
	t.Helper()
	fd, err := newSocket()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: filepath.Join(dir, SocketName)}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 1); err != nil {
		t.Fatal(err)
	}
}

// One that has stopped is told from one that is not there, and soon.
func TestNotAnswering(t *testing.T) {
	dir := t.TempDir()
	s, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	began := time.Now()
	_, err = Dial(t.Context(), dir)
	var silent *NotAnsweringError
	if !errors.Is(err, ErrNotAnswering) || !errors.As(err, &silent) || silent.PID != os.Getpid() {
		t.Error(err)
	}
	if took := time.Since(began); took < Patience || took > Patience+2*time.Second {
		t.Error("took", took)
	}
	// With a full queue too, where connecting itself does not come to an end.
	var fds []int
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	for range 4 * backlog {
		fd, err := newSocket()
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
		if unix.Connect(fd, &unix.SockaddrUnix{Name: filepath.Join(dir, SocketName)}) == unix.EAGAIN {
			break
		}
	}
	if _, err := Dial(t.Context(), dir); !errors.Is(err, ErrNotAnswering) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Dial(ctx, dir); err == nil {
		t.Error("dialled after the end")
	}
}

// A busy runner greets, and the answer may take as long as the caller waits.
func TestBusy(t *testing.T) {
	release := make(chan struct{})
	dir, _ := start(t, &fake{stop: func(context.Context, StopRequest) (Outcome, error) {
		<-release
		return Outcome{Done: "stopped"}, nil
	}})
	c := connectTo(t, dir)
	answered := make(chan error, 1)
	go func() {
		_, err := c.Stop(t.Context(), StopRequest{})
		answered <- err
	}()
	// Others are served meanwhile.
	if _, err := connectTo(t, dir).Status(t.Context()); err != nil {
		t.Error(err)
	}
	select {
	case err := <-answered:
		t.Fatal("answered before it was done:", err)
	default:
	}
	close(release)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// The context of a request ends when its client has gone, not when that has
// only said that it will send nothing more.
func TestClientGone(t *testing.T) {
	ended, begun := make(chan error), make(chan struct{})
	dir, _ := start(t, &fake{interrupt: func(ctx context.Context) (Outcome, error) {
		close(begun)
		<-ctx.Done()
		ended <- ctx.Err()
		return Outcome{}, ctx.Err()
	}})
	c := connectTo(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if _, err := c.Interrupt(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	c.Close()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the handler was not told")
	}

	half := rawTo(t, dir)
	io.WriteString(half.file, `{"op":"screen"}`+"\n")
	conn, _ := half.file.SyscallConn()
	conn.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_WR) })
	if line, err := half.line(t.Context()); err != nil || !strings.HasPrefix(string(line), `{"ok":true,"result":{"lines"`) {
		t.Errorf("%s %v", line, err)
	}
}

// What is no request is answered, and the next one counts again.
func TestGarbage(t *testing.T) {
	dir, _ := start(t, &fake{screen: func(context.Context, ScreenRequest) (Screen, error) {
		return Screen{ANSI: strings.Repeat("x", maxLine)}, nil
	}})
	c := rawTo(t, dir)
	for _, line := range []string{
		"", "hello", "[]", "{", `{"op":5}`, `{"op":"dance"}`, "{\"op\":\"\xff\"}", `{"op":"screen","last":-1}`,
		`{"op":"attach"}`, `{"op":"attach","cols":1,"rows":99999}`, `{"op":"type","text":"a","bytes":"YQ=="}`,
		`{"op":"stop","grace_ms":-5}`, strings.Repeat("x", 1<<20),
	} {
		io.WriteString(c.file, line+"\n")
		got, err := c.line(t.Context())
		if err != nil || !strings.HasPrefix(string(got), `{"error":{"code":"usage"`) {
			t.Errorf("%.40q: %s %v", line, got, err)
		}
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Error(err)
	}
	// An answer that is too long says so.
	if _, err := c.Screen(t.Context(), ScreenRequest{}); err == nil || !strings.Contains(err.Error(), "fewer lines") {
		t.Error(err)
	}
	// A line without an end is not read for ever.
	go io.WriteString(c.file, strings.Repeat("x", maxLine+1<<20))
	if got, err := c.line(t.Context()); err != nil || !strings.Contains(string(got), "over 4 MiB") {
		t.Errorf("%s %v", got, err)
	}
	if _, err := c.line(t.Context()); !errors.Is(err, ErrGone) {
		t.Error("goes on after a line without an end:", err)
	}
}

// Many at once, each with its own answers.
func TestManyClients(t *testing.T) {
	dir, _ := start(t, &fake{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			c, err := Dial(ctx, dir)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for j := range 20 {
				text := fmt.Sprint(i, ".", j)
				if o, err := c.Type(t.Context(), TypeRequest{Text: text}); err != nil || o.Detail != text {
					t.Error(text, o, err)
				}
			}
		})
	}
	all.Wait()
}

// Silent clients do not keep others out for ever: the one too many is told.
func TestTooManyClients(t *testing.T) {
	dir, s := start(t, &fake{})
	for range maxClients {
		connectTo(t, dir)
	}
	var e *Error
	if _, err := Dial(t.Context(), dir); !errors.As(err, &e) || !strings.Contains(e.Message, "too many") {
		t.Error(err)
	}
	s.mu.Lock()
	s.clients -= 2 // as if two had left
	s.mu.Unlock()
	connectTo(t, dir)
	s.mu.Lock()
	s.clients += 2
	s.mu.Unlock()
}

// Another user's process is refused, and another user's runner not believed.
func TestOtherUsers(t *testing.T) {
	dir := t.TempDir()
	s, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	s.me = os.Geteuid() + 1
	if os.Geteuid() != 0 { // root is let in everywhere
		go s.Serve(t.Context(), &fake{})
		var e *Error
		if _, err := Dial(t.Context(), dir); !errors.As(err, &e) || e.Code != "refused" {
			t.Error(err)
		}
		if _, err := dialAs(t.Context(), dir, os.Geteuid()+1); !errors.As(err, &e) || e.Code != "refused" {
			t.Error(err)
		}
	}
	s.Close()
	for _, test := range []struct {
		me, peer int
		want     bool
	}{{1000, 1000, true}, {1000, 0, true}, {0, 0, true}, {1000, 1001, false}, {0, 1000, false}} {
		if admits(test.me, test.peer) != test.want {
			t.Errorf("%+v", test)
		}
	}
}

// A handler that is at work when the server closes is waited for, told, and its
// answer still arrives.
func TestCloseAnswers(t *testing.T) {
	begun := make(chan struct{})
	dir, s := start(t, &fake{stop: func(ctx context.Context, _ StopRequest) (Outcome, error) {
		close(begun)
		<-ctx.Done()
		return Outcome{Done: "stopped"}, nil
	}})
	c, idle := connectTo(t, dir), connectTo(t, dir)
	answered := make(chan error, 1)
	go func() {
		o, err := c.Stop(t.Context(), StopRequest{})
		if err == nil && o.Done != "stopped" {
			err = errors.New(o.Done)
		}
		answered <- err
	}()
	<-begun
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if err := idle.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error("again:", err)
	}
}

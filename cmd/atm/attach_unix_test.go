//go:build linux || darwin

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/agentteammail/atm/internal/control"
	"github.com/agentteammail/atm/internal/testprogram"
)

// echo switches on what an agent may switch on, then shows a viewer what it types.
func (s *stage) echo(ctx context.Context, r control.AttachRequest, v *control.Viewer) error {
	s.did("", "attach %dx%d", r.Cols, r.Rows)
	v.Send([]byte("\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1004h\x1b[?1003;1006h\x1b[>7uready "))
	for {
		select {
		case in, ok := <-v.Input():
			switch {
			case !ok:
				s.did("", "left")
				return nil
			case in.Size.Cols > 0:
				s.did("", "size %dx%d", in.Size.Cols, in.Size.Rows)
			case string(in.Bytes) == "Q":
				v.Exit(3, "")
				return nil
			default:
				v.Send(bytes.ReplaceAll(in.Bytes, []byte("\x1b"), []byte("^[")))
			}
		case <-ctx.Done():
			s.did("", "lost")
			return ctx.Err()
		}
	}
}

// resets are the sequences that undo what echo switched on.
var resets = []string{"\x1b[?25h", "\x1b[?2004l", "\x1b[?1004l", "\x1b[?1003l", "\x1b[?1006l", "\x1b[<9u", "\x1b[?1049l", "\x1b[23;2t"}

// A window is a terminal of the test's that runs a command.
type window struct {
	t       *testing.T
	master  *os.File
	slave   *os.File // keeps it open, and tells its settings
	before  *term.State
	command *exec.Cmd

	mu    sync.Mutex
	shown bytes.Buffer
}

// open starts a command in a terminal of 90 by 30. If it is deaf, nobody reads what the command writes.
func (s *stage) open(deaf bool, args ...string) *window {
	s.t.Helper()
	w := &window{t: s.t, command: s.command(args...)}
	var err error
	if w.master, w.slave, err = pty.Open(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { w.master.Close(); w.slave.Close() })
	must(s.t, pty.Setsize(w.master, &pty.Winsize{Cols: 90, Rows: 30}))
	if w.before, err = term.GetState(int(w.slave.Fd())); err != nil {
		s.t.Fatal(err)
	}
	c := w.command
	c.Path = filepath.Join(testprogram.Racing, "atm")
	c.Stdin, c.Stdout, c.Stderr = w.slave, w.slave, w.slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(s.t, c.Start())
	s.t.Cleanup(func() { c.Process.Kill() })
	if !deaf {
		go w.read()
	}
	return w
}

func (w *window) read() {
	buf := make([]byte, 4096)
	for {
		n, err := w.master.Read(buf)
		w.mu.Lock()
		w.shown.Write(buf[:n])
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (w *window) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shown.String()
}

func (w *window) shows(want string) {
	w.t.Helper()
	if !within(3*time.Minute, func() bool { return strings.Contains(w.String(), want) }) {
		w.t.Fatalf("%q does not show %q", w.String(), want)
	}
}

func (w *window) types(s string) {
	w.t.Helper()
	if _, err := w.master.WriteString(s); err != nil {
		w.t.Fatal(err)
	}
}

// raw reports whether the terminal settings differ from those before.
func (w *window) raw() bool {
	now, err := term.GetState(int(w.slave.Fd()))
	return err != nil || !reflect.DeepEqual(now, w.before)
}

// ends waits for the command's end, and checks its exit code and the terminal settings.
func (w *window) ends(exit int) {
	w.t.Helper()
	done := make(chan error, 1)
	go func() { done <- w.command.Wait() }()
	select {
	case <-done:
	case <-time.After(3 * time.Minute):
		w.t.Fatalf("does not end; %q", w.String())
	}
	if got := w.command.ProcessState.ExitCode(); got != exit {
		w.t.Errorf("exit %d, not %d: %q", got, exit, w.String())
	}
	if w.raw() {
		w.t.Error("the terminal is not as it was")
	}
}

// However attach ends, it restores the terminal.
func TestAttachRestores(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		end  func(s *stage, w *window)
		exit int
		says string
	}{
		{"detached", func(s *stage, w *window) { w.types("\x1cd"); s.hears("left") }, 0, "bob: detached (still running"},
		{"detached by the keys of the kitty protocol", func(s *stage, w *window) { w.types("\x1b[92;5u\x1b[92;5:3u\x1b[100u") }, 0, "detached"},
		{"ended", func(_ *stage, w *window) { w.types("Q") }, 0, "bob: ended (exit 3)"},
		{"TERM", func(_ *stage, w *window) { w.command.Process.Signal(syscall.SIGTERM) }, 130, ""},
		{"HUP", func(_ *stage, w *window) { w.command.Process.Signal(syscall.SIGHUP) }, 130, ""},
		{"INT", func(_ *stage, w *window) { w.command.Process.Signal(syscall.SIGINT) }, 130, ""},
		{"QUIT", func(_ *stage, w *window) { w.command.Process.Signal(syscall.SIGQUIT) }, 130, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.attach = s.echo
			s.serve()
			w := s.open(false, "attach", "bob")
			w.shows("ready ")
			if !w.raw() {
				t.Error("not raw")
			}
			w.types("a\x1b[A\x1cx\x1b[200~\x1cd\x1b[201~\x03")
			w.shows("a^[[A\x1cx^[[200~\x1cd^[[201~\x03")
			test.end(s, w)
			w.ends(test.exit)
			for _, p := range resets {
				w.shows(p)
			}
			w.shows(`attached to bob; Ctrl-\ d leaves it running`)
			w.shows(test.says)
		})
	}
}

// The size follows the window, and a read-only viewer types nothing.
func TestAttachSizes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.attach = s.echo
	s.serve()
	w := s.open(false, "attach", "bob")
	w.shows("ready ")
	s.hears("attach 90x30")
	must(t, pty.Setsize(w.master, &pty.Winsize{Cols: 100, Rows: 41}))
	s.hears("size 100x41")
	look := s.open(false, "attach", "bob", "--read-only")
	look.shows("ready ")
	look.types("rm\x1cd")
	look.ends(0)
	if strings.Contains(look.String(), "rm") || !strings.Contains(look.String(), "watching bob") {
		t.Errorf("%q", look.String())
	}
	w.types("\x1cd")
	w.ends(0)
}

// A terminal that reads nothing is restored as far as possible.
func TestAttachStuck(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.attach = func(ctx context.Context, _ control.AttachRequest, v *control.Viewer) error {
		for !v.IsBehind() {
			v.Send(bytes.Repeat([]byte("flood\r\n"), 1000))
		}
		s.did("", "dropped")
		<-ctx.Done()
		return nil
	}
	s.serve()
	w := s.open(true, "attach", "bob")
	s.hears("dropped")
	s.until("a raw terminal", w.raw)
	w.command.Process.Signal(syscall.SIGTERM)
	w.ends(130)
}

// The runner's death is reported, and the terminal restored.
func TestAttachLost(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.attach = func(_ context.Context, _ control.AttachRequest, v *control.Viewer) error {
		v.Send([]byte("\x1b[?25lready"))
		time.Sleep(10 * time.Millisecond)
		return errors.New("it went wrong")
	}
	s.serve()
	w := s.open(false, "attach", "bob")
	w.ends(1)
	w.shows("\x1b[?25h")
	w.shows("it went wrong")
}

// run exits with the agent's code. The agent ends with the terminal; only the detach key leaves it running.
func TestAttachOwner(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, test := range []struct {
		end  func(w *window)
		exit int
		team string
	}{
		{func(w *window) { w.types("Q\r") }, 3, "bob    off"},
		{func(w *window) { w.types("\x1cd") }, 0, "bob    starting"},
		{func(w *window) { w.command.Process.Signal(syscall.SIGHUP) }, 130, "bob    off"},
	} {
		w := s.open(false, "run", "bob", "--", "sh", "-c", "echo ready; read x; exit 3")
		w.shows("leaves it running")
		w.shows("ready")
		test.end(w)
		w.ends(test.exit)
		s.until(test.team, func() bool { return strings.Contains(s.atm(0, "team"), test.team) })
		s.atm(0, "stop", "bob")
	}
}

// An agent ends with the run that shows it even if that is killed.
func TestAttachOwnerKilled(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	w := s.open(false, "run", "bob", "--", "sleep", "600")
	w.shows("leaves it running")
	w.command.Process.Kill()
	s.until("bob is off", func() bool { return strings.Contains(s.atm(0, "team"), "bob    off") })
}

// A failing program shows its last lines below the prompt, whether it fails before its screen appears or in the
// alternate screen.
func TestAttachFails(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for program, want := range map[string]string{
		"sleep 0.2; echo not logged in; exit 3":             "not logged in",
		`printf "\033[?1049hnot logged in"; read x; exit 3`: "\x1b[?1049l\x1b[999;1H\r\nnot logged in\r\n",
	} {
		w := s.open(false, "run", "bob", "--", "sh", "-c", program)
		w.shows("not logged in")
		w.types("\r")
		w.shows(want)
		w.shows("bob: ended (exit 3)")
		w.ends(3)
	}
}

// In a session on a terminal, agent output appears above the line being typed, which is kept.
func TestSessionInATerminal(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.atm(0, "team", "add", "me")
	id := strings.TrimSpace(s.atm(0, "session", "new", "--agent", "bob", "--quiet"))
	s.atm(0, "event", "agent_output", "stream=std_out", "content=Said while nobody was there: 世界\x1b[2J", "--as", "bob")
	w := s.open(false, "session", "attach", "bob", "--as", "me")
	w.shows("bob: Said while nobody was there: 世界")
	if strings.Contains(w.String(), "\x1b[2J") {
		t.Error("what an agent says steers the terminal")
	}
	w.types("half a li")
	w.shows("> half a li")
	s.atm(0, "event", "draft_ready", "draft_id=6f1c2a34-0b7e-4c1d-9a55-0123456789ab", "summary=Part one", "artifact_count=2", "--as", "bob")
	w.shows("Draft ready: 6f1c2a34-0b7e-4c1d-9a55-0123456789ab")
	w.types("ne\r")
	w.shows("human: half a line")
	w.types("taken back\x03")
	w.ends(0)
	if got := s.atm(0, "session", "show", id); strings.Contains(got, "taken back") {
		t.Errorf("sent: %s", got)
	}
}

// A session on a terminal ends with a signal, at Ctrl-D, and with the session itself.
func TestSessionInATerminalEnds(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.write("[members.alice]\nperson = true\n", "team.toml")
	s.atm(0, "session", "new", "--agent", "bob")
	for _, test := range []struct {
		end  func(w *window)
		exit int
	}{
		{func(w *window) {
			w.types("never sent")
			w.shows("never sent")
			w.command.Process.Signal(syscall.SIGTERM)
		}, 130},
		{func(w *window) { w.types("\x04") }, 0},
		{func(w *window) {
			s.atm(0, "session", "abort", "bob", "--as", "alice")
			w.shows("Session aborted by alice")
		}, 0},
	} {
		w := s.open(false, "session", "attach", "bob", "--as", "alice")
		w.shows("Ctrl-D leaves")
		test.end(w)
		w.ends(test.exit)
	}
}

// On a terminal --watch repaints the team and the open questions, rings for a new one, and leaves at q. Into a pipe
// each comes once (testdata/script/question/pending.txtar).
func TestRepainted(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, test := range []struct{ verb, before, event, after string }{
		{"team", "never seen", "send alice hello --as bob", "1 unread"},
		{"pending", "nothing is waiting for you", "event waiting_for_input prompt=Which? --as bob", "Which?"},
	} {
		w := s.open(false, test.verb, "--watch", "--as", "alice")
		w.shows(test.before)
		s.atm(0, strings.Fields(test.event)...)
		w.shows(test.after)
		w.shows("\a\x1b]9;")
		w.types("q")
		w.ends(0)
	}
}

// On a terminal pending fits its columns to the width, in colour unless NO_COLOR is set.
func TestPendingInColumns(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.atm(0, "event", "confirm_required", "tool=Bash", "prompt="+strings.Repeat("rm -rf build ", 20), "--as", "alice")
	s.atm(0, "event", "waiting_for_input", "prompt=Welcher Zweig, 世界?", "--as", "bob")
	s.atm(0, "team", "add", "reader-of-the-documents")
	s.atm(0, "event", "waiting_for_input", "prompt=Which one?", "--as", "reader-of-the-documents")
	for _, mode := range []string{"TERM=xterm", "NO_COLOR=1"} {
		s.env = append(s.env, mode)
		w := s.open(false, "pending")
		w.ends(0)
		w.shows("世界?\r\n    bob takes the answer as a message: ")
		w.shows("| atm send --batch\r\n") // no command is cut
		plain := ansi.Strip(w.String())
		if isColoured := plain != w.String(); isColoured != (mode == "TERM=xterm") {
			t.Errorf("%s: %q", mode, w.String())
		}
		lines := strings.Split(plain, "\r\n")
		if !regexp.MustCompile(`^-  alice  +permission  \d+[sm]\r\n    wants to run: rm`).MatchString(plain) || !regexp.MustCompile(`\n-  bob  +prompt      \d+[sm]  asks: Welcher`).MatchString(plain) {
			t.Errorf("not in columns: %q", lines)
		}
		for _, line := range lines {
			if ansi.StringWidth(line) > 90 {
				t.Errorf("does not fit 90 columns: %q", line)
			}
		}
	}
}

//go:build linux || darwin

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	if os.Getenv("ATM_PROCESS_TEST") == "window" {
		showWindow()
	}
	if os.Getenv("ATM_PROCESS_TEST") == "sandbox" {
		fmt.Print(Parent(), " ", Subreaper())
		os.Exit(0)
	}
	if err := Subreaper(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// session is a program with a reader of its output.
type session struct {
	*Child
	t *testing.T

	mu    sync.Mutex
	shown bytes.Buffer
	eof   chan struct{}
}

func begin(t *testing.T, c Command) *session {
	t.Helper()
	if c.Cols == 0 {
		c.Cols, c.Rows = 80, 24
	}
	if c.Env == nil {
		c.Env = append(os.Environ(), "ATM_RUN="+newMark(t), "PS1=$ ")
	}
	ch, err := Start(c)
	must(t, err)
	s := &session{Child: ch, t: t, eof: make(chan struct{})}
	if c.Pipes {
		go io.Copy(io.Discard, ch.Stderr)
	}
	go func() {
		defer close(s.eof)
		buf := make([]byte, 4096)
		for {
			n, err := ch.Read(buf)
			s.mu.Lock()
			s.shown.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				if err != io.EOF {
					t.Errorf("read: %v", err)
				}
				return
			}
		}
	}()
	t.Cleanup(func() {
		if _, err := ch.Stop(context.Background(), grace); err != nil {
			t.Error(err)
		}
		<-s.eof
	})
	return s
}

func newMark(t *testing.T) string {
	return fmt.Sprintf("%s-%d-%d", strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid(), time.Now().UnixNano())
}

func shell(t *testing.T, script string) *session {
	t.Helper()
	return begin(t, Command{Argv: []string{"sh", "-c", script}})
}

func (s *session) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

// sees waits for a text on the terminal.
func (s *session) sees(want string) {
	s.t.Helper()
	eventually(s.t, func() bool { return strings.Contains(s.text(), want) },
		func() string { return fmt.Sprintf("%q to be shown; it shows %q", want, s.text()) })
}

func (s *session) types(text string) {
	s.t.Helper()
	if _, err := s.Write([]byte(text), time.Minute); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) ends(want Exit) {
	s.t.Helper()
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		s.t.Fatalf("it does not end; it shows %q", s.text())
	}
	if got := s.Exit(); got != want {
		s.t.Errorf("it ended with %+v, want %+v", got, want)
	}
}

func eventually(t *testing.T, ok func() bool, what func() string) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited in vain for %s", what())
		}
	}
}

func TestExit(t *testing.T) {
	for _, c := range []struct {
		script string
		want   Exit
	}{
		{"exit 0", Exit{}},
		{"exit 3", Exit{Code: 3}},
		{"kill -KILL $$", Exit{137, "SIGKILL"}},
		{"kill -TERM $$", Exit{143, "SIGTERM"}},
		{"kill -HUP $$", Exit{129, "SIGHUP"}},
		{"trap 'exit 129' HUP; kill -HUP $$", Exit{Code: 129}},
	} {
		s := shell(t, c.script)
		s.ends(c.want)
		<-s.eof
	}
}

func TestEverythingShownIsRead(t *testing.T) {
	s := shell(t, "seq 200000; echo the end")
	s.ends(Exit{})
	<-s.eof
	if got := s.text(); !strings.HasSuffix(got, "200000\r\nthe end\r\n") {
		t.Errorf("it ends with %q", got[max(0, len(got)-40):])
	}
}

// A reader that comes long after the program's exit still gets what the kernel has buffered.
func TestSlowReader(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("the kernel keeps a program that exits until its output is read, and drops it after half a second")
	}
	c, err := Start(Command{Argv: []string{"sh", "-c", "seq 500; echo the end"}, Cols: 80, Rows: 24})
	must(t, err)
	defer c.Stop(t.Context(), grace)
	<-c.Done()
	time.Sleep(readGrace + 20*time.Millisecond)
	got, err := io.ReadAll(c)
	if err != nil || !strings.HasSuffix(string(got), "the end\r\n") {
		t.Errorf("read %q, %v", got, err)
	}
}

// A grandchild that ignores SIGHUP keeps the terminal open: reading ends 250 ms after the exit all the same, even if
// the grandchild goes on writing.
func TestGrandchildHoldsTerminal(t *testing.T) {
	for name, script := range map[string]string{
		"silent": `trap '' HUP; sleep 1000 & echo started; exit 0`,
		"flood":  `trap '' HUP; yes & echo started; exit 0`,
	} {
		t.Run(name, func(t *testing.T) {
			s := shell(t, script)
			s.ends(Exit{})
			began := time.Now()
			<-s.eof
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("reading ended %v after the program", took)
			}
			if !strings.Contains(s.text(), "started") {
				t.Error("what it had shown is lost")
			}
		})
	}
}

func TestWriteToAProgramThatDoesNotRead(t *testing.T) {
	s := shell(t, "stty raw -echo; echo ready; exec sleep 1000")
	s.sees("ready")
	began := time.Now()
	n, err := s.Write(bytes.Repeat([]byte("x"), 1<<20), time.Second)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write: %v, want os.ErrDeadlineExceeded", err)
	}
	if n == 0 || n == 1<<20 {
		t.Errorf("%d bytes were taken", n)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	s.Stop(context.Background(), time.Minute)
	if got := s.Exit(); got != (Exit{143, "SIGTERM"}) {
		t.Errorf("ended: %+v", got)
	}
	if _, err := s.Write([]byte("x"), time.Second); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("write after the end: %v", err)
	}
}

func TestWriteArrivesWhole(t *testing.T) {
	s := shell(t, "stty raw -echo; echo ready; head -c 90000 | cksum; exit")
	s.sees("ready")
	text := strings.Repeat("añ→🙂", 9000)
	n, err := s.Write([]byte(text), time.Minute)
	if n != len(text) || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	sum := exec.Command("cksum")
	sum.Stdin = strings.NewReader(text)
	want, err := sum.Output()
	must(t, err)
	s.sees(strings.TrimSpace(string(want)))
}

func TestPieces(t *testing.T) {
	for name, text := range map[string]string{
		"plain":  strings.Repeat("x", 5000),
		"runes":  strings.Repeat("→", 3000),
		"odd":    "x" + strings.Repeat("🙂", 3000),
		"marks":  strings.Repeat("a\x1b[200~b\x1b[201~", 400),
		"binary": strings.Repeat("\x80", 5000),
	} {
		rest := text
		for rest != "" {
			n := chunkSize([]byte(rest))
			if n < 1 || n > maxChunk {
				t.Fatalf("%s: a piece of %d bytes", name, n)
			}
			if one := rest[:n]; name != "binary" && !wholeRunes(one) {
				t.Errorf("%s: a rune is torn in %q", name, one[n-8:])
			}
			if one := rest[:n]; strings.LastIndexByte(one, 0x1b) > strings.LastIndexByte(one, '~') {
				t.Errorf("%s: a mark is torn in %q", name, one[n-8:])
			}
			rest = rest[n:]
		}
	}
}

func wholeRunes(s string) bool { return strings.ToValidUTF8(s, "") == s }

// showWindow is a program that prints its terminal's size after every SIGWINCH. (A shell may miss a signal before it
// reads.)
func showWindow() {
	told := make(chan os.Signal, 100)
	signal.Notify(told, syscall.SIGWINCH)
	for {
		rows, cols, err := pty.Getsize(os.Stdin)
		fmt.Printf("%dx%d %v\n", cols, rows, err)
		<-told
	}
}

func TestWindow(t *testing.T) {
	s := begin(t, Command{Argv: []string{os.Args[0]}, Env: append(os.Environ(), "ATM_PROCESS_TEST=window"), Cols: 100, Rows: 30})
	s.sees("100x30 <nil>")
	must(t, s.Resize(70, 20))
	s.sees("70x20 <nil>")
	for _, bad := range [][2]int{{0, 10}, {10, 0}, {-1, 5}, {70000, 5}} {
		if s.Resize(bad[0], bad[1]) == nil {
			t.Errorf("a window of %v was taken", bad)
		}
	}
}

func TestForeground(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	s := begin(t, Command{Argv: []string{bash, "--norc", "--noprofile", "-i"}, Env: append(os.Environ(), "PS1=ready$ ", "ATM_RUN="+newMark(t))})
	s.sees("ready$ ")
	if pgid, name := s.Foreground(); pgid != s.PID() || name != "bash" {
		t.Errorf("in the foreground is %s (%d), want bash (%d)", name, pgid, s.PID())
	}
	in := func(want string) func() bool {
		return func() bool { _, name := s.Foreground(); return name == want }
	}
	tell := func() string { _, name := s.Foreground(); return "another foreground than " + name }
	s.types("sleep 1000\r")
	eventually(t, in("sleep"), tell)
	s.types("\x03")
	eventually(t, in("bash"), tell)
	s.types("sleep 1000\r")
	eventually(t, in("sleep"), tell)
	s.types("\x03exit 7\r")
	s.ends(Exit{Code: 7})
	if pgid, name := s.Foreground(); pgid != 0 || name != "" {
		t.Errorf("in the foreground after the end is %s (%d)", name, pgid)
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	file := dir + "/file"
	must(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		command Command
		want    string
	}{
		{Command{}, "run a program: no program was given"},
		{Command{Argv: []string{"surely-not-there"}}, "run surely-not-there: no such program on PATH"},
		{Command{Argv: []string{dir}}, "run " + dir + ": is a directory"},
		{Command{Argv: []string{file}}, "run " + file + ": permission denied"},
		{Command{Argv: []string{"./nothing"}, Dir: dir}, "run ./nothing: stat " + dir + "/nothing: no such file or directory"},
		{Command{Argv: []string{"sh"}, Dir: dir + "/nowhere"}, "run sh: stat " + dir + "/nowhere: no such file or directory"},
		{Command{Argv: []string{"sh"}, Env: []string{"PATH=" + dir}}, "run sh: no such program on PATH"},
	} {
		c.command.Cols, c.command.Rows = 80, 24
		ch, err := Start(c.command)
		if err == nil {
			ch.Stop(t.Context(), grace)
			t.Errorf("%v ran", c.command.Argv)
		} else if err.Error() != c.want {
			t.Errorf("%v: %q, want %q", c.command.Argv, err, c.want)
		}
	}
	if _, err := Start(Command{Argv: []string{"sh"}}); err == nil {
		t.Error("a terminal without a size was taken")
	}
}

// An agent cannot hide from its runner behind a long line of processes.
func TestAncestors(t *testing.T) {
	script := `if [ $1 -gt 0 ]; then sh -c "$0" "$0" $(($1-1)); else echo $$; read x; fi; :`
	c := exec.Command("sh", "-c", script, script, "70")
	in, err := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	must(t, errors.Join(err, err2, c.Start()))
	var pid int
	fmt.Fscan(out, &pid)
	if pids := Ancestors(pid); !slices.Contains(pids, os.Getpid()) {
		t.Errorf("of %d: %d", pid, pids)
	}
	in.Close()
	c.Wait()
}

// The program does not inherit that our parent ignores a signal.
func TestIgnoredSignalsAreNotInherited(t *testing.T) {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT)
	defer signal.Reset(syscall.SIGHUP, syscall.SIGINT)
	shell(t, "kill -INT $$; exit 0").ends(Exit{130, "SIGINT"})
	shell(t, "kill -HUP $$; exit 0").ends(Exit{129, "SIGHUP"})
	syscall.Kill(os.Getpid(), syscall.SIGHUP) // would end this test
}

func TestArguments(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var got []string // none while the kernel is starting it, which goes on after our Start
	eventually(t, func() bool { got = Arguments(cmd.Process.Pid); return slices.Equal(got, []string{"sleep", "60"}) },
		func() string { return fmt.Sprintf("its arguments: %q", got) })
}

// A process that has just begun, and is still a copy of its parent, is no program of that name: it is about to become another.
func TestNamedLeavesOutCopies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, pipe := filepath.Join(dir, "atmcopies"), filepath.Join(dir, "pipe")
	must(t, os.Symlink("/bin/sh", program))
	must(t, syscall.Mkfifo(pipe, 0o600))
	cmd := exec.Command(program, "-c", `(read x <`+pipe+`) & echo up; wait`)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	_, err = io.ReadFull(out, make([]byte, 3))
	must(t, err)
	all := Named("atmcopies")
	end, err := os.OpenFile(pipe, os.O_RDWR, 0) // before the check, or the copy stays
	must(t, err)
	_, err = end.WriteString("end\n")
	must(t, errors.Join(err, cmd.Wait(), end.Close()))
	if len(all) != 1 || all[0].PID != cmd.Process.Pid {
		t.Errorf("%v, not %d alone", all, cmd.Process.Pid)
	}
}

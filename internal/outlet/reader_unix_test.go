//go:build unix

package outlet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary, executed again with OUTLET_ROLE set, is a program that
// writes or reads.
func TestMain(m *testing.M) {
	switch os.Getenv("OUTLET_ROLE") {
	case "show": // shows two messages on standard output and tells on standard error
		IgnoreSIGPIPE()
		n, err := (&Outlet{}).Show(context.Background(), messages(2, 1))
		fmt.Fprintln(os.Stderr, n, errors.Is(err, syscall.EPIPE))
	case "print": // prints after its reader has gone
		IgnoreSIGPIPE()
		time.Sleep(50 * time.Millisecond)
		_, err := fmt.Println("hello")
		fmt.Fprintln(os.Stderr, errors.Is(err, syscall.EPIPE))
		child := exec.Command("sh", "-c", "yes | head -1 >/dev/null")
		child.Stderr = os.Stderr
		child.Run()
	case "read": // reads so many bytes, tells how many it got, and waits to be killed
		n, _ := strconv.Atoi(os.Args[1])
		r := &reader{file: os.Stdin}
		for len(r.got) < n && r.gulp(min(n-len(r.got), 50)) == nil {
		}
		fmt.Println(len(r.got))
		time.Sleep(time.Minute)
	default:
		IgnoreSIGPIPE()
		os.Exit(m.Run())
	}
}

// into starts a program with its standard input as the outlet.
func into(t testing.TB, command ...string) (*Outlet, *exec.Cmd) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(command[0], command[1:]...)
	c.Stdin = r
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	t.Cleanup(func() {
		w.Close()
		c.Process.Kill()
		c.Wait()
	})
	return &Outlet{File: w}, c
}

func linuxOnly(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the system does not tell what is in a pipe")
	}
}

func TestPrograms(t *testing.T) {
	linuxOnly(t)
	for _, c := range []struct {
		command string
		lines   int // of each of five messages
		taken   int
		err     error
	}{
		{"cat >/dev/null", 3, 5, nil},
		{"wc -l >/dev/null", 1, 5, nil},
		{"while read l; do :; done", 3, 5, nil},
		{"sleep 0.3; cat >/dev/null", 3, 5, nil},
		{"head -1 >/dev/null", 1, 1, unix.EPIPE},
		{"head -3 >/dev/null", 1, 3, unix.EPIPE},
		{"head -3 >/dev/null", 2, 1, unix.EPIPE},
		{"head -3 >/dev/null", 4, 0, unix.EPIPE},
		{"sed 4q >/dev/null", 2, 2, unix.EPIPE},
		{"sleep 0.1; head -2 >/dev/null", 1, 2, unix.EPIPE},
		{"sleep 0.1", 1, 0, unix.EPIPE},
		{"exit", 1, 0, unix.EPIPE},
		{"head -1 >/dev/null; cat >/dev/null", 2, 5, nil},
		{"head -2 >/dev/null; sleep 0.1", 2, 1, unix.EPIPE},
		{"head -5 >/dev/null", 1, 5, nil},
	} {
		for _, whole := range []bool{false, true} {
			o, _ := into(t, "sh", "-c", c.command)
			o.Whole, o.Patience = whole, 10*time.Second
			want := c.taken
			if whole && want < 5 {
				want = 0
			}
			start := time.Now()
			n, err := o.Show(t.Context(), messages(5, c.lines))
			if n != want || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Errorf("%s, messages of %d lines, whole %v: took %d, want %d; %v", c.command, c.lines, whole, n, want, err)
			}
			if d := time.Since(start); d > 3*time.Second {
				t.Errorf("%s: took %v", c.command, d)
			}
		}
	}
}

func TestReaderKilled(t *testing.T) {
	linuxOnly(t)
	// Reads two lines, byte by byte, and then nothing more.
	o, c := into(t, "sh", "-c", "read a; read b; exec sleep 60")
	o.Patience = 10 * time.Second
	time.AfterFunc(200*time.Millisecond, func() { c.Process.Kill() })
	n, err := o.Show(t.Context(), messages(5, 1))
	if n != 2 || !errors.Is(err, unix.EPIPE) {
		t.Errorf("took %d, %v", n, err)
	}
}

func TestPatience(t *testing.T) {
	linuxOnly(t)
	const patience = 200 * time.Millisecond
	o, _ := into(t, "sleep", "60")
	o.Patience = patience
	start := time.Now()
	n, err := o.Show(t.Context(), messages(5, 2))
	if n != 5 || err != nil {
		t.Errorf("a reader that is there: took %d, %v", n, err)
	}
	if d := time.Since(start); d < patience || d > patience+time.Second {
		t.Errorf("patience of %v took %v", patience, d)
	}

	// More than the pipe holds: the rest is written when the reader reads.
	pieces := append(messages(1, 1), Piece{Text: []byte(strings.Repeat("x", 300_000))})
	o, _ = into(t, "sh", "-c", "sleep 0.4; cat >/dev/null")
	o.Patience = patience
	if n, err := o.Show(t.Context(), pieces); n != 2 || err != nil {
		t.Errorf("a late reader: took %d, %v", n, err)
	}

	// And if it quits instead, what it has not read is not taken.
	o, _ = into(t, "sh", "-c", "read a; sleep 0.4")
	o.Patience = patience
	if n, err := o.Show(t.Context(), pieces); n != 1 || !errors.Is(err, unix.EPIPE) {
		t.Errorf("a pager that is quit: took %d, %v", n, err)
	}
}

func TestContextEndsTheWait(t *testing.T) {
	linuxOnly(t)
	for _, pieces := range [][]Piece{
		messages(3, 1),
		{messages(1, 1)[0], {Text: []byte(strings.Repeat("x", 300_000))}},
	} {
		o, _ := into(t, "sh", "-c", "read a; exec sleep 60")
		o.Patience = time.Minute
		setNonblock(t, o.File, false) // as standard output mostly is
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		start := time.Now()
		n, err := o.Show(ctx, pieces)
		cancel()
		if n != 1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("took %d, %v", n, err)
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("after %v", d)
		}
	}
}

// Bytes of somebody else are in the pipe before ours.
func TestPipeNotEmpty(t *testing.T) {
	linuxOnly(t)
	o, _ := into(t, "sh", "-c", "sleep 0.05; exec head -3 >/dev/null")
	fmt.Fprint(o.File, "a\nb\nc\n")
	if n, err := o.Show(t.Context(), messages(2, 1)); n != 0 || !errors.Is(err, unix.EPIPE) {
		t.Errorf("the reader had enough of others: took %d, %v", n, err)
	}
	o, _ = into(t, "sleep", "60")
	o.Patience = 100 * time.Millisecond
	fmt.Fprint(o.File, "a\nb\nc\n")
	if n, err := o.Show(t.Context(), messages(2, 1)); n != 2 || err != nil {
		t.Errorf("nobody reads: took %d, %v", n, err)
	}
}

func self(t *testing.T, role string) *exec.Cmd {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(path)
	c.Env = append(os.Environ(), "OUTLET_ROLE="+role, "ATM_TEST="+path, "GORACE=atexit_sleep_ms=0")
	return c
}

// (atm read; atm read) | head -3, messages of a line each, two at a time.
func TestOneAfterTheOther(t *testing.T) {
	linuxOnly(t)
	c := self(t, "show")
	c.Args = []string{"sh", "-c", `($ATM_TEST; $ATM_TEST; $ATM_TEST) | head -3`}
	c.Path = "/bin/sh"
	var out, told strings.Builder
	c.Stdout, c.Stderr = &out, &told
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 3 {
		t.Errorf("head printed %q", out.String())
	}
	if told.String() != "2 false\n1 true\n0 true\n" {
		t.Errorf("taken:\n%s", told.String())
	}
}

func TestSIGPIPEIsAnErrorHereAndASignalInChildren(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := self(t, "print")
	var told strings.Builder
	c.Stdout, c.Stderr = w, &told
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	r.Close()
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if told.String() != "true\n" { // yes is silent when the signal ends it
		t.Errorf("told %q", told.String())
	}
}

func setNonblock(t *testing.T, f *os.File, nonblocking bool) {
	t.Helper()
	conn, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	conn.Control(func(fd uintptr) { err = unix.SetNonblock(int(fd), nonblocking) })
	if err != nil {
		t.Fatal(err)
	}
}

// Somebody has set O_NONBLOCK on our output, as node does.
func TestNonblockingPipe(t *testing.T) {
	for _, command := range []string{"cat", "sleep 0.1; cat"} {
		o, _ := into(t, "sh", "-c", command+" >/dev/null")
		setNonblock(t, o.File, true)
		pieces := []Piece{{Text: []byte(strings.Repeat("x", 300_000))}, {Text: []byte("end\n")}}
		if n, err := o.Show(t.Context(), pieces); n != 2 || err != nil {
			t.Errorf("took %d, %v", n, err)
		}
	}
}

func TestBlockingPipe(t *testing.T) {
	o, _ := into(t, "sh", "-c", "sleep 0.1; cat >/dev/null")
	setNonblock(t, o.File, false)
	pieces := []Piece{{Text: []byte(strings.Repeat("x", 300_000))}, {Text: []byte("end\n")}}
	if n, err := o.Show(t.Context(), pieces); n != 2 || err != nil {
		t.Errorf("took %d, %v", n, err)
	}
	conn, _ := o.File.SyscallConn()
	conn.Control(func(fd uintptr) {
		if flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
			t.Errorf("the file's mode was changed: %#x, %v", flags, err)
		}
	})
}

func TestFullDevice(t *testing.T) {
	linuxOnly(t)
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if n, err := (&Outlet{File: f}).Show(t.Context(), messages(3, 1)); n != 0 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("took %d, %v", n, err)
	}
}

// A process that got any number of bytes and is killed then.
func TestAnyProcessKilled(t *testing.T) {
	linuxOnly(t)
	pieces := messages(10, 3)
	for range 20 {
		n := rand.IntN(size(pieces) + 20)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c := self(t, "read")
		c.Args = append(c.Args, strconv.Itoa(n))
		c.Stdin = r
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		r.Close()
		got := make(chan int)
		go func() {
			var n int
			fmt.Fscan(out, &n)
			c.Process.Kill()
			got <- n
		}()
		taken, _ := (&Outlet{File: w, Patience: time.Minute}).Show(t.Context(), pieces)
		w.Close()
		read := <-got
		c.Wait()
		if taken < 10 && size(pieces[:taken+1]) <= read || size(pieces[:taken]) > read {
			t.Errorf("took %d, the reader got %d bytes of messages of %d", taken, read, size(pieces[:1]))
		}
	}
}

// reader reads as the test says and tells how much it got.
type reader struct {
	file *os.File
	got  []byte
}

func (r *reader) gulp(most int) error {
	b := make([]byte, most)
	m, err := r.file.Read(b)
	r.got = append(r.got, b[:m]...)
	return err
}

// read reads up to n bytes in gulps of at most gulp, pausing between them, and
// then closes.
func (r *reader) read(n, gulp int, pause time.Duration) {
	for len(r.got) < n && r.gulp(min(gulp, n-len(r.got))) == nil {
		time.Sleep(pause)
	}
	r.file.Close()
}

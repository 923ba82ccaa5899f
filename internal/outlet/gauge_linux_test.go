package outlet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// draw makes messages of random lines, some longer than a pipe takes at once.
func draw(t *rapid.T, tag string) []Piece {
	n := rapid.IntRange(1, 8).Draw(t, "messages")
	var pieces []Piece
	for i := range n {
		var b bytes.Buffer
		fmt.Fprintf(&b, "<%s %d>\n", tag, i)
		for range rapid.IntRange(0, 4).Draw(t, "lines") {
			length := rapid.SampledFrom([]int{0, 1, 20, 80, 4095, 4096, 9000, 70_000}).Draw(t, "length")
			b.WriteString(strings.Repeat("x", length))
			if rapid.IntRange(0, 5).Draw(t, "newline") > 0 {
				b.WriteByte('\n')
			}
		}
		fmt.Fprintf(&b, "</%s %d>\n", tag, i)
		pieces = append(pieces, Piece{Text: b.Bytes(), Message: true})
	}
	return pieces
}

func drawReader(t *rapid.T, most int) (n, gulp int, pause time.Duration) {
	n = rapid.IntRange(0, most+10).Draw(t, "reads")
	gulp = rapid.SampledFrom([]int{1 << 20, 65536, 4096, 1000, 37}).Draw(t, "gulp")
	if gulp < 4096 {
		n = min(n, 40*gulp)
	} else {
		pause = rapid.SampledFrom([]time.Duration{0, 0, 50 * time.Microsecond, time.Millisecond}).Draw(t, "pause")
	}
	return n, gulp, pause
}

// A reader that ends after any number of bytes: taken is exactly the messages
// whose bytes it got; of a socket, at most those.
func TestAnyReader(t *testing.T) {
	for name, pair := range map[string]func() (r, w *os.File, err error){
		"pipe": os.Pipe, "socket": socketpair,
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				in, out, err := pair()
				if err != nil {
					t.Fatal(err)
				}
				pieces := draw(t, "m")
				total := size(pieces)
				n, gulp, pause := drawReader(t, total)
				r := &reader{file: in}
				done := make(chan struct{})
				go func() {
					defer close(done)
					r.read(n, gulp, pause)
				}()
				o := &Outlet{File: out, Patience: time.Minute, Whole: rapid.IntRange(0, 4).Draw(t, "whole") == 0}
				taken, err := o.Show(t.Context(), pieces)
				out.Close()
				<-done
				if !strings.HasPrefix(text(pieces), string(r.got)) {
					t.Fatal("the reader got something else")
				}
				want, end := 0, 0
				for _, p := range pieces {
					if end += len(p.Text); end > len(r.got) {
						break
					}
					want++
				}
				if o.Whole && want < len(pieces) {
					want = 0
				}
				if taken > want || name == "pipe" && taken != want {
					t.Fatalf("took %d, the reader got %d of %d bytes: %d messages", taken, len(r.got), total, want)
				}
				if (taken == len(pieces)) != (err == nil) {
					t.Fatalf("took %d of %d, %v", taken, len(pieces), err)
				}
				if err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) {
					t.Fatal(err)
				}
			})
		})
	}
}

// Several writers into one pipe: what each says was taken, the reader got.
func TestSeveralWriters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		const writers = 3
		var all [writers][]Piece
		total := 0
		for w := range writers {
			all[w] = draw(t, fmt.Sprint("writer", w))
			total += size(all[w])
		}
		n, gulp, pause := drawReader(t, total)
		r := &reader{file: in}
		var reading, writing sync.WaitGroup
		reading.Go(func() { r.read(n, gulp, pause) })
		var taken [writers]int
		for w := range writers {
			writing.Go(func() {
				o := &Outlet{File: out, Patience: time.Minute}
				taken[w], _ = o.Show(t.Context(), all[w])
			})
		}
		writing.Wait()
		out.Close()
		reading.Wait()
		for w := range writers {
			for i := range taken[w] {
				// Others' lines may be between; its last one must be there. One that a
				// pipe does not take at once may be torn apart by theirs.
				lines := bytes.SplitAfter(all[w][i].Text, []byte{'\n'})
				last := lines[len(lines)-2]
				if len(last) <= 4096 && !bytes.Contains(r.got, last) {
					t.Fatalf("writer %d says %d were taken, the reader did not get %q", w, taken[w], last)
				}
			}
		}
	})
}

func socketpair() (a, b *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket"), nil
}

func TestSocket(t *testing.T) {
	in, out, err := socketpair()
	if err != nil {
		t.Fatal(err)
	}
	pieces := messages(5, 3)
	got := make(chan string)
	go func() {
		b, _ := io.ReadAll(in)
		got <- string(b)
	}()
	if n, err := (&Outlet{File: out}).Show(t.Context(), pieces); n != 5 || err != nil {
		t.Errorf("took %d, %v", n, err)
	}
	out.Close()
	if <-got != text(pieces) {
		t.Error("the reader got something else")
	}

	// Reads two lines and closes: the rest that was under way is thrown away.
	in, out, err = socketpair()
	if err != nil {
		t.Fatal(err)
	}
	go (&reader{file: in}).read(size(messages(2, 1)), 1, 0)
	n, err := (&Outlet{File: out, Patience: time.Minute}).Show(t.Context(), messages(5, 1))
	if n > 2 || err == nil {
		t.Errorf("took %d, %v", n, err)
	}

	// Reads nothing and stays.
	in, out, err = socketpair()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	n, err = (&Outlet{File: out, Patience: 50 * time.Millisecond}).Show(t.Context(), messages(5, 1))
	if n != 5 || err != nil {
		t.Errorf("took %d, %v", n, err)
	}
}

func TestTerminal(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skip(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skip(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer tty.Close()
	go io.Copy(io.Discard, master)
	pieces := messages(2000, 3)
	for _, nonblocking := range []bool{false, true} {
		unix.SetNonblock(int(tty.Fd()), nonblocking)
		if n, err := (&Outlet{File: tty}).Show(t.Context(), pieces); n != 2000 || err != nil {
			t.Errorf("took %d, %v", n, err)
		}
	}
}

// The file system is full in the middle of a message.
func TestShortWrite(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("atm", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip(err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	f, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	piece := Piece{Text: bytes.Repeat([]byte("x"), 25_000)}
	for _, whole := range []bool{false, true} {
		f.Truncate(0)
		f.Seek(0, io.SeekStart)
		n, err := (&Outlet{File: f, Whole: whole}).Show(t.Context(), []Piece{piece, piece, piece})
		if want := map[bool]int{false: 2, true: 0}[whole]; n != want || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("took %d, want %d; %v", n, want, err)
		}
	}
}

func BenchmarkCat(b *testing.B) {
	o, _ := into(b, "sh", "-c", "exec cat >/dev/null")
	pieces := messages(10, 3)
	for b.Loop() {
		if n, err := o.Show(b.Context(), pieces); n != 10 || err != nil {
			b.Fatal(n, err)
		}
	}
}

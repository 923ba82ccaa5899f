//go:build linux || darwin

package output

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"
)

var pieces = [][]byte{[]byte("1a\n1b\n"), []byte("2a\n2b\n"), []byte("3a\n3b\n")}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func needUnread(t *testing.T) {
	t.Helper()
	_, w := pipe(t)
	if _, ok := Unread(w); !ok {
		t.Skip("what is left in a pipe is not known here")
	}
}

// What a reader leaves in the pipe was not received.
func TestReaderThatQuits(t *testing.T) {
	needUnread(t)
	for lines, want := range []int{0, 0, 1, 1, 2, 2} {
		r, w := pipe(t)
		go func() {
			in := bufio.NewReader(r)
			for range lines {
				in.ReadString('\n')
			}
			r.Close()
		}()
		n, err := Show(t.Context(), w, time.Minute, pieces)
		if n != want || !errors.Is(err, syscall.EPIPE) {
			t.Errorf("%d lines read: %d received, %v", lines, n, err)
		}
	}
}

// So it is with a socket, which Node.js gives its children; there a message is received whole or not.
func TestSocketReaderThatQuits(t *testing.T) {
	needUnread(t)
	for lines, want := range []int{0, 0, 1, 1, 2, 2, 3} {
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		r, w := os.NewFile(uintptr(fds[0]), "reader"), os.NewFile(uintptr(fds[1]), "writer")
		go func() {
			for range lines {
				r.Read(make([]byte, 3)) // a line
			}
			r.Close()
		}()
		n, err := Show(t.Context(), w, time.Minute, pieces)
		if n != want || (err != nil) != (want < len(pieces)) {
			t.Errorf("%d lines read: %d received, %v", lines, n, err)
		}
		w.Close()
	}
}

func TestReaderThatReads(t *testing.T) {
	r, w := pipe(t)
	go io.Copy(io.Discard, r)
	if n, err := Show(t.Context(), w, time.Minute, pieces); n != 3 || err != nil {
		t.Error(n, err)
	}
}

// A reader that starts when its child has ended gets everything.
func TestReaderThatWaits(t *testing.T) {
	_, w := pipe(t)
	if n, err := Show(t.Context(), w, 10*time.Millisecond, pieces); n != 3 || err != nil {
		t.Error(n, err)
	}
}

func TestInterrupted(t *testing.T) {
	needUnread(t)
	_, w := pipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := Show(ctx, w, time.Minute, pieces); n != 0 || !errors.Is(err, context.Canceled) {
		t.Error(n, err)
	}
}

func TestFile(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := Show(t.Context(), f, 0, pieces); n != 3 || err != nil {
		t.Error(n, err)
	}
	if n := BytesWaiting(f, 0); n != 0 {
		t.Error(n)
	}
	f.Seek(-2, io.SeekEnd)
	if n := BytesWaiting(f, 0); n != 2 {
		t.Error(n)
	}
}

func TestBytesWaiting(t *testing.T) {
	r, w := pipe(t)
	if n := BytesWaiting(r, time.Millisecond); n != 0 {
		t.Error(n)
	}
	w.WriteString("abc")
	if n := BytesWaiting(r, time.Minute); n != 3 {
		t.Error(n)
	}
}

func TestReaderGone(t *testing.T) {
	r, w := pipe(t)
	if ReaderGone(w) {
		t.Error("it is there")
	}
	r.Close()
	if !ReaderGone(w) {
		t.Error("it has gone")
	}
}

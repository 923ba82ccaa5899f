//go:build unix

package outlet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Who waits for something to write learns that the reader has gone, and only
// that: not that it reads, nor that a pipe is full.
func TestWhileRead(t *testing.T) {
	t.Parallel()
	ends := map[string]func(t *testing.T) (r, w *os.File){
		"pipe": func(t *testing.T) (r, w *os.File) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			return r, w
		},
		"socket": func(t *testing.T) (r, w *os.File) {
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err != nil {
				t.Fatal(err)
			}
			return os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
		},
	}
	for name, open := range ends {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS != "linux" {
				t.Skip("only Linux is known to tell the writing end")
			}
			t.Parallel()
			r, w := open(t)
			defer w.Close()
			ctx, stop := WhileRead(context.Background(), w)
			defer stop()
			w.WriteString("a line\n")
			if _, err := r.Read(make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			w.WriteString("unread\n")
			if ctx.Err() != nil {
				t.Fatal("ended while there was a reader")
			}
			r.Close()
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
				t.Fatal("not told that the reader has gone")
			}
			if err := context.Cause(ctx); !errors.Is(err, ErrReaderGone) {
				t.Error(err)
			}
		})
	}
}

// It ends when it is stopped, and with its parent; a file has no reader.
func TestWhileReadStops(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, out := range []*os.File{w, f} {
		parent, cancel := context.WithCancel(context.Background())
		ctx, stop := WhileRead(parent, out)
		cancel()
		<-ctx.Done()
		if err := context.Cause(ctx); errors.Is(err, ErrReaderGone) {
			t.Error(err)
		}
		stop()
		again, stop := WhileRead(context.Background(), out)
		if again.Err() != nil {
			t.Error("ended at once")
		}
		stop()
	}
}

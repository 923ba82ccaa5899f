package outlet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// messages are n pieces of so many lines each.
func messages(n, lines int) []Piece {
	var pieces []Piece
	for i := range n {
		var b bytes.Buffer
		for l := range lines {
			fmt.Fprintf(&b, "message %d line %d\n", i, l)
		}
		pieces = append(pieces, Piece{Text: b.Bytes(), Message: true})
	}
	return pieces
}

func text(pieces []Piece) string {
	var b bytes.Buffer
	for _, p := range pieces {
		b.Write(p.Text)
	}
	return b.String()
}

func size(pieces []Piece) int { return len(text(pieces)) }

func TestFileTakesWhatIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pieces := messages(5, 3)
	for _, whole := range []bool{false, true} {
		o := &Outlet{File: f, Whole: whole}
		if n, err := o.Show(t.Context(), pieces); n != 5 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	got, _ := os.ReadFile(path)
	if want := text(pieces) + text(pieces); string(got) != want {
		t.Errorf("got %q", got)
	}
	if n, err := (&Outlet{File: f}).Show(t.Context(), nil); n != 0 || err != nil {
		t.Errorf("nothing to show: %d, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := (&Outlet{File: f}).Show(ctx, pieces); n != 0 || err != context.Canceled {
		t.Errorf("context ended: %d, %v", n, err)
	}
}

func TestWriteErrorTakesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path) // for reading only
	if err != nil {
		t.Fatal(err)
	}
	n, err := (&Outlet{File: f}).Show(t.Context(), messages(2, 1))
	var pe *os.PathError
	if n != 0 || !errors.As(err, &pe) {
		t.Errorf("read-only: %d, %v", n, err)
	}
	f.Close()
	if n, err := (&Outlet{File: f}).Show(t.Context(), messages(2, 1)); n != 0 || !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed: %d, %v", n, err)
	}
}

func TestPrompt(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for f, want := range map[*os.File]bool{null: true, file: true, w: false} {
		info, err := f.Stat()
		if err != nil || Prompt(info) != want {
			t.Errorf("%s: %v, %v", f.Name(), Prompt(info), err)
		}
	}
}

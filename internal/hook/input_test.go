package hook

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// All that a tool writes is read, in whatever pieces it comes; silence, too
// much, and what is no pipe end it.
func TestReadInput(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte("0123456789"), 50_000)
	for about, c := range map[string]struct {
		write func(w *os.File)
		want  []byte
		wrong string
	}{
		"at once": {func(w *os.File) { w.Write([]byte("{}")); w.Close() }, []byte("{}"), ""},
		"nothing": {func(w *os.File) { w.Close() }, []byte{}, ""},
		"much":    {func(w *os.File) { w.Write(long); w.Close() }, long, ""},
		"slowly": {func(w *os.File) {
			w.Write([]byte("{"))
			time.Sleep(20 * time.Millisecond)
			w.Write([]byte("}"))
			w.Close()
		}, []byte("{}"), ""},
		"silence": {func(w *os.File) { w.Write([]byte("{")) }, nil, "no end of it"},
	} {
		t.Run(about, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			go c.write(w)
			patience := 5 * time.Second
			if about == "silence" {
				patience = 100 * time.Millisecond
			}
			got, err := ReadInput(r, patience)
			if c.wrong == "" && (err != nil || !bytes.Equal(got, c.want)) || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	file := filepath.Join(t.TempDir(), "in")
	os.WriteFile(file, []byte("{}"), 0o600)
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ReadInput(f, time.Second); err != nil || string(got) != "{}" {
		t.Errorf("%q, %v", got, err)
	}
	f.Close()
	if _, err := ReadInput(f, time.Second); err == nil {
		t.Error("a closed one is read")
	}
}

package hook

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

// All input is read, in any pieces. A tool that keeps stdin open makes it time out.
func TestReadInput(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	long := bytes.Repeat([]byte("0123456789"), 50_000)
	go func() {
		w.Write(long[:100])
		w.Write(long[100:])
		w.Close()
	}()
	if got, err := readInput(r, time.Minute); err != nil || !bytes.Equal(got, long) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	// A tool that writes slowly, or more than is kept, is not cut off.
	slow, end, err := os.Pipe()
	must(t, err)
	defer slow.Close()
	wrote := make(chan error, 1)
	go func() {
		defer end.Close()
		for range maxInput/len(long) + 2 {
			if _, err := end.Write(long); err != nil {
				wrote <- err
				return
			}
		}
		wrote <- nil
	}()
	if got, err := readInput(slow, time.Minute); err != nil || len(got) != maxInput {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	must(t, <-wrote)
	silent, kept, err := os.Pipe()
	must(t, err)
	defer silent.Close()
	defer kept.Close()
	kept.WriteString("{")
	if _, err := readInput(silent, 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), "it did not end within") {
		t.Error(err)
	}
}

package cast

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const header = `{"version":3,"term":{"cols":80,"rows":24,"type":"xterm"},"timestamp":1700000000,"title":"t"}` + "\n"

func readText(t testing.TB, texts ...string) []string {
	t.Helper()
	var files []io.Reader
	for _, text := range texts {
		files = append(files, strings.NewReader(text))
	}
	return events(t, NewReader(files...), nil)
}

func TestReader(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		want  []string
	}{
		{"events", []string{header + `[0.5, "o", "a\u001b[m✳"]` + "\n" + `[1, "r", "100x50"]` + "\n" + `[0,"q","?"]` + "\n"},
			[]string{`0s begin "80x24"`, `500ms o "a\x1b[m✳"`, `1.5s r "100x50"`, `1.5s q "?"`}},
		{"comments, empty lines and line ends", []string{header + "# note\r\n\r\n" + `[1.0, "o", "a"]` + "\r\n"},
			[]string{`0s begin "80x24"`, `1s o "a"`}},
		{"a torn last line", []string{header + `[1.0, "o", "a"]` + "\n" + `[1.0, "o", "b`},
			[]string{`0s begin "80x24"`, `1s o "a"`}},
		{"a last line without its end", []string{header + `[1.0, "o", "a"]`},
			[]string{`0s begin "80x24"`, `1s o "a"`}},
		{"a torn line in the middle of a recording", []string{header + `[1.0, "o", "a`, header + `[1.0, "o", "b"]`},
			[]string{`0s begin "80x24"`, `0s begin "80x24"`, `1s o "b"`}},
		{"lines that are none", []string{header + `[1,"o"]` + "\n[]\nnull\n{}\n" + `["1","o","x"]` + "\n" + `[-1,"o","x"]` + "\n" + `[1e300,"o","x"]` + "\n" + `[null,"o","x"]` + "\n" + `[1,"","x"]` + "\n" + "\x00\x00\x00\n" + `[1,"é","x"]` + "\n" + `[1,"o","b"]` + "\n"},
			[]string{`0s begin "80x24"`, `1s o "b"`}},
		{"a torn header among others", []string{header + `[1,"o","a"]` + "\n", `{"vers`, "", header},
			[]string{`0s begin "80x24"`, `1s o "a"`, `1s begin "80x24"`}},
		{"a later run", []string{header + `[1,"o","a"]` + "\n", strings.Replace(header, "1700000000", "1700000060", 1) + `[1,"o","b"]` + "\n"},
			[]string{`0s begin "80x24"`, `1s o "a"`, `1m0s begin "80x24"`, `1m1s o "b"`}},
		{"version 2", []string{`{"version": 2, "width": 90, "height": 20, "timestamp": 1700000000, "env": {"TERM": "screen"}}` + "\n" + `[0.25, "o", "a"]` + "\n" + `[1.5, "o", "b"]` + "\n" + `[1.0, "o", "c"]` + "\n"},
			[]string{`0s begin "90x20"`, `250ms o "a"`, `1.5s o "b"`, `1.5s o "c"`}},
		{"nothing", []string{""}, nil},
	} {
		if diff := cmp.Diff(c.want, readText(t, c.files...)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestNoRecording(t *testing.T) {
	for _, text := range []string{"hello\n", "{}\n", `{"version":1}` + "\n", `{"version":3}` + "\n", `{"version":3,"te`} {
		_, err := NewReader(strings.NewReader(text)).Next()
		if err == nil || err == io.EOF {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err := Open(filepath.Join(t.TempDir(), "screen.cast"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("open: %v", err)
	}
	if _, err := OpenFiles("/nowhere/screen.cast"); err == nil || err.Error() != "read the recording /nowhere/screen.cast: no such file or directory" {
		t.Errorf("open: %v", err)
	}
}

func TestTimes(t *testing.T) {
	r := NewReader(strings.NewReader(header + `[1.5,"o","a"]` + "\n"))
	for _, want := range []time.Time{time.Unix(1700000000, 0), time.UnixMilli(1700000001500)} {
		e, err := r.Next()
		must(t, err)
		if !e.Time.Equal(want) {
			t.Errorf("%q at %v, want %v", e.Data, e.Time, want)
		}
	}
	h := r.Header()
	h.Began = time.Time{}
	if diff := cmp.Diff(Header{Version: 3, Cols: 80, Rows: 24, Type: "xterm", Title: "t"}, h); diff != "" {
		t.Error(diff)
	}
}

// A file that grows too long a line, or is not ours at all, is not taken into
// memory whole.
func TestLongLine(t *testing.T) {
	long := io.LimitReader(repeat('x'), 3*longestLine)
	got := events(t, NewReader(io.MultiReader(strings.NewReader(header), long, strings.NewReader("\n"+`[1,"o","a"]`+"\n"))), nil)
	if diff := cmp.Diff([]string{`0s begin "80x24"`, `1s o "a"`}, got); diff != "" {
		t.Error(diff)
	}
}

type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

func TestRaw(t *testing.T) {
	var out bytes.Buffer
	must(t, Raw(&out, NewReader(strings.NewReader(header+`[1,"o","a\u001b[m"]`+"\n"+`[1,"i","typed"]`+"\n"+`[1,"m","label"]`+"\n"+`[1,"o","✳"]`+"\n"))))
	if out.String() != "a\x1b[m✳" {
		t.Errorf("raw: %q", out.String())
	}
	if err := Raw(failing{}, NewReader(strings.NewReader(header+`[1,"o","a"]`+"\n"))); !errors.Is(err, errFailing) {
		t.Errorf("raw to a closed pipe: %v", err)
	}
}

var errFailing = errors.New("closed")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFailing }

func TestExport(t *testing.T) {
	var out bytes.Buffer
	must(t, Export(&out, NewReader(strings.NewReader(header+`[1.25,"o","a\u001b\"✳"]`+"\n"+`[1,"x","3"]`+"\n"),
		strings.NewReader(header+`[1,"o","b"]`+"\n"))))
	want := `{"version":2,"width":80,"height":24,"timestamp":1700000000,"title":"t","env":{"TERM":"xterm"}}
[1.250000, "o", "a\u001b\"✳"]
[2.250000, "m", "exit 3"]
[2.250000, "r", "80x24"]
[3.250000, "o", "b"]
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if got := readText(t, out.String()); got[len(got)-1] != `3.25s o "b"` {
		t.Errorf("read again: %q", got)
	}
}

// timed notes when what was written.
type timed struct {
	began time.Time
	text  strings.Builder
	at    []time.Duration
}

func (w *timed) Write(p []byte) (int, error) {
	w.at = append(w.at, time.Since(w.began))
	return w.text.Write(p)
}

func TestPlay(t *testing.T) {
	text := header + `[0.05,"o","a"]` + "\n" + `[0,"i","typed"]` + "\n" + `[0.1,"o","b"]` + "\n" + `[1000,"o","c"]` + "\n"
	w := &timed{began: time.Now()}
	must(t, Play(context.Background(), w, NewReader(strings.NewReader(text)), 2, 100*time.Millisecond))
	if w.text.String() != "abc" {
		t.Errorf("played: %q", w.text.String())
	}
	for i, want := range []time.Duration{25, 75, 125} {
		want *= time.Millisecond
		if w.at[i] < want || w.at[i] > want+500*time.Millisecond {
			t.Errorf("event %d came after %v, want %v", i, w.at[i], want)
		}
	}

	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	w = &timed{began: time.Now()}
	if err := Play(ctx, w, NewReader(strings.NewReader(text)), 1, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("play: %v", err)
	}
	if took := time.Since(w.began); took > 5*time.Second {
		t.Errorf("it took %v to end", took)
	}
	if err := Play(context.Background(), failing{}, NewReader(strings.NewReader(text)), 100, 0); !errors.Is(err, errFailing) {
		t.Errorf("play to a closed pipe: %v", err)
	}
}

// A reader that opens while files are rotated under it sees each file once.
func TestOpenDuringRotation(t *testing.T) {
	c := newClock()
	w := create(t, Options{Now: c.Now, MaxSize: 2000, Keep: 20})
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				w.Output(fmt.Appendf(nil, "line %06d\r\n", i))
				w.Flush()
			}
		}
	}()
	for range 40 {
		r, err := Open(w.o.Path)
		if errors.Is(err, os.ErrNotExist) {
			continue // between the rename and the new file
		}
		must(t, err)
		last := -1
		for {
			e, err := r.Next()
			if err == io.EOF {
				break
			}
			must(t, err)
			var n int
			if e.Code != Output {
				continue
			}
			fmt.Sscanf(e.Data, "line %d", &n)
			if last >= 0 && n != last+1 {
				t.Fatalf("after line %d comes line %d", last, n)
			}
			last = n
		}
		r.Close()
	}
	close(stop)
	<-done
}

func FuzzReader(f *testing.F) {
	f.Add(header+`[0.5, "o", "a\u001b[m✳"]`+"\n# c\n"+`[1, "r", "100x50"]`+"\n", "")
	f.Add(`{"version": 2, "width": 90, "height": 20}`+"\n"+`[0.25, "o", "a"]`+"\n", header)
	f.Add(header+`[1e9,"o","\ud800"]`+"\n"+`[1,"o`, header+`[3153600000,"o",""]`)
	f.Fuzz(func(t *testing.T, one, two string) {
		r := NewReader(strings.NewReader(one), strings.NewReader(two))
		var before time.Duration
		for {
			e, err := r.Next()
			if err != nil {
				break
			}
			if e.At < before {
				t.Fatalf("time goes back from %v to %v", before, e.At)
			}
			before = e.At
		}
		// What is exported is a recording.
		var out bytes.Buffer
		if Export(&out, NewReader(strings.NewReader(one), strings.NewReader(two))) == nil && out.Len() > 0 {
			again := NewReader(&out)
			for {
				if _, err := again.Next(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if again.Skipped > 0 {
				t.Fatalf("%d lines of the export are none", again.Skipped)
			}
		}
	})
}

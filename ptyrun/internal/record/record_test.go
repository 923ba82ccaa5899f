package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A clock is a time that the test advances.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{now: time.Unix(1700000000, 0)} }

func (c *clock) Now() time.Time { return c.now }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t testing.TB, o Options) *Writer {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "screen.cast")
	}
	o.Cols, o.Rows = 80, 24
	w, err := Create(o)
	must(t, err)
	t.Cleanup(func() { w.Close() })
	return w
}

func until(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// read checks a file against the format and returns its events, one a line.
func read(t testing.TB, path string) (events []string) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	lines := strings.SplitAfter(string(data), "\n")
	if lines[len(lines)-1] != "" {
		t.Fatalf("%s ends with a torn line: %q", path, lines[len(lines)-1])
	}
	var header struct {
		Version   int
		Term      struct{ Cols, Rows int }
		Timestamp int64
	}
	must(t, json.Unmarshal([]byte(lines[0]), &header))
	if header.Version != 3 || header.Term.Cols < 1 || header.Term.Rows < 1 || header.Timestamp < 1 {
		t.Errorf("header: %s", lines[0])
	}
	for _, line := range lines[1 : len(lines)-1] {
		var fields []any
		must(t, json.Unmarshal([]byte(line), &fields))
		if len(fields) != 3 || fields[0].(float64) < 0 || !strings.Contains("ormx", fields[1].(string)) {
			t.Fatalf("event: %s", line)
		}
		events = append(events, fmt.Sprintf("%v %s %.60q", fields...))
	}
	return events
}

func TestRecording(t *testing.T) {
	t.Parallel()
	c := newClock()
	dir := t.TempDir()
	file := filepath.Join(dir, "screen.cast")
	w := create(t, Options{Path: file, Command: "claude --resume", Title: `"bob" <✳>`, now: c.Now})
	c.pass(512 * time.Millisecond)
	w.Output([]byte("hello \xe2\x9c"))
	c.pass(1500 * time.Millisecond)
	w.Resize(100, 40)
	w.Output([]byte("\xb3 \xff\x1b[m\r\n"))
	c.pass(time.Minute)
	w.Marker("state: thinking")
	w.Exit(143)
	must(t, w.Close())

	want := `{"version":3,"term":{"cols":80,"rows":24,"type":"xterm-256color"},"timestamp":1700000000,"command":"claude --resume","title":"\"bob\" \u003c✳\u003e"}
[0.512,"o","hello "]
[1.500,"r","100x40"]
[0.000,"o","✳ ` + "\uFFFD" + `\u001b[m\r\n"]
[60.000,"m","state: thinking"]
[0.000,"x","143"]
`
	data, err := os.ReadFile(w.options.Path)
	must(t, err)
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(w.options.Path)
	must(t, err)
	if info.Mode().Perm() != 0o600 && os.PathSeparator == '/' {
		t.Errorf("the file's mode: %v", info.Mode())
	}
}

// Every file begins with a repaint, not in the middle of an escape sequence, and five are kept.
func TestRotation(t *testing.T) {
	t.Parallel()
	shown := ""
	w := create(t, Options{maxSize: 1000, now: newClock().Now, Repaint: func() []byte { return []byte("screen " + shown) }})
	for i := range 200 {
		text := fmt.Sprintf("line %03d\x1b[3", i)
		w.Output([]byte(text))
		w.Output([]byte("1m"))
		w.worker.Wait()
		shown = fmt.Sprintf("%03d", i)
	}
	must(t, w.Close())
	files, err := filepath.Glob(filepath.Join(filepath.Dir(w.options.Path), "*"))
	must(t, err)
	if len(files) != 1+keptFiles {
		t.Errorf("files: %v", files)
	}
	for _, path := range files {
		events := read(t, path)
		n := 0
		if _, err := fmt.Sscanf(events[0], `0 o "screen %03d"`, &n); err != nil {
			t.Fatalf("%s begins with %s", path, events[0])
		}
		if want := fmt.Sprintf(`"line %03d\x1b[3"`, n+1); !strings.HasSuffix(events[1], want) {
			t.Errorf("%s goes on with %s, not %s", path, events[1], want)
		}
	}
}

// While nothing can be written, events are dropped and the reason is reported once. Later the recording continues in
// the same file.
func TestFailedWrite(t *testing.T) {
	t.Parallel()
	c := newClock()
	w := create(t, Options{now: c.Now, Repaint: func() []byte { return []byte("SCREEN") }})
	c.pass(time.Second)
	w.Output([]byte("before"))
	w.worker.Wait()
	good := w.file
	readOnly, err := os.Open(w.options.Path)
	must(t, err)
	defer readOnly.Close()
	w.file = readOnly
	c.pass(time.Second)
	w.Output([]byte("lost"))
	w.worker.Wait()
	if w.Err() == nil {
		t.Error("it was written")
	}
	c.pass(retryAfter)
	w.Output([]byte("lost too")) // a failed try
	w.worker.Wait()
	w.file = good
	w.Output([]byte("lost as well"))
	w.worker.Wait()
	c.pass(time.Minute - 2*time.Second - retryAfter)
	w.Resize(100, 40)
	w.Output([]byte("after"))
	w.worker.Wait()
	must(t, w.Err())
	got := read(t, w.options.Path)
	if len(got) == 5 && strings.HasPrefix(got[1], `59 m "recording was interrupted: `) {
		got[1] = "interrupted"
	}
	if diff := cmp.Diff([]string{`1 o "before"`, "interrupted", `0 r "100x40"`, `0 o "SCREEN"`, `0 o "after"`}, got); diff != "" {
		t.Error(diff)
	}
}

// A rotation fails while the directory is missing, and happens when it is back.
func TestFailedRotation(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	must(t, os.Mkdir(dir, 0o700))
	c := newClock()
	w := create(t, Options{Path: filepath.Join(dir, "screen.cast"), maxSize: 400, now: c.Now, Repaint: func() []byte { return []byte("SCREEN") }})
	w.Output(bytes.Repeat([]byte("x"), 400))
	w.worker.Wait()
	must(t, os.Rename(dir, dir+".away"))
	w.Output([]byte("lost"))
	w.worker.Wait()
	if !errors.Is(w.Err(), os.ErrNotExist) {
		t.Errorf("failed: %v", w.Err())
	}
	must(t, os.Rename(dir+".away", dir))
	c.pass(retryAfter)
	w.Output([]byte("again"))
	w.worker.Wait()
	if got := read(t, w.options.Path); len(got) != 4 || got[2] != `0 o "SCREEN"` {
		t.Errorf("recorded: %q", got)
	}
	read(t, numbered(w.options.Path, 1))
}

// A disk that hangs holds nobody up, and what does not fit into memory is a gap.
func TestHungDisk(t *testing.T) {
	t.Parallel()
	c := newClock()
	w := create(t, Options{now: c.Now, Repaint: func() []byte { return []byte("SCREEN") }})
	goOn := make(chan struct{})
	w.do(0, func() { <-goOn })
	for range 2 * maxWaiting / (64 << 10) {
		w.Output(bytes.Repeat([]byte("x"), 64<<10))
	}
	if w.Err() == nil || w.waiting > maxWaiting {
		t.Errorf("%d bytes wait, %v", w.waiting, w.Err())
	}
	close(goOn)
	w.worker.Wait()
	c.pass(retryAfter)
	w.Output([]byte("after"))
	must(t, w.Close())
	got := read(t, w.options.Path)
	if n := len(got); n < 4 || !strings.Contains(got[n-4], "recording was interrupted: the disk is too slow") || !strings.HasSuffix(got[n-2], `o "SCREEN"`) {
		t.Errorf("it ends with %q", got[max(0, len(got)-5):])
	}
}

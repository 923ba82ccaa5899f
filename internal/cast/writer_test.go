package cast

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// clock is a time that goes on when it is told to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Unix(1700000000, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func create(t testing.TB, o Options) *Writer {
	t.Helper()
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "screen.cast")
	}
	if o.Cols == 0 {
		o.Cols, o.Rows = 80, 24
	}
	w, err := Create(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func contents(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

// events reads a recording as one line per event.
func events(t testing.TB, r *Reader, err error) (lines []string) {
	t.Helper()
	must(t, err)
	defer r.Close()
	for {
		e, err := r.Next()
		if err == io.EOF {
			return lines
		}
		must(t, err)
		code := "begin"
		if e.Code != Begin {
			code = string(e.Code)
		}
		lines = append(lines, fmt.Sprintf("%v %s %q", e.At, code, e.Data))
	}
}

func read(t testing.TB, path string) []string {
	t.Helper()
	r, err := Open(path)
	return events(t, r, err)
}

func TestRecording(t *testing.T) {
	c := newClock()
	w := create(t, Options{Cols: 120, Rows: 30, Command: "claude --resume", Title: `"bob" <✳>`, Now: c.Now})
	c.pass(512 * time.Millisecond)
	must(t, w.Output([]byte("hello \xe2\x9c")))
	c.pass(1500 * time.Millisecond)
	w.Input([]byte("y\r"))
	w.Resize(100, 40)
	must(t, w.Output([]byte("\xb3 \xff\x1b[m\r\n")))
	c.pass(time.Minute)
	w.Marker("state: thinking")
	must(t, w.Output([]byte("tail \xf0\x9f")))
	w.Exit(143)
	must(t, w.Close())
	must(t, w.Output([]byte("late")))
	must(t, w.Flush())
	must(t, w.Close())

	want := `{"version":3,"term":{"cols":120,"rows":30,"type":"xterm-256color"},"timestamp":1700000000,"command":"claude --resume","title":"\"bob\" \u003c✳\u003e"}
[0.512, "o", "hello "]
[1.500, "i", "y\r"]
[0.000, "r", "100x40"]
[0.000, "o", "✳ �\u001b[m\r\n"]
[60.000, "m", "state: thinking"]
[0.000, "o", "tail "]
[0.000, "o", "��"]
[0.000, "x", "143"]
`
	if diff := cmp.Diff(want, contents(t, w.o.Path)); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(w.o.Path); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("the file's mode: %v, %v", info.Mode(), err)
	}
	conforms(t, w.o.Path)
}

// conforms checks a file against what the format says, by other means than the
// reader's.
func conforms(t *testing.T, path string) {
	t.Helper()
	text := contents(t, path)
	if !utf8.ValidString(text) || !strings.HasSuffix(text, "\n") {
		t.Fatal("a cast is lines of UTF-8")
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var header struct {
		Version   int
		Term      struct{ Cols, Rows int }
		Timestamp int64
	}
	must(t, json.Unmarshal([]byte(lines[0]), &header))
	if header.Version != 3 || header.Term.Cols < 1 || header.Term.Rows < 1 || header.Timestamp < 1 {
		t.Errorf("header: %s", lines[0])
	}
	for _, line := range lines[1:] {
		var e []any
		must(t, json.Unmarshal([]byte(line), &e))
		if len(e) != 3 {
			t.Fatalf("event: %s", line)
		}
		at, ok1 := e[0].(float64)
		code, ok2 := e[1].(string)
		data, ok3 := e[2].(string)
		if !ok1 || !ok2 || !ok3 || at < 0 || len(code) != 1 {
			t.Fatalf("event: %s", line)
		}
		switch code {
		case "o", "i", "m":
		case "r":
			var cols, rows int
			if n, err := fmt.Sscanf(data, "%dx%d", &cols, &rows); n != 2 || err != nil {
				t.Errorf("event: %s", line)
			}
		case "x":
			if _, err := strconv.Atoi(data); err != nil {
				t.Errorf("event: %s", line)
			}
		default:
			t.Errorf("event: %s", line)
		}
	}
}

// What rounding takes from an interval the next one gets.
func TestIntervalsAddUp(t *testing.T) {
	c := newClock()
	w := create(t, Options{Now: c.Now, MaxSize: 2000, Keep: 1000})
	for range 1000 {
		c.pass(700 * time.Microsecond)
		must(t, w.Output([]byte(".")))
	}
	c.pass(-time.Hour) // the clock was set back
	must(t, w.Output([]byte("!")))
	must(t, w.Close())
	all := read(t, w.o.Path)
	if last := all[len(all)-1]; last != `700ms o "!"` {
		t.Errorf("the last event: %s", last)
	}
}

func TestRotation(t *testing.T) {
	c := newClock()
	screen := ""
	w := create(t, Options{
		Now: c.Now, MaxSize: 1000, Keep: 3,
		Repaint: func() []byte { return []byte("\x1bc[" + screen + "]") },
	})
	for i := range 200 {
		c.pass(time.Second)
		text := fmt.Sprintf("line %03d\r\n", i)
		must(t, w.Output([]byte(text)))
		screen = strings.TrimSpace(text)
	}
	w.Resize(100, 50)
	w.Exit(0)
	must(t, w.Close())
	paths, err := Files(w.o.Path)
	must(t, err)
	var names []string
	for _, p := range paths {
		names = append(names, filepath.Base(p))
		conforms(t, p)
		info, err := os.Stat(p)
		must(t, err)
		if info.Size() > 1100 {
			t.Errorf("%s has %d bytes", p, info.Size())
		}
		r, err := OpenFiles(p)
		one := events(t, r, err)
		var shown int
		if _, err := fmt.Sscanf(one[1], `0s o "\x1bc[line %d]"`, &shown); err != nil {
			t.Errorf("%s begins with %s", p, one[1])
		}
		// The first line after the repaint is the next one, a second later.
		if want := fmt.Sprintf(`1s o "line %03d\r\n"`, shown+1); one[2] != want {
			t.Errorf("%s goes on with %s, want %s", p, one[2], want)
		}
	}
	if diff := cmp.Diff([]string{"screen.3.cast", "screen.2.cast", "screen.1.cast", "screen.cast"}, names); diff != "" {
		t.Error(diff)
	}
	if entries, _ := os.ReadDir(filepath.Dir(w.o.Path)); len(entries) != 4 {
		t.Errorf("the directory has %d files", len(entries))
	}
	var before, lines int
	for _, e := range read(t, w.o.Path) {
		var at time.Duration
		var n int
		_, text, ok := strings.Cut(e, ` o "line `)
		if !ok {
			continue
		}
		at, err := time.ParseDuration(strings.Fields(e)[0])
		must(t, err)
		n, _ = strconv.Atoi(text[:3])
		if lines > 0 && (n != before+1) {
			t.Errorf("after line %d comes line %d at %v", before, n, at)
		}
		before = n
		lines++
	}
	if before != 199 || lines < 50 {
		t.Errorf("%d lines up to %d", lines, before)
	}
}

// A new file does not begin with the rest of an escape sequence.
func TestRotationWaitsForTheSequenceToEnd(t *testing.T) {
	w := create(t, Options{MaxSize: 800, Repaint: func() []byte { return []byte("R") }})
	must(t, w.Output([]byte(strings.Repeat("x", 750)+"\x1b[3")))
	must(t, w.Output([]byte("1mred\x1b]0;ti")))
	must(t, w.Output([]byte("tle\x07done")))
	must(t, w.Output([]byte("next")))
	must(t, w.Close())
	got := read(t, w.o.Path)
	for i, e := range got {
		got[i] = strings.Replace(e, strings.Repeat("x", 750), "x…", 1)
		_, got[i], _ = strings.Cut(got[i], " ")
	}
	want := []string{
		`begin "80x24"`, `o "x…\x1b[3"`, `o "1mred\x1b]0;ti"`, `o "tle\adone"`,
		`begin "80x24"`, `o "R"`, `o "next"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestASecondRecordingRotatesTheFirst(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "screen.cast")
	for i := range 9 {
		w := create(t, Options{Path: path})
		must(t, w.Output(fmt.Appendf(nil, "run %d", i)))
		must(t, w.Close())
	}
	must(t, os.WriteFile(filepath.Join(dir, "screen.x.cast"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "screen.01.cast"), nil, 0o600))
	paths, err := Files(path)
	must(t, err)
	if len(paths) != 6 {
		t.Errorf("files: %v", paths)
	}
	var runs []string
	for _, e := range read(t, path) {
		if _, text, ok := strings.Cut(e, " o "); ok {
			runs = append(runs, text)
		}
	}
	if diff := cmp.Diff([]string{`"run 3"`, `"run 4"`, `"run 5"`, `"run 6"`, `"run 7"`, `"run 8"`}, runs); diff != "" {
		t.Error(diff)
	}
	// An empty file is no recording.
	must(t, os.WriteFile(path, nil, 0o600))
	create(t, Options{Path: path})
	if text := contents(t, filepath.Join(dir, "screen.1.cast")); !strings.Contains(text, "run 7") {
		t.Errorf("rotated away: %s", text)
	}
}

func TestFlush(t *testing.T) {
	w := create(t, Options{})
	must(t, w.Output([]byte("now")))
	must(t, w.Flush())
	if text := contents(t, w.o.Path); !strings.HasSuffix(text, `"now"]`+"\n") {
		t.Errorf("after a flush: %s", text)
	}
	must(t, w.Flush())
	// By itself a second later.
	must(t, w.Output([]byte("soon")))
	began := time.Now()
	for !strings.Contains(contents(t, w.o.Path), `"soon"`) {
		if time.Since(began) > 5*time.Second {
			t.Fatal("it is not written")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestCloseLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 50 {
		w := create(t, Options{})
		must(t, w.Output([]byte("x")))
		must(t, w.Close())
	}
	for until := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

func TestCreateErrors(t *testing.T) {
	_, err := Create(Options{Path: filepath.Join(t.TempDir(), "nowhere", "screen.cast"), Cols: 80, Rows: 24})
	if err == nil || !strings.Contains(err.Error(), "create the recording ") {
		t.Errorf("create: %v", err)
	}
}

func TestConcurrentCallers(t *testing.T) {
	w := create(t, Options{MaxSize: 20000, Repaint: func() []byte { return []byte("R") }})
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for range 300 {
				switch i {
				case 0:
					w.Output([]byte("some output →\r\n"))
				case 1:
					w.Marker("marker")
				case 2:
					w.Resize(80, 24)
				case 3:
					w.Flush()
				}
			}
		})
	}
	group.Wait()
	must(t, w.Close())
	paths, err := Files(w.o.Path)
	must(t, err)
	for _, p := range paths {
		conforms(t, p)
	}
}

// broken makes the file refuse everything, as a disk that has gone away does,
// until it is mended.
func TestTroubleIsToldOnceAndEnds(t *testing.T) {
	c := newClock()
	w := create(t, Options{Now: c.Now, Repaint: func() []byte { return []byte("REPAINT") }})
	must(t, w.Output([]byte("before")))
	must(t, w.Flush())
	good := w.file
	broken, err := os.Open(w.o.Path) // not for writing
	must(t, err)
	w.file = broken // the goroutine is idle after Flush

	c.pass(time.Second)
	must(t, w.Output([]byte("lost 1")))
	err = w.Flush()
	if err == nil || !strings.Contains(err.Error(), "record to "+w.o.Path) {
		t.Errorf("flush: %v", err)
	}
	for range 5 {
		c.pass(10 * time.Second)
		must(t, w.Output([]byte("lost 2")))
		must(t, w.Flush())
	}
	w.Marker("lost 3")
	must(t, w.Flush())
	w.file = good
	broken.Close()
	c.pass(time.Minute)
	w.Resize(100, 40)
	must(t, w.Output([]byte("after")))
	c.pass(time.Second)
	must(t, w.Output([]byte("later")))
	must(t, w.Close())
	conforms(t, w.o.Path)
	got := read(t, w.o.Path)
	for i, e := range got {
		if before, _, ok := strings.Cut(e, "interrupted:"); ok {
			got[i] = before
		}
	}
	want := []string{
		`0s begin "80x24"`, `0s o "before"`, `1m51s m "recording was `, `1m51s r "100x40"`, `1m51s o "REPAINT"`,
		`1m51s o "after"`, `1m52s o "later"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The directory goes away, as by a cleaner, and comes back: rotation fails and
// succeeds later.
func TestRotationFailsAndSucceeds(t *testing.T) {
	c := newClock()
	dir := filepath.Join(t.TempDir(), "run")
	must(t, os.Mkdir(dir, 0o700))
	w := create(t, Options{Path: filepath.Join(dir, "screen.cast"), Now: c.Now, MaxSize: 300, Repaint: func() []byte { return []byte("REPAINT") }})
	must(t, os.Rename(dir, dir+".away"))
	must(t, w.Output(bytes.Repeat([]byte("x"), 300)))
	must(t, w.Output([]byte("lost")))
	if err := w.Flush(); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("flush: %v", err)
	}
	must(t, w.Output([]byte("lost")))
	must(t, os.Rename(dir+".away", dir))
	c.pass(time.Minute)
	must(t, w.Output([]byte("after")))
	must(t, w.Close())
	r, err := OpenFiles(w.o.Path)
	got := events(t, r, err)
	if len(got) != 5 || got[0] != `0s begin "80x24"` || got[3] != `0s o "REPAINT"` || got[4] != `0s o "after"` {
		t.Errorf("recorded: %q", got)
	}
	if _, err := os.Stat(numbered(w.o.Path, 1)); err != nil {
		t.Error(err)
	}
}

// A disk that hangs does not hang the terminal.
func TestSlowDisk(t *testing.T) {
	r, pipe, err := os.Pipe()
	must(t, err)
	c := newClock()
	w := create(t, Options{Now: c.Now})
	must(t, w.Flush())
	file := w.file
	w.file = pipe // takes 64 KiB and then hangs
	began := time.Now()
	var told []error
	text := samples()["log"]
	const pieces = 200
	for range pieces {
		if err := w.Output(text); err != nil {
			told = append(told, err)
		}
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("%d pieces took %v", pieces, took)
	}
	if len(told) != 1 || !strings.Contains(told[0].Error(), "too slow") {
		t.Errorf("told: %v", told)
	}
	// It wakes up: the recording goes on by itself.
	read := make(chan []byte)
	go func() {
		data, _ := io.ReadAll(r)
		read <- data
	}()
	must(t, w.Flush())
	c.pass(time.Minute)
	must(t, w.Output([]byte("the end")))
	must(t, w.Close())
	file.Close()
	data := <-read
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		if !json.Valid([]byte(line)) {
			t.Errorf("line %q", line)
		}
	}
	if !strings.Contains(string(data), "recording was interrupted: the disk is too slow") || !strings.HasSuffix(string(data), `"the end"]`+"\n") {
		t.Error("it did not go on")
	}
}

func BenchmarkOutput(b *testing.B) {
	for name, text := range samples() {
		b.Run(name, func(b *testing.B) {
			w := create(b, Options{Repaint: func() []byte { return text[:2000] }})
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if err := w.Output(text); err != nil {
					b.Fatal(err)
				}
			}
			must(b, w.Close())
		})
	}
}

func BenchmarkOutputSmall(b *testing.B) {
	w := create(b, Options{})
	text := []byte("\x1b[2K\r⠂ Wrangling…")
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Output(text); err != nil {
			b.Fatal(err)
		}
	}
}

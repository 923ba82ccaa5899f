package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/lockfile"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/wire"
)

var ctx = context.Background()

var errAbsent = errors.New("no agent")

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newLog makes bob's log in a team's directory of its own.
func newLog(t testing.TB, fault durable.Fault) *Log {
	t.Helper()
	return openLog(t, testtree.Memory(t), fault)
}

// openLog opens bob's log in a team's directory, and makes that if need be.
func openLog(t testing.TB, team string, fault durable.Fault) *Log {
	t.Helper()
	for _, dir := range []string{".locks", "bob/events"} {
		must(t, os.MkdirAll(filepath.Join(team, dir), 0o700))
	}
	return existingLog(team, fault)
}

func existingLog(team string, fault durable.Fault) *Log {
	root, err := durable.OpenFaulty(team, fault)
	if err != nil {
		panic(err)
	}
	present := func() error {
		if root.IsDir("bob") != nil {
			return errAbsent
		}
		return nil
	}
	lock := func(ctx context.Context) (func(), error) {
		lock, err := lockfile.In(root).Lock(ctx, "bob.events", lockfile.Exclusive, 5*time.Second, present)
		if err != nil {
			return nil, err
		}
		return func() { lock.Unlock() }, nil
	}
	return New(root, wire.Address{Agent: "bob", Team: "main"}, lock, present, func(context.Context, []wire.Event) {})
}

func appendKinds(t testing.TB, l *Log, kinds ...string) {
	t.Helper()
	var events []wire.Event
	for _, k := range kinds {
		events = append(events, wire.Event{Kind: k, Source: "cli"})
	}
	appendEvents(t, l, events...)
}

func appendEvents(t testing.TB, l *Log, events ...wire.Event) {
	t.Helper()
	must(t, l.Append(ctx, events...))
}

func segmentPath(l *Log, first uint64) string { return l.root.Join(l.segment(first)) }

// scribble writes bytes to the end of a segment without the lock.
func scribble(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// read reads to its end and returns "seq kind".
func read(t testing.TB, c *Reader) (out []string) {
	t.Helper()
	for {
		e, err := c.Next()
		if err == io.EOF {
			return out
		}
		must(t, err)
		out = append(out, fmt.Sprintf("%d %s", e.Seq, e.Kind))
	}
}

// readAll reads everything after an event with a new reader.
func readAll(t testing.TB, l *Log, after uint64) []string {
	t.Helper()
	c := l.Follow(after)
	defer c.Close()
	return read(t, c)
}

func same(t testing.TB, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// smallSegments makes segments full after so many bytes.
func smallSegments(t testing.TB, n int64) {
	old := segmentSize
	segmentSize = n
	t.Cleanup(func() { segmentSize = old })
}

// An event that cannot be read back is refused, and nothing is written.
func TestAppendRefuses(t *testing.T) {
	l := newLog(t, nil)
	for name, e := range map[string]wire.Event{
		"no kind":                {Source: "a"},
		"a wire that is no JSON": {Kind: "a", Wire: []byte("{")},
		"two lines":              {Kind: "a", Wire: []byte("{\n")},
		"two values":             {Kind: "a", Wire: []byte(`1},{"x":1`)},
		"not UTF-8":              {Kind: "a", Wire: []byte("\"\xff\"")},
		"too long":               {Kind: "a", Wire: []byte(`"` + strings.Repeat("x", int(maxLine)) + `"`)},
		"a field of all events":  {Kind: "a", Extra: []byte(`{"seq":7}`)},
		"a field that is none":   {Kind: "a", Extra: []byte(`{"x":x}`)},
	} {
		if err := l.Append(ctx, wire.Event{Kind: "good"}, e); !errors.Is(err, ErrNoEvent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	appendKinds(t, l, "b")
	same(t, readAll(t, l, 0), "1 b")
}

// The longest event can be read back, wherever it begins.
func TestLongEvents(t *testing.T) {
	l := newLog(t, nil)
	for _, n := range []int{1, 64 << 10, int(maxLine) - 300, 10} {
		appendEvents(t, l, wire.Event{Kind: fmt.Sprint(n), Wire: []byte(`"` + strings.Repeat("x", n) + `"`)})
	}
	same(t, readAll(t, l, 0), "1 1", "2 65536", "3 8388308", "4 10")
	events, err := l.Newest(3)
	if err != nil || len(events) != 3 || events[0].Seq != 2 || events[2].Seq != 4 {
		t.Error(len(events), err)
	}
}

// A line that is too long is skipped, takes no memory, and is set aside by the next append like a torn one.
func TestTooLongLine(t *testing.T) {
	longest := maxLine
	maxLine = 64 << 10
	t.Cleanup(func() { maxLine = longest })
	for name, after := range map[string]string{"torn": "", "whole": "\n", "followed": "\n" + `{"seq":4,"at":"2026-01-01T00:00:00Z","team":"main","agent":"bob","source":"cli","kind":"d"}` + "\n"} {
		l := newLog(t, nil)
		appendKinds(t, l, "a", "b")
		follower := l.Follow(0)
		t.Cleanup(follower.Close)
		same(t, read(t, follower), "1 a", "2 b")
		path, length := segmentPath(l, 1), int64(8<<20)
		grow := func() {
			info, err := os.Stat(path)
			must(t, err)
			must(t, os.Truncate(path, info.Size()+length)) // NULs, which take no room
			scribble(t, path, after)
		}
		grow()
		later, last := []string(nil), uint64(2)
		if name == "followed" {
			later, last = []string{"4 d"}, 4
		}
		for what, look := range map[string]func(){
			"a new follower": func() { same(t, readAll(t, l, 0), append([]string{"1 a", "2 b"}, later...)...) },
			"a follower":     func() { same(t, read(t, follower), later...) },
			"LastSeq": func() {
				if n, err := l.LastSeq(); n != last || err != nil {
					t.Errorf("%s: last %d, %v", name, n, err)
				}
			},
			"Tail": func() {
				if all, err := l.Newest(9); len(all) < 2 || all[0].Seq != 1 || err != nil {
					t.Errorf("%s: %d newest, %v", name, len(all), err)
				}
			},
			"Check": func() { l.Check() },
			"Resume": func() {
				c := l.Follow(1)
				c.Next()
				c.Close()
				again, ok := l.Resume(c.Position())
				if again.Close(); !ok {
					t.Errorf("%s: not resumed", name)
				}
			},
		} {
			var before, now runtime.MemStats
			runtime.ReadMemStats(&before)
			look()
			runtime.ReadMemStats(&now)
			if n := now.TotalAlloc - before.TotalAlloc; n > 2<<20 {
				t.Errorf("%s, %s: %d KiB were allocated", name, what, n>>10)
			}
		}
		for range 100 { // a follower does not read it again and again
			same(t, read(t, follower))
		}
		if name == "followed" {
			continue
		}
		appendKinds(t, l, "c")
		same(t, read(t, follower), "3 c")
		same(t, readAll(t, l, 0), "1 a", "2 b", "3 c")
	}
}

func TestEventID(t *testing.T) {
	l := newLog(t, nil)
	e := func(id string) wire.Event { return wire.Event{Kind: "k" + id, EventID: id} }
	appendEvents(t, l, e("1"), e("1")) // twice in the first call of all
	appendEvents(t, l, e("1"), e("2"), e("2"))
	appendEvents(t, l, e("2"))
	// The id elsewhere in a line is not that event's id.
	appendEvents(t, l, wire.Event{Kind: "wire", Wire: []byte(`{"event_id":"3"}`)}, e("3"))
	appendEvents(t, l, e("3"), wire.Event{Kind: "wire", Wire: []byte(`{"event_id":"2"}`)}, e("2"))
	appendEvents(t, l, wire.Event{Kind: "none"}, wire.Event{Kind: "none"})
	odd := wire.Event{Kind: "odd", EventID: "a\"\\<\n✳"}
	appendEvents(t, l, odd, odd)
	appendEvents(t, l, odd)
	other := e("1") // of another source it is another event
	other.Source = "hook"
	appendEvents(t, l, other, other)
	same(t, readAll(t, l, 0), "1 k1", "2 k2", "3 wire", "4 k3", "5 wire", "6 none", "7 none", "8 odd", "9 k1")
	// Beyond the last MiB it is another event.
	for range 20 {
		appendEvents(t, l, wire.Event{Kind: "pad", Wire: []byte(`"` + strings.Repeat("x", 60<<10) + `"`)})
	}
	appendEvents(t, l, e("3"), e("3"))
	if n, _ := l.LastSeq(); n != 30 {
		t.Errorf("%d events", n)
	}
}

// An id is known from an older segment, too.
func TestEventIDOfAnOlderSegment(t *testing.T) {
	smallSegments(t, 200)
	l := newLog(t, nil)
	appendEvents(t, l, note("x"))
	appendKinds(t, l, "one", "two")
	appendKinds(t, l, "three", "four")
	appendEvents(t, l, note("x"), note("y"))
	same(t, readAll(t, l, 0), "1 note", "2 one", "3 two", "4 three", "5 four", "6 note")
	if segs, err := l.segments(); len(segs) < 3 || err != nil {
		t.Error(segs, err)
	}
}

func TestRotation(t *testing.T) {
	smallSegments(t, 2000)
	l := newLog(t, nil)
	follower := l.Follow(0)
	defer follower.Close()
	var want, got []string
	for i := range 100 {
		kind := fmt.Sprintf("k%d", i)
		appendKinds(t, l, kind, kind)
		want = append(want, fmt.Sprintf("%d %s", 2*i+1, kind), fmt.Sprintf("%d %s", 2*i+2, kind))
		if i%3 == 0 {
			got = append(got, read(t, follower)...)
		}
	}
	same(t, append(got, read(t, follower)...), want...)
	same(t, readAll(t, l, 0), want...)
	same(t, readAll(t, l, 150), want[150:]...)
	segs, err := l.segments()
	if err != nil || len(segs) < 5 || segs[0] != 1 {
		t.Fatal(segs, err)
	}
	for i, seg := range segs {
		info, err := os.Stat(segmentPath(l, seg))
		if err != nil || i < len(segs)-1 && (info.Size() < 2000 || info.Size() > 2300) {
			t.Errorf("segment %d has %d bytes: %v", seg, info.Size(), err)
		}
	}
	for _, n := range []int{1, 10, 200, 500} {
		events, err := l.Newest(n)
		if err != nil || len(events) != min(n, 200) || events[0].Seq != uint64(max(1, 201-n)) || events[len(events)-1].Seq != 200 {
			t.Errorf("newest %d: %d events, %v", n, len(events), err)
		}
	}
	// Without a segment the others are read.
	must(t, os.Remove(segmentPath(l, segs[0])))
	same(t, readAll(t, l, 0)[:1], want[segs[1]-1])
	same(t, readAll(t, l, segs[1]-1)[:1], want[segs[1]-1])
}

// An append ends a line that is unfinished. If it is an event then, it counts; else it is skipped. Followers see it once
// it is whole.
func TestUnfinishedLine(t *testing.T) {
	for line, want := range map[string][]string{
		`{"seq":3,"kind":"x"}`: {"3 x", "4 c"},
		`{"seq":3,"kind":"x"`:  {"3 c"},
		`{"seq":9,"kind":"x"}`: {"9 x", "10 c"},
		`{"kind":"x"}`:         {"3 c"},
		"\x00\x00":             {"3 c"},
	} {
		l := newLog(t, nil)
		follower := l.Follow(0)
		t.Cleanup(follower.Close)
		appendKinds(t, l, "a", "b")
		scribble(t, segmentPath(l, 1), line)
		same(t, read(t, follower), "1 a", "2 b")
		appendKinds(t, l, "c")
		same(t, read(t, follower), want...)
		same(t, readAll(t, l, 0), append([]string{"1 a", "2 b"}, want...)...)
	}
}

// What a full disk has cut off is no event. The events that are whole have a number, the others can be appended again.
func TestAppendToAFullDisk(t *testing.T) {
	full := false
	l := newLog(t, func(op, _ string) error {
		if full && op == "write" {
			return syscall.ENOSPC
		}
		return nil
	})
	appendKinds(t, l, "a")
	full = true
	events := []wire.Event{{Kind: "b"}, {Kind: "c"}, {Kind: "d"}, {Kind: "e"}, {Kind: "f"}}
	if err := l.Append(ctx, events...); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	full = false
	same(t, readAll(t, l, 0), "1 a", "2 b", "3 c")
	if events[0].Seq != 2 || events[1].Seq != 3 || events[2].Seq != 0 {
		t.Error(events)
	}
	must(t, l.Append(ctx, events[2:]...))
	same(t, readAll(t, l, 0), "1 a", "2 b", "3 c", "4 d", "5 e", "6 f")
}

// syncs records what is synced; files named like broken fail.
type syncs struct {
	mu     sync.Mutex
	done   []string
	broken string
}

func (s *syncs) fault(op, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if op != "fsync" && op != "fsync directory" {
		return nil
	}
	s.done = append(s.done, filepath.Base(name))
	if s.broken != "" && strings.HasSuffix(name, s.broken) {
		return syscall.EIO
	}
	return nil
}

func note(id string) wire.Event { return wire.Event{Kind: "note", Source: "cli", EventID: id} }

// A segment is synced before the next one is made: a power cut takes the end of a log, never its middle.
func TestSegmentIsSyncedBeforeTheNext(t *testing.T) {
	smallSegments(t, 200)
	var s syncs
	l := newLog(t, s.fault)
	for range 3 {
		appendKinds(t, l, "one", "two") // over 200 bytes
	}
	same(t, s.done, segmentName(1), segmentName(3))
}

// If that fails, the events are appended all the same, with no error, which would make the caller append them again. The
// segment is not synced again. An event that is already there is synced: the process that wrote it may have been killed
// before its sync.
func TestSegmentCannotBeSynced(t *testing.T) {
	smallSegments(t, 200)
	s := syncs{broken: segmentName(1)}
	l := newLog(t, s.fault)
	appendKinds(t, l, "one", "two")
	must(t, l.AppendSync(ctx, note("")))
	for range 2 {
		must(t, l.AppendSync(ctx, note("e1")))
	}
	same(t, readAll(t, l, 0), "1 one", "2 two", "3 note", "4 note")
	next := segmentName(3)
	same(t, s.done, segmentName(1), next, "events", next, "events", next, "events")
}

// If the sync that was asked for fails, the event is there nevertheless, and has its number. The next one goes into another
// segment, whose sync says what is true.
func TestEventCannotBeSynced(t *testing.T) {
	s := syncs{broken: segmentName(1)}
	l := newLog(t, s.fault)
	events := []wire.Event{note("")}
	if err := l.AppendSync(ctx, events...); !errors.Is(err, syscall.EIO) || events[0].Seq != 1 {
		t.Error(err, events)
	}
	must(t, l.AppendSync(ctx, note("")))
	same(t, readAll(t, l, 0), "1 note", "2 note")
	same(t, s.done, segmentName(1), "events", segmentName(2), "events")
}

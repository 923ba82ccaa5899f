package mailbox

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

	"github.com/agentteammail/atm/internal/atomicfile"
	"github.com/agentteammail/atm/wire"
	"github.com/google/go-cmp/cmp"
)

func appendEvents(t testing.TB, b *Box, kinds ...string) {
	t.Helper()
	var events []wire.Event
	for _, k := range kinds {
		events = append(events, wire.Event{Kind: k, Source: "cli"})
	}
	if err := b.Append(ctx, AppendOptions{}, events...); err != nil {
		t.Fatal(err)
	}
}

func logPath(b *Box, first uint64) string {
	return filepath.Join(b.Path(), "events", segmentName(first))
}

// scribble writes bytes at the end of a segment, as nobody should.
func scribble(t testing.TB, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
}

// next reads a cursor to its end and returns "seq kind", and "gap from-to".
func next(t testing.TB, c *Cursor) (out []string) {
	t.Helper()
	for {
		e, gap, err := c.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if gap != nil {
			out = append(out, fmt.Sprintf("gap %d-%d", gap.From, gap.To))
		}
		out = append(out, fmt.Sprintf("%d %s", e.Seq, e.Kind))
	}
}

func same(t testing.TB, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// smallSegments lets segments rotate after so many bytes.
func smallSegments(t testing.TB, n int64) {
	old := maxSegment
	maxSegment = n
	t.Cleanup(func() { maxSegment = old })
}

func TestAppend(t *testing.T) {
	s := testStore(t, "bob")
	bob := s.Box("bob")
	c := bob.Events(0)
	defer c.Close()
	same(t, next(t, c))
	appendEvents(t, bob, "a", "b")
	same(t, next(t, c), "1 a", "2 b")
	same(t, next(t, c))
	appendEvents(t, bob, "c")
	appendEvents(t, bob)
	same(t, next(t, c), "3 c")
	if c.Seq() != 3 {
		t.Error(c.Seq())
	}
	if n, err := bob.LastSeq(); n != 3 || err != nil {
		t.Error(n, err)
	}
	later := bob.Events(2)
	defer later.Close()
	same(t, next(t, later), "3 c")
	events := eventsOf(t, bob)
	if e := events[0]; e.Agent != "bob" || e.Team != "main" || e.At.IsZero() || e.Source != "cli" {
		t.Error(e)
	}
}

func TestAppendToNobody(t *testing.T) {
	s := testStore(t, "bob")
	nobody := s.Box("nobody")
	if err := nobody.Append(ctx, AppendOptions{}, wire.Event{Kind: "a"}); !errors.Is(err, ErrNoAgent) {
		t.Error(err)
	}
	if _, _, err := nobody.Events(0).Next(); !errors.Is(err, ErrNoAgent) {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(teamPath(s), "nobody")); err == nil {
		t.Error("a directory was made")
	}
}

// What cannot be read back is refused, and nothing is written.
func TestAppendRefuses(t *testing.T) {
	s := testStore(t, "bob")
	bob := s.Box("bob")
	for name, e := range map[string]wire.Event{
		"a wire that is no JSON": {Kind: "a", Wire: []byte("{")},
		"two lines":              {Kind: "a", Wire: []byte("{\n")},
		"not UTF-8":              {Kind: "a", Wire: []byte("\"\xff\"")},
		"too long":               {Kind: "a", Wire: []byte(`"` + strings.Repeat("x", maxLine) + `"`)},
	} {
		if err := bob.Append(ctx, AppendOptions{}, wire.Event{Kind: "good"}, e); err == nil {
			t.Errorf("%s was appended", name)
		}
	}
	appendEvents(t, bob, "b")
	same(t, next(t, bob.Events(0)), "1 b")
}

// The longest event is read back, wherever it begins.
func TestLongEvents(t *testing.T) {
	s := testStore(t, "bob")
	bob := s.Box("bob")
	for _, n := range []int{1, 64 << 10, maxLine - 300, 10} {
		if err := bob.Append(ctx, AppendOptions{}, wire.Event{Kind: fmt.Sprint(n), Wire: []byte(`"` + strings.Repeat("x", n) + `"`)}); err != nil {
			t.Fatal(err)
		}
	}
	same(t, next(t, bob.Events(0)), "1 1", "2 65536", "3 8388308", "4 10")
	events, err := bob.Tail(3)
	if err != nil || len(events) < 3 || events[len(events)-1].Seq != 4 {
		t.Error(len(events), err)
	}
}

func TestEventID(t *testing.T) {
	s := testStore(t, "bob")
	bob := s.Box("bob")
	e := func(id string) wire.Event { return wire.Event{Kind: "k" + id, EventID: id} }
	put := func(events ...wire.Event) {
		t.Helper()
		if err := bob.Append(ctx, AppendOptions{}, events...); err != nil {
			t.Fatal(err)
		}
	}
	put(e("1"), e("1")) // twice in the first call of all
	put(e("1"), e("2"), e("2"))
	put(e("2"))
	// The id in another place is not that event's.
	put(wire.Event{Kind: "wire", Wire: []byte(`{"event_id":"3"}`)}, e("3"))
	put(e("3"), wire.Event{Kind: "wire", Wire: []byte(`{"event_id":"2"}`)}, e("2"))
	put(wire.Event{Kind: "none"}, wire.Event{Kind: "none"})
	same(t, next(t, bob.Events(0)), "1 k1", "2 k2", "3 wire", "4 k3", "5 wire", "6 none", "7 none")
	// Beyond the last MiB it is another event.
	for range 20 {
		put(wire.Event{Kind: "pad", Wire: []byte(`"` + strings.Repeat("x", 60<<10) + `"`)})
	}
	put(e("3"), e("3"))
	if n, _ := bob.LastSeq(); n != 28 {
		t.Errorf("%d events", n)
	}
}

// The window of event ids goes back over a rotation.
func TestEventIDAcrossSegments(t *testing.T) {
	smallSegments(t, 10)
	s := testStore(t, "bob")
	bob := s.Box("bob")
	for range 2 {
		if err := bob.Append(ctx, AppendOptions{}, wire.Event{Kind: "a", EventID: "1"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := bob.Append(ctx, AppendOptions{}, wire.Event{Kind: "b", EventID: "2"}); err != nil { // begins a segment
		t.Fatal(err)
	}
	for _, id := range []string{"1", "2"} {
		if err := bob.Append(ctx, AppendOptions{}, wire.Event{Kind: "again", EventID: id}); err != nil {
			t.Fatal(err)
		}
	}
	same(t, next(t, bob.Events(0)), "1 a", "2 b")
}

func TestRotation(t *testing.T) {
	smallSegments(t, 2000)
	s := testStore(t, "bob")
	bob := s.Box("bob")
	follower := bob.Events(0)
	defer follower.Close()
	var want, got []string
	for i := range 100 {
		kind := fmt.Sprintf("k%d", i)
		appendEvents(t, bob, kind, kind)
		want = append(want, fmt.Sprintf("%d %s", 2*i+1, kind), fmt.Sprintf("%d %s", 2*i+2, kind))
		if i%3 == 0 {
			got = append(got, next(t, follower)...)
		}
	}
	same(t, append(got, next(t, follower)...), want...)
	same(t, next(t, bob.Events(0)), want...)
	same(t, next(t, bob.Events(150)), want[150:]...)
	dir, _ := s.dir.Walk("bob", "events")
	defer dir.Close()
	segs, err := segments(dir)
	if err != nil || len(segs) < 5 || segs[0] != 1 {
		t.Fatal(segs, err)
	}
	for i, seg := range segs {
		info, err := os.Stat(logPath(bob, seg))
		if err != nil || i < len(segs)-1 && (info.Size() < 2000 || info.Size() > 2300) {
			t.Errorf("segment %d has %d bytes: %v", seg, info.Size(), err)
		}
	}
	for _, n := range []int{1, 10, 200, 500} {
		events, err := bob.Tail(n)
		if err != nil || len(events) < min(n, 200) || events[len(events)-1].Seq != 200 {
			t.Errorf("Tail %d: %d events, %v", n, len(events), err)
		}
		for i := 1; i < len(events); i++ {
			if events[i].Seq != events[i-1].Seq+1 {
				t.Fatalf("Tail %d: %d after %d", n, events[i].Seq, events[i-1].Seq)
			}
		}
	}
	// A segment that was archived shows as a gap.
	if err := os.Remove(logPath(bob, segs[0])); err != nil {
		t.Fatal(err)
	}
	same(t, next(t, bob.Events(0))[:2], fmt.Sprintf("gap 1-%d", segs[1]-1), want[segs[1]-1])
	same(t, next(t, bob.Events(segs[1]-1))[:1], want[segs[1]-1])
}

// At sixteen MiB a segment is full.
func TestSegmentSize(t *testing.T) {
	s := testStore(t, "bob")
	bob := s.Box("bob")
	appendEvents(t, bob, "a", "a")
	// A hole that reads as zeroes is as good as lines, but for the last.
	line, _ := os.ReadFile(logPath(bob, 1))
	for _, size := range []int64{16<<20 - 1, 16 << 20} {
		os.WriteFile(logPath(bob, 1), nil, 0o600)
		os.Truncate(logPath(bob, 1), size-1-int64(len(line)))
		scribble(t, logPath(bob, 1), append([]byte{'\n'}, line...))
		appendEvents(t, bob, "b")
	}
	same(t, filesIn(t, filepath.Join(bob.Path(), "events"), nil), segmentName(1), segmentName(3))
}

// A torn last line is cut off, kept in bad, and nothing else is lost.
func TestTornLine(t *testing.T) {
	for name, torn := range map[string]string{
		"half a line":          `{"seq":3,"at":"2026`,
		"a line without end":   `{"seq":3,"kind":"x"}`,
		"several":              "{\"seq\":3\n{\"seq\"\n\n\x00\x00\x00\n{",
		"zeroes":               strings.Repeat("\x00", 5000),
		"much":                 strings.Repeat("garbage\n", 20_000),
		"a line with no seq":   "{\"kind\":\"x\"}\n",
		"a number beyond all":  "{\"seq\":18446744073709551615}\n",
		"a number not so high": "{\"seq\":2305843009213693951}\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, scratch(t), nil, "bob")
			bob := s.Box("bob")
			follower := bob.Events(0)
			defer follower.Close()
			appendEvents(t, bob, "a", "b")
			same(t, next(t, follower), "1 a", "2 b")
			scribble(t, logPath(bob, 1), []byte(torn))
			same(t, next(t, follower))
			appendEvents(t, bob, "c")
			same(t, next(t, follower), "3 c")
			appendEvents(t, bob, "d")
			same(t, next(t, follower), "4 d")
			same(t, next(t, bob.Events(0)), "1 a", "2 b", "3 c", "4 d")
			bad, err := bob.BadFiles(0)
			if err != nil || len(bad) != 1 {
				t.Fatal(bad, err)
			}
			got, _ := os.ReadFile(filepath.Join(bob.Path(), "inbox", "bad", bad[0].Name))
			if string(got) != torn {
				t.Errorf("bad has %.100q", got)
			}
		})
	}
}

// A middle line that does not parse is a gap, and the rest is read.
func TestGap(t *testing.T) {
	s := testStore(t, "bob")
	bob := s.Box("bob")
	appendEvents(t, bob, "a", "b", "c", "d")
	data, _ := os.ReadFile(logPath(bob, 1))
	lines := bytes.SplitAfter(data, []byte{'\n'})
	lines[1] = bytes.Repeat([]byte{'x'}, len(lines[1]))
	lines[1][len(lines[1])-1] = '\n'
	if err := os.WriteFile(logPath(bob, 1), bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	same(t, next(t, bob.Events(0)), "1 a", "gap 2-2", "3 c", "4 d")
	appendEvents(t, bob, "e")
	same(t, next(t, bob.Events(3)), "4 d", "5 e")
}

// A line longer than any of ours, and lines that somebody else wrote, keep
// nobody from reading on.
func TestStrayLines(t *testing.T) {
	for name, stray := range map[string]string{
		"longer than any": strings.Repeat("x", maxLine+5) + "\n{\"seq\":1}\n",
		"low numbers":     "{\"seq\":1}\n{\"seq\":2}\n",
		"one again":       "{\"seq\":2}\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, scratch(t), nil, "bob")
			bob := s.Box("bob")
			follower := bob.Events(0)
			defer follower.Close()
			appendEvents(t, bob, "a", "b")
			scribble(t, logPath(bob, 1), []byte(stray))
			same(t, next(t, follower), "1 a", "2 b")
			appendEvents(t, bob, "c", "d")
			same(t, next(t, follower), "3 c", "4 d")
			same(t, next(t, bob.Events(0)), "1 a", "2 b", "3 c", "4 d")
		})
	}
}

// A full disk: what was written in part is cut back, and the next goes on.
func TestAppendToAFullDisk(t *testing.T) {
	full := false
	s := openStore(t, scratch(t), func(op atomicfile.Op, _ string) error {
		if full && op == atomicfile.OpWrite {
			return syscall.ENOSPC
		}
		return nil
	}, "bob")
	bob := s.Box("bob")
	appendEvents(t, bob, "a")
	full = true
	if err := bob.Append(ctx, AppendOptions{}, wire.Event{Kind: "b"}, wire.Event{Kind: "c"}); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	full = false
	same(t, next(t, bob.Events(0)), "1 a")
	appendEvents(t, bob, "d")
	same(t, next(t, bob.Events(0)), "1 a", "2 d")
	if bad, _ := bob.BadFiles(0); len(bad) != 0 {
		t.Error(bad)
	}
}

// Many append at once, over rotations, and followers see each event once.
func TestManyAppend(t *testing.T) {
	smallSegments(t, 5000)
	path := scratch(t)
	openStore(t, path, nil, "bob")
	const writers, each = 6, 60
	var all sync.WaitGroup
	for w := range writers {
		s := openStore(t, path, nil)
		all.Go(func() {
			for i := range each {
				e := wire.Event{Kind: fmt.Sprintf("w%d.%d", w, i), EventID: fmt.Sprintf("%d.%d", w, i)}
				if err := s.Box("bob").Append(ctx, AppendOptions{}, e, e); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	bob := openStore(t, path, nil).Box("bob")
	c := bob.Events(0)
	defer c.Close()
	seen := map[string]int{}
	for last, running := uint64(0), true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		for {
			e, gap, err := c.Next()
			if err == io.EOF {
				break
			}
			if err != nil || gap != nil || e.Seq != last+1 {
				t.Fatal(e.Seq, last, gap, err)
			}
			last = e.Seq
			seen[e.Kind]++
		}
	}
	if len(seen) != writers*each {
		t.Errorf("%d events of %d", len(seen), writers*each)
	}
	for k, n := range seen {
		if n != 1 {
			t.Errorf("%s: %d times", k, n)
		}
	}
}

package eventlog

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentteammail/atm/internal/durable"
	"github.com/agentteammail/atm/internal/testtree"
	"github.com/agentteammail/atm/wire"
)

// A reader is at the end only if the log is: what was appended since it looked last is there.
func TestFollowWhatWasJustAppended(t *testing.T) {
	l := newLog(t, nil)
	appendKinds(t, l, "a")
	r := l.Follow(0)
	defer r.Close()
	for i, kind := range []string{"a", "b", "c"} {
		e, err := r.Next()
		if err != nil || e.Kind != kind {
			t.Fatal(i, e.Kind, err)
		}
		appendKinds(t, l, string(rune('b'+i)))
	}
}

// Behind a damaged line the rest is read.
func TestDamagedLine(t *testing.T) {
	l := newLog(t, nil)
	appendKinds(t, l, "a", "b", "c", "d")
	data, _ := os.ReadFile(segmentPath(l, 1))
	lines := bytes.SplitAfter(data, []byte{'\n'})
	lines[1] = bytes.Repeat([]byte{'x'}, len(lines[1]))
	lines[1][len(lines[1])-1] = '\n'
	must(t, os.WriteFile(segmentPath(l, 1), bytes.Join(lines, nil), 0o600))
	same(t, readAll(t, l, 0), "1 a", "3 c", "4 d")
	appendKinds(t, l, "e")
	same(t, readAll(t, l, 3), "4 d", "5 e")
	lines[1] = bytes.Replace(lines[2], []byte(`{"seq":3,`), []byte(`{"seq":9,`), 1)
	must(t, os.WriteFile(segmentPath(l, 1), bytes.Join(lines, nil), 0o600))
	appendKinds(t, l, "e")
	same(t, readAll(t, l, 0), "1 a", "9 c", "3 c", "4 d", "5 e")
}

// A reader that begins in the middle of a long segment finds its event, even if lines are damaged.
func TestFollowFromTheMiddle(t *testing.T) {
	l := newLog(t, nil)
	last := uint64(0)
	grow := func(n, size int, damage string) {
		t.Helper()
		pad := wire.Event{Kind: "pad", Wire: []byte(`"` + strings.Repeat("x", size) + `"`)}
		appendEvents(t, l, slices.Repeat([]wire.Event{pad}, n)...)
		last += uint64(n)
		scribble(t, segmentPath(l, 1), damage)
		for _, after := range []uint64{0, 2, 57, last - 1, last, last + 100} {
			var want []string
			for seq := after + 1; seq <= last; seq++ {
				want = append(want, fmt.Sprint(seq, " pad"))
			}
			same(t, readAll(t, l, after), want...)
		}
	}
	grow(200, 900, "{\"seq\":3,\nxx\n")
	grow(200, 900, "\x00\n")
	for range 4 { // however few bytes of the end are read, a damaged line is the last
		grow(1, 100<<10, "xx\n")
	}
}

// A reader of what is new begins there, however long the segment is; and a damaged last line does not hide it.
func TestFollowBeginsNearTheEnd(t *testing.T) {
	l := newLog(t, nil)
	appendEvents(t, l, slices.Repeat([]wire.Event{{Kind: "pad", Wire: []byte(`"` + strings.Repeat("x", 900) + `"`)}}, 300)...)
	scribble(t, segmentPath(l, 1), "xx\n")
	for _, after := range []uint64{200, 299, 300} {
		r := l.Follow(after)
		if r.offset < int64(after)*900 {
			t.Errorf("after %d it begins at %d", after, r.offset)
		}
		r.Close()
	}
}

// FuzzEventLog: whatever is at the end of a log, the next append ends it, nothing that was there is lost, and a reader
// returns each event once. What is there is no event: only atm writes those.
func FuzzEventLog(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "{", "\x00\x00", `{"seq":4`, "{\"seq\":4\n", "x\n{\"seq\":5,\n", "{\"seq\":null}\n", "\n\n\n", "\r\n{\"seq\":4\r\n",
		"{\"seq\":2,\n{\"seq\":2,\n", "{\"kind\":\"x\"}\n", strings.Repeat("\x00", 5000), strings.Repeat("garbage\n", 20_000),
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	top := testtree.Memory(f)
	f.Fuzz(func(t *testing.T, junk []byte, follows bool) {
		for line := range bytes.Lines(junk) {
			if _, err := wire.DecodeEvent(line); err == nil {
				t.Skip()
			}
		}
		path, err := os.MkdirTemp(top, "events-")
		must(t, err)
		defer os.RemoveAll(path)
		l := openLog(t, path, nil)
		defer l.root.(*durable.Root).Close()
		appendKinds(t, l, "mine", "mine", "mine")
		scribble(t, segmentPath(l, 1), string(junk))
		before, _ := os.ReadFile(segmentPath(l, 1))
		c := l.Follow(0)
		defer c.Close()
		var got []string
		if follows {
			got = read(t, c)
		}
		appendKinds(t, l, "late", "late")
		appendKinds(t, l, "last")
		got = append(got, read(t, c)...)
		count := map[string]int{}
		last := uint64(0)
		for _, g := range got {
			var n uint64
			var kind string
			fmt.Sscan(g, &n, &kind)
			if n != last+1 {
				t.Fatalf("%d after %d: %s", n, last, got)
			}
			last = n
			count[kind]++
		}
		if count["mine"] != 3 || count["late"] != 2 || count["last"] != 1 {
			t.Fatalf("a reader saw %s", got)
		}
		if a, b := strings.Join(readAll(t, l, 0), "\n"), strings.Join(got, "\n"); a != b {
			t.Fatalf("a later reader saw %s, the first %s", a, b)
		}
		if after, _ := os.ReadFile(segmentPath(l, 1)); !bytes.HasPrefix(after, before) { // a log only grows
			t.Fatalf("%q became %q", before, after)
		}
	})
}

// A follower goes on if its segment is archived.
func TestFollowerSurvives(t *testing.T) {
	smallSegments(t, 200)
	l := newLog(t, nil)
	c := l.Follow(0)
	defer c.Close()
	appendKinds(t, l, "one", "two")
	same(t, read(t, c), "1 one", "2 two")
	appendKinds(t, l, "three", "four")
	appendKinds(t, l, "five", "six")
	if n, _, err := l.Archive(ctx, time.Now().Add(time.Hour), false); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	same(t, read(t, c), "3 three", "4 four", "5 five", "6 six")
}

// A reader begins with the archived events of this log, not with those of an earlier agent of the same name.
func TestArchivedEvents(t *testing.T) {
	smallSegments(t, 200)
	l := newLog(t, nil)
	archive := func() {
		t.Helper()
		if n, _, err := l.Archive(ctx, time.Now().Add(time.Hour), false); n == 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	for _, kind := range []string{"one", "two", "three"} {
		appendKinds(t, l, kind, kind)
	}
	c := l.Follow(0)
	c.Next()
	c.Close()
	archive()
	same(t, readAll(t, l, 0), "1 one", "2 one", "3 two", "4 two", "5 three", "6 three")
	again, ok := l.Resume(c.Position()) // it is in the archive now
	if !ok {
		t.Fatal("not resumed")
	}
	defer again.Close()
	same(t, read(t, again), "2 one", "3 two", "4 two", "5 three", "6 three")
	old := l.Follow(2) // in a segment that is archived
	defer old.Close()
	must(t, os.RemoveAll(l.root.Join(l.dir())))
	same(t, readAll(t, l, 0))
	appendKinds(t, l, "new")
	same(t, read(t, old), "3 two", "4 two", "1 new")
	must(t, os.RemoveAll(l.root.Join(l.dir())))
	for _, kind := range []string{"new", "newer", "newest", "last"} {
		appendKinds(t, l, kind, kind, kind)
	}
	want := []string{"1 new", "2 new", "3 new", "4 newer", "5 newer", "6 newer", "7 newest", "8 newest", "9 newest", "10 last", "11 last", "12 last"}
	same(t, readAll(t, l, 0), want...)
	same(t, read(t, again), want...)
	archive()
	same(t, readAll(t, l, 0), want...)
}

// A reader notices another log in place of its own: a new one begins anew, a restored one goes on after its last event.
func TestLogIsReplaced(t *testing.T) {
	l := newLog(t, nil)
	dir := l.root.Join(l.dir())
	appendKinds(t, l, "one", "two")
	c, late := l.Follow(0), l.Follow(2)
	defer c.Close()
	defer late.Close()
	same(t, read(t, c), "1 one", "2 two")
	for i := range 3 {
		must(t, os.RemoveAll(dir))
		kind := fmt.Sprint("new", i)
		appendKinds(t, l, kind)
		same(t, read(t, c), "1 "+kind)
		same(t, read(t, late), "1 "+kind)
	}
	copied := dir + ".copy"
	must(t, cmp.Or(os.CopyFS(copied, os.DirFS(dir)), os.RemoveAll(dir), os.Rename(copied, dir)))
	appendKinds(t, l, "more")
	same(t, read(t, c), "2 more")
}

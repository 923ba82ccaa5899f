package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestArchive(t *testing.T) {
	smallSegments(t, 500)
	var fail error
	l := newLog(t, func(op, name string) error {
		if op == "rename" && name == l0 {
			return fail
		}
		return nil
	})
	archive := func(before time.Duration, dry bool) (int, int64, error) {
		return l.Archive(ctx, time.Now().Add(before), dry)
	}
	if n, _, err := archive(time.Hour, false); n != 0 || err != nil {
		t.Error(n, err)
	}
	for i := range 10 {
		appendKinds(t, l, fmt.Sprint("a", i), fmt.Sprint("b", i))
	}
	if n, _, err := archive(-time.Hour, false); n != 0 || err != nil {
		t.Error(n, err)
	}
	all := readAll(t, l, 0)
	segs, _ := l.segments()
	newest := segs[len(segs)-1]
	n, size, err := archive(time.Hour, true)
	if n != int(newest-1) || size < int64(500*(len(segs)-1)) || err != nil {
		t.Error(n, size, err)
	}
	same(t, readAll(t, l, 0), all...)

	fail = syscall.EIO
	if _, _, err := archive(time.Hour, false); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	fail = nil
	same(t, readAll(t, l, 0), all...)
	m, _, err := archive(time.Hour, false)
	if m != n || err != nil {
		t.Error(m, err)
	}
	if first, err := l.FirstSeq(); first != newest || err != nil {
		t.Error(first, err)
	}
	if odd, damaged, err := l.Check(); len(odd) != 0 || len(damaged) != 0 || err != nil {
		t.Error(odd, damaged, err)
	}
	same(t, readAll(t, l, newest-1), all[newest-1:]...)

	// A restored log has segments of the same names.
	old, _ := l.root.Names(l.archive())
	for _, name := range old {
		must(t, os.Link(l.root.Join(l.archive()+"/"+name), l.root.Join(l.dir()+"/"+name)))
	}
	if _, _, err := archive(time.Hour, false); err != nil {
		t.Error(err)
	}
	if now, _ := l.root.Names(l.archive()); len(now) != 2*len(old) {
		t.Error(now)
	}
}

var l0 = "bob/events/" + segmentName(1)

// Check reports foreign entries, and where events are missing. What was never a whole event is no loss.
func TestCheck(t *testing.T) {
	smallSegments(t, 500)
	l := newLog(t, nil)
	appendKinds(t, l, "a", "b")
	scribble(t, segmentPath(l, 1), "{\"kind\":\"x\"}\nxx\n")
	appendKinds(t, l, "c", "d", "e", "f")
	appendKinds(t, l, "g", "h", "i")
	data, err := os.ReadFile(segmentPath(l, 7))
	must(t, err)
	_, rest, _ := bytes.Cut(data, []byte{'\n'})
	must(t, os.WriteFile(segmentPath(l, 7), rest, 0o600))
	scribble(t, segmentPath(l, 7), "half a line")
	for _, name := range []string{".x.tmp", "notes.txt", "7.ndjson"} {
		must(t, os.WriteFile(l.root.Join("bob/events/"+name), nil, 0o600))
	}
	must(t, os.Mkdir(l.root.Join("bob/events/.hidden"), 0o700))
	want := "events/" + segmentName(7) + ":1"
	odd, damaged, err := l.Check()
	same(t, odd, "events/7.ndjson", "events/notes.txt")
	if same(t, damaged, want); err != nil {
		t.Error(err)
	}
	appendKinds(t, l, "j") // which ends the line
	_, damaged, err = l.Check()
	if same(t, damaged, want); err != nil {
		t.Error(err)
	}
	same(t, readAll(t, l, 0), "1 a", "2 b", "3 c", "4 d", "5 e", "6 f", "8 h", "9 i", "10 j")
	if err := os.Symlink("x", segmentPath(l, 20)); err != nil {
		t.Skip(err)
	}
	odd, _, err = l.Check()
	same(t, odd, "events/"+segmentName(20), "events/7.ndjson", "events/notes.txt")
	if err == nil || err == io.EOF {
		t.Error("a segment that cannot be opened is no error")
	}
}

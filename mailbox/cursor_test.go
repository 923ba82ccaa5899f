package mailbox

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentteammail/atm/wire"
)

// A cursor that begins in the middle of a long segment finds its event, though
// others wrote lines into the log that lead past it.
func TestSeek(t *testing.T) {
	s := openStore(t, scratch(t), nil, "bob")
	bob := s.Box("bob")
	pad := wire.Event{Kind: "pad", Wire: []byte(`"` + strings.Repeat("x", 900) + `"`)}
	grow := func(n int) {
		t.Helper()
		var events []wire.Event
		for range n {
			events = append(events, pad)
		}
		if err := bob.Append(ctx, AppendOptions{}, events...); err != nil {
			t.Fatal(err)
		}
	}
	check := func(last uint64) {
		t.Helper()
		for _, after := range []uint64{0, 2, 57, 200, last - 1, last, last + 100} {
			c := bob.Events(after)
			want := after + 1
			for {
				e, gap, err := c.Next()
				if err == io.EOF {
					break
				}
				if err != nil || gap != nil || e.Seq != want {
					t.Fatalf("after %d: %d for %d, %v, %v", after, e.Seq, want, gap, err)
				}
				want++
			}
			c.Close()
			if after < last && want != last+1 {
				t.Errorf("after %d: ended at %d of %d", after, want-1, last)
			}
		}
	}
	grow(200)
	check(200)
	scribble(t, logPath(bob, 1), []byte("{\"seq\":3,\"kind\":\"x\"}\n{\"seq\":55,\"kind\":\"x\"}\nxx\n"))
	check(200)
	grow(200)
	check(400)
	scribble(t, logPath(bob, 1), []byte("{\"seq\":2,\"kind\":\"x\"}\n"))
	check(400)
	grow(300)
	scribble(t, logPath(bob, 1), []byte("{\"seq\":350,\"kind\":\"x\"}\n"))
	check(700)
	// Wherever it looks first, it meets a line that leads past.
	pad.Wire = []byte(`"` + strings.Repeat("x", 100<<10) + `"`)
	for last := uint64(701); last <= 704; last++ {
		grow(1)
		scribble(t, logPath(bob, 1), []byte("{\"seq\":2,\"kind\":\"x\"}\n"))
		check(last)
	}
}

// FuzzEventLog: whatever lies at the end of a log, the next who appends mends
// it, no whole line is lost, and a cursor returns each event once.
func FuzzEventLog(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "{", "\x00\x00", `{"seq":4}`, "{\"seq\":4}\n", "{\"seq\":2}\n{\"seq\":3}\n", "{\"seq\":99}\n", "x\n{\"seq\":5}\n",
		"{\"seq\":18446744073709551615}\n", "{\"seq\":null}\n", "\n\n\n", "{\"seq\":4,\"agent\":\"x\",\"kind\":\"\"}\nxxxxxxxx\n", "\r\n{\"seq\":4}\r\n",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	top := scratch(f)
	f.Fuzz(func(t *testing.T, junk []byte, follows bool) {
		path, err := os.MkdirTemp(top, "events-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(path)
		s := openStore(t, path, nil, "bob")
		bob := s.Box("bob")
		appendEvents(t, bob, "mine", "mine", "mine")
		scribble(t, logPath(bob, 1), junk)
		before, _ := os.ReadFile(logPath(bob, 1))
		c := bob.Events(0)
		defer c.Close()
		var got []string
		if follows {
			got = next(t, c)
		}
		appendEvents(t, bob, "late", "late")
		appendEvents(t, bob, "last")
		got = append(got, next(t, c)...)
		count := map[string]int{}
		last := uint64(0)
		for _, g := range got {
			var n uint64
			var kind string
			if strings.HasPrefix(g, "gap ") {
				continue
			}
			fmt.Sscan(g, &n, &kind)
			if n <= last {
				t.Fatalf("%d after %d: %s", n, last, got)
			}
			last = n
			count[kind]++
		}
		if count["mine"] != 3 || count["late"] != 2 || count["last"] != 1 {
			t.Fatalf("a cursor saw %s", got)
		}
		if a, b := next(t, bob.Events(0)), strings.Join(got, "\n"); strings.Join(a, "\n") != b {
			t.Fatalf("a later cursor saw %s, the first %s", a, got)
		}
		// What was cut off is in bad, and nothing else is gone.
		after, _ := os.ReadFile(logPath(bob, 1))
		var cut []byte
		for _, b := range takeCensus(t, path, "bob").bad {
			more, _ := os.ReadFile(filepath.Join(bob.Path(), "inbox", "bad", b))
			cut = append(cut, more...)
		}
		if kept := len(before) - len(cut); kept < 0 || !bytes.Equal(before[:kept], after[:kept]) || !bytes.Equal(before[kept:], cut) {
			t.Fatalf("%q was cut, of %q", cut, before)
		}
	})
}

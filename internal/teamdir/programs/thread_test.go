package programs

import (
	"encoding/binary"
	"encoding/hex"
	"testing"
	"time"

	"github.com/agentteammail/atm/wire"
)

func TestWhoShowsAThread(t *testing.T) {
	t.Parallel()
	start := time.Now().Truncate(time.Millisecond)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	thread := func(seconds float64) string {
		digits := hex.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(at(seconds).UnixMilli())<<16))
		return digits[:8] + "-" + digits[8:12] + "-7000-8000-000000000001"
	}
	if !wire.IsID(thread(0)) {
		t.Fatal(thread(0))
	}
	bob := terminal{name: "bob", startedAt: at(0), hasShown: true}
	carl := terminal{name: "carl", startedAt: at(100)}
	bobLater := terminal{name: "bob", startedAt: at(101)}
	for _, c := range []struct {
		about  string
		all    []terminal
		thread string
		old    bool // it was resumed
		want   string
	}{
		{"the first of the second", []terminal{bob, carl}, thread(101), false, "carl"},
		{"one that is older than the second", []terminal{bob, carl}, thread(99), false, "bob"},
		{"a new one of either", []terminal{bob, carl}, thread(110), false, "bob carl"},
		{"one that either has resumed", []terminal{bob, carl}, thread(50), true, "bob carl"},
		{"a new one of the only program", []terminal{bob}, thread(110), false, "bob"},
		{"one that the only program has resumed", []terminal{carl}, thread(50), true, "carl"},
		{"after the clock was set", []terminal{carl}, thread(50), false, "carl"},
		{"the first of two that started at once", []terminal{carl, bobLater}, thread(102), false, "carl bob"},
		{"an id that says nothing", []terminal{bob, carl}, "T", false, "bob carl"},
		{"of nobody", nil, thread(1), false, ""},
	} {
		got := ""
		for i, s := range showing(c.thread, !c.old, c.all) {
			got += " "[:min(i, 1)] + s.name
		}
		if got != c.want {
			t.Errorf("%s: %q, not %q", c.about, got, c.want)
		}
	}
}

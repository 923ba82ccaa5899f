//go:build unix

package screen

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// processorTime is what this process has used, which no other one changes.
func processorTime(t *testing.T) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// What a flood of controls costs grows with its length, not with its numbers, and it takes no memory.
func TestControlFlood(t *testing.T) {
	for _, unit := range []string{
		"A\x1b[99999b", "\x1b[99999I", "\x1b[99999Z", "\x1b[2;99999r\x1b[99999L", "\x1b[?%dh", "\x1b[%dh", "\x1b]2;%d", "\x1b]8;;http://%d\a",
		"\x1b_%d", "\x1b[>%du", "\x1b[?1049h\x1b[?1049l", "e\u0301\u0301\u0301\u0301", "👩\u200d", "\x1b[%d;%[1]d;",
	} {
		s := New(80, 24, 100)
		began := processorTime(t)
		for i := range 3000 {
			fmt.Fprintf(s, strings.ReplaceAll(unit, "%d", "%[1]d"), 10_000+i)
		}
		s.Lines()
		if took := processorTime(t) - began; took > 20*time.Second {
			t.Errorf("%q: %v", unit, took)
		}
		kept := len(s.modes)*100 + len(s.partialString) + len(s.title) + len(s.partialRune)
		for y := -s.History(); y < s.rows; y++ {
			for _, c := range s.Row(y) {
				kept += len(c.Text)
			}
		}
		if kept > 1<<20 {
			t.Errorf("%q: %d bytes are kept", unit, kept)
		}
	}
}

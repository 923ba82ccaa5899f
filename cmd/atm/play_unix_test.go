//go:build linux || darwin || freebsd

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentteammail/atm/internal/cast"
)

// A recording goes into a pipe whole, is listed as events, and is shown on a
// terminal that is then as it was.
func TestPlay(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	run := filepath.Join(s.root, "main", "bob", "run")
	if err := os.MkdirAll(run, 0o700); err != nil {
		t.Fatal(err)
	}
	w, err := cast.Create(cast.Options{Path: filepath.Join(run, "screen.cast"), Cols: 80, Rows: 24})
	if err != nil {
		t.Fatal(err)
	}
	const shown = "\x1b[?25l\x1b[?2004hhello ✳\r\n\x1b[6n"
	w.Output([]byte(shown))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"play", "bob"}, {"play", "bob", "--raw"}} {
		if got := s.atm(0, args...); got != shown {
			t.Errorf("%v: %q", args, got)
		}
	}
	if got := s.atm(0, "play", "bob", "--json"); !strings.Contains(got, `"code":"begin","data":"80x24"`) || !strings.Contains(got, `hello ✳`) {
		t.Errorf("%q", got)
	}
	for _, speed := range []string{"0", "-1", "x", "NaN"} {
		s.atm(2, "play", "bob", "--speed="+speed)
	}
	win := s.open(false, "play", "bob", "--speed", "1000")
	win.shows("hello ✳")
	win.types("\x1b[3;1R") // the terminal's answer, which nobody is to see typed
	win.ends(0)
	for _, p := range []string{"\x1b[?25h", "\x1b[?2004l"} {
		win.shows(p)
	}
	long := s.open(false, "play", "bob", "--speed", "0.001", "--idle-limit", "0")
	until(t, long.raw, func() string { return "not raw" })
	long.types("q")
	long.ends(0)
}
